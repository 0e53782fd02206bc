#!/usr/bin/python3
"""Data-parallel training of a small neural network that reads handwritten digits.

Every rank computes the gradient of its share of each batch, MPI_Allreduce sums the shares, and every rank takes the
same step. The data set (1,797 images of 8 x 8 pixels) comes with scikit-learn.
Debian packages: python3-mpi4py python3-numpy python3-sklearn.

    mpirun -n 4 python3 train_digits.py
    mpirun -n 4 --mca coll gpurdma python3 train_digits.py

The result does not depend on the number of ranks, nor on who carries the allreduce, except for the rounding of sums.

Where CuPy and a GPU are there, weights and gradients lie on the GPU, and MPI gets their device addresses: with gpurdma
any Open MPI takes them. --device cpu leaves the GPU alone.
"""
import argparse
import json
import os

# One thread per rank: the ranks are the parallelism, and threads of the matrix library would fight over the cores.
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402

comm = MPI.COMM_WORLD
PIXELS, CLASSES = 64, 10


def choose_arrays(device):
    """Returns the module that has the arrays: cupy where it is to be used and finds a GPU, else numpy."""
    if device == "cpu":
        return np
    try:
        import cupy
        gpus = cupy.cuda.runtime.getDeviceCount()
    except Exception as reason:  # not installed, no driver, no GPU: whatever it is, it says so
        if device == "gpu":
            raise SystemExit(f"no GPU can be used: {reason}") from reason
        return np
    cupy.cuda.Device(int(os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", 0)) % gpus).use()
    return cupy


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=128, help="samples in one step, of all ranks together")
    parser.add_argument("--hidden", type=int, default=[256, 128], nargs="+", help="sizes of the hidden layers")
    parser.add_argument("--rate", type=float, default=0.1, help="learning rate")
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float64")
    parser.add_argument("--device", choices=["auto", "cpu", "gpu"], default="auto")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--overlap", action="store_true",
                        help="start MPI_Iallreduce for each layer as soon as its gradient is known")
    parser.add_argument("--json", metavar="FILE", help="write the results to FILE")
    return parser.parse_args()


def load_digits(seed, dtype):
    """Returns (train images, train labels, test images, test labels), split alike on every rank."""
    from sklearn.datasets import load_digits as load
    images, labels = load(return_X_y=True)
    images = (images / 16).astype(dtype)  # pixels are 0 to 16
    order = np.random.default_rng(seed).permutation(len(images))
    train, test = np.split(order, [len(order) * 4 // 5])
    return images[train], labels[train], images[test], labels[test]


class Model:
    """Fully connected layers with ReLU between them and softmax at the end.

    The weights of all layers lie behind each other in one flat array, and so do the gradients, so that one allreduce
    serves them all. The gradient has one more element, the loss, which is summed over the ranks by the same call.
    """

    def __init__(self, sizes, seed, dtype, arrays):
        self.arrays = arrays
        shapes = list(zip(sizes[:-1], sizes[1:]))
        total = sum((inputs + 1) * outputs for inputs, outputs in shapes)
        self.weights = arrays.zeros(total, dtype)
        self.gradient = arrays.zeros(total + 1, dtype)
        self.layers = []  # (weights, bias, their gradients, and the gradient's flat slice) of each layer
        random, at = np.random.default_rng(seed), 0
        for inputs, outputs in shapes:
            end = at + (inputs + 1) * outputs
            w, g = (a[at:end].reshape(inputs + 1, outputs) for a in (self.weights, self.gradient))
            w[:-1] = arrays.asarray(random.normal(0, np.sqrt(2 / inputs), (inputs, outputs)))
            self.layers.append((w[:-1], w[-1], g[:-1], g[-1], self.gradient[at:end]))
            at = end

    def forward(self, images):
        """Returns what goes into each layer, and the logarithm of each class's probability."""
        inputs = [images]
        for w, bias, *_ in self.layers[:-1]:
            inputs.append(self.arrays.maximum(inputs[-1] @ w + bias, 0))
        w, bias, *_ = self.layers[-1]
        scores = inputs[-1] @ w + bias
        scores -= scores.max(axis=1, keepdims=True)
        return inputs, scores - self.arrays.log(self.arrays.exp(scores).sum(axis=1, keepdims=True))

    def backward(self, images, labels, batch, layer_done):
        """Fills the gradient with this rank's part; calls layer_done(flat slice) for each layer, last to first."""
        inputs, log_p = self.forward(images)
        rows = self.arrays.arange(len(labels))
        self.gradient[-1] = -log_p[rows, labels].sum() / batch
        delta = self.arrays.exp(log_p)
        delta[rows, labels] -= 1
        delta /= batch
        for (w, _, w_gradient, bias_gradient, flat), x in zip(reversed(self.layers), reversed(inputs)):
            self.arrays.matmul(x.T, delta, out=w_gradient)
            self.arrays.sum(delta, axis=0, out=bias_gradient)
            layer_done(flat)
            delta = (delta @ w.T) * (x > 0)

    def loss_and_accuracy(self, images, labels):
        _, log_p = self.forward(images)
        return -log_p[self.arrays.arange(len(labels)), labels].mean(), (log_p.argmax(axis=1) == labels).mean()


class Reducer:
    """Sums the gradient over all ranks, in place, and keeps the time that takes."""

    def __init__(self, overlap, wait):
        self.wait = wait  # until the GPU has done what was begun: gpurdma would wait itself, other MPIs do not
        self.overlap, self.requests, self.seconds, self.calls = overlap, [], 0.0, 0

    def layer_done(self, flat):
        if self.overlap:
            self.timed(lambda: self.requests.append(comm.Iallreduce(MPI.IN_PLACE, flat)))

    def finish(self, gradient):
        if self.overlap:
            self.layer_done(gradient[-1:])  # the loss
            self.timed(lambda: MPI.Request.Waitall(self.requests), calls=0)
            self.requests.clear()
        else:
            self.timed(lambda: comm.Allreduce(MPI.IN_PLACE, gradient))

    def timed(self, work, calls=1):
        self.wait()
        start = MPI.Wtime()
        work()
        self.seconds += MPI.Wtime() - start
        self.calls += calls


def train(options):
    arrays = choose_arrays(options.device)
    train_x, train_y, test_x, test_y = map(arrays.asarray, load_digits(options.seed, options.dtype))
    model = Model([PIXELS, *options.hidden, CLASSES], options.seed, options.dtype, arrays)
    velocity = arrays.zeros_like(model.weights)
    wait = (lambda: None) if arrays is np else (lambda: arrays.cuda.get_current_stream().synchronize())
    reducer = Reducer(options.overlap, wait)
    say(f"{comm.size} ranks on {'CPUs' if arrays is np else 'GPUs'}, {len(train_y)} training and {len(test_y)} test "
        f"images, {model.weights.size} weights ({options.dtype}), {model.gradient.nbytes} bytes allreduced each step")

    order, steps = np.random.default_rng(options.seed), 0
    comm.Barrier()
    start = MPI.Wtime()
    for epoch in range(options.epochs):
        shuffled, losses = arrays.asarray(order.permutation(len(train_y))), []
        for at in range(0, len(shuffled), options.batch):
            batch = shuffled[at:at + options.batch]
            mine = batch[comm.rank::comm.size]
            model.backward(train_x[mine], train_y[mine], len(batch), reducer.layer_done)
            reducer.finish(model.gradient)
            losses.append(float(model.gradient[-1]))
            velocity *= options.momentum
            velocity -= options.rate * model.gradient[:-1]
            model.weights += velocity
        steps += len(losses)
        speed = steps / (MPI.Wtime() - start)
        say(f"epoch {epoch + 1:3}/{options.epochs}  loss {np.mean(losses):.6f}  {speed:7.1f} steps/s")
    seconds = MPI.Wtime() - start

    loss, _ = model.loss_and_accuracy(train_x, train_y)
    _, accuracy = model.loss_and_accuracy(test_x, test_y)
    # The ranks never compare weights while they train: equal now means that each allreduce gave all the same bits.
    first = model.weights.copy()
    wait()
    comm.Bcast(first, root=0)
    alike = comm.allreduce(int(arrays.array_equal(first, model.weights)), op=MPI.MIN)
    return {"ranks": comm.size, "train_loss": float(loss), "test_accuracy": float(accuracy), "steps": steps,
            "seconds": seconds, "steps_per_second": steps / seconds, "allreduce_calls": reducer.calls,
            "allreduce_seconds": reducer.seconds, "allreduce_bytes": steps * model.gradient.nbytes,
            "ranks_alike": bool(alike)}


def say(line):
    if comm.rank == 0:
        print(line, flush=True)


def main():
    options = parse_arguments()
    result = train(options)
    say(f"train loss    {result['train_loss']!r}\n"
        f"test accuracy {result['test_accuracy']:.2%}\n"
        f"steps         {result['steps']} in {result['seconds']:.2f} s, {result['steps_per_second']:.1f} steps/s\n"
        f"allreduce     {result['allreduce_calls']} calls, {result['allreduce_bytes']} bytes, "
        f"{result['allreduce_seconds']:.2f} s (rank 0, waiting for the other ranks included)\n"
        f"all ranks hold {'the same bits' if result['ranks_alike'] else 'DIFFERENT weights'}")
    if options.json and comm.rank == 0:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file)
    return 0 if result["ranks_alike"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
