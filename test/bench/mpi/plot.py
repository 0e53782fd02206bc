#!/usr/bin/env python3
"""Draws what mpi_bench measured: time over bytes for gpurdma, the component beneath and the limit, and their ratio.

    plot.py FILE.json [FILE.json ...] --output allreduce.svg      (SVG or PNG, by the name's ending)
"""
import argparse
import json
import os

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot


def size_label(number, _=None):
    for shift, unit in ((20, " MiB"), (10, " KiB")):
        if number >= 1 << shift:
            return f"{number / (1 << shift):g}{unit}"
    return f"{number:g} B"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE.json")
    parser.add_argument("--output", default="allreduce.svg")
    options = parser.parse_args()

    figure, (times, ratios) = pyplot.subplots(2, 1, sharex=True, figsize=(8, 7), height_ratios=(3, 2))
    for index, path in enumerate(options.files):
        with open(path) as file:
            run = json.load(file)
        rows, color = run["rows"], f"C{index}"
        sizes = [row["bytes"] for row in rows]
        name = os.path.splitext(os.path.basename(path))[0] if len(options.files) > 1 else f"{run['ranks']} ranks"
        times.plot(sizes, [row["gpurdma_us"] for row in rows], "o-", color=color, label=f"gpurdma, {name}")
        times.plot(sizes, [row["beneath_us"] for row in rows], "s--", color=color, alpha=0.6, label=f"beneath, {name}")
        times.plot(sizes, [row["limit_us"] for row in rows], ":", color=color, alpha=0.6, label=f"limit, {name}")
        ratios.plot(sizes, [row["ratio"] for row in rows], "o-", color=color)
        low, high = [row["ratio_low"] for row in rows], [row["ratio_high"] for row in rows]
        ratios.fill_between(sizes, low, high, color=color, alpha=0.2)
    times.set(xscale="log", yscale="log", ylabel="time of one allreduce, µs")
    times.xaxis.set_major_locator(matplotlib.ticker.LogLocator(base=4, numticks=20))
    times.xaxis.set_major_formatter(size_label)
    times.legend()
    ratios.axhline(1, color="black", linewidth=0.8)
    highest = max(max(line.get_ydata()) for line in ratios.get_lines())
    ratios.set(ylabel="gpurdma / beneath, quartiles shaded", xlabel="bytes", ylim=(0, max(2, 1.2 * highest)))
    ratios.tick_params(axis="x", rotation=45)
    for axes in (times, ratios):
        axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(options.output, dpi=150)
    print(options.output)


if __name__ == "__main__":
    main()
