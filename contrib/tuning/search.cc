#include "contrib/tuning/search.h"

#include <algorithm>
#include <cmath>

#include "coll/tuning_file.h"

namespace gpurdma::tuning {
namespace {

// How long the steps take among themselves, roughly: for telling how much is left.
class Steps {
 public:
  Steps(const Progress& progress, const std::vector<size_t>& sizes) : progress_(progress) {
    for (const size_t bytes : sizes) total_ += kHeats * weight(bytes) + kFinals * weight(bytes);
  }
  void heats(size_t bytes) { begin("who is best at " + in_units(bytes) + " bytes", kHeats * weight(bytes)); }
  void finals(size_t bytes) {
    begin("the best of all sizes at " + in_units(bytes) + " bytes", kFinals * weight(bytes));
  }

 private:
  static constexpr double kHeats = 3, kFinals = 1;
  static double weight(size_t bytes) { return 1 + double(bytes) / (512 << 10); }
  void begin(const std::string& next, double weight) {
    progress_(next, done_ / total_);
    done_ += weight;
  }
  const Progress& progress_;
  double total_ = 0, done_ = 0;
};

Candidate winner(Stopwatch& stopwatch, size_t bytes, const std::vector<Candidate>& candidates, const Effort& effort) {
  if (candidates.size() == 1) return candidates[0];
  return candidates[fastest(race(stopwatch, bytes, candidates, effort))];
}

Candidate best_at(Stopwatch& stopwatch, const Job& job, size_t bytes, const Effort& effort) {
  const std::vector<Candidate> all = all_algorithms(job, bytes);
  std::vector<Timing> timings = race(stopwatch, bytes, all, effort);
  std::vector<Candidate> pieces;
  for (int place = 0; place < 2; ++place) {  // another piece may turn the order of the first two
    const size_t best = fastest(timings);
    const std::vector<Candidate> more = with_pieces(job, bytes, all[best]);
    pieces.insert(pieces.end(), more.begin(), more.end());
    timings[best].us = INFINITY;
  }
  const Candidate best = winner(stopwatch, bytes, distinct(job, bytes, pieces), effort);
  return winner(stopwatch, bytes, with_depths(job, bytes, best), effort);
}

void add(std::vector<Candidate>& list, const Candidate& candidate) {
  if (std::find(list.begin(), list.end(), candidate) == list.end()) list.push_back(candidate);
}

// Times all of `list`; those with the same plans are one to the race.
std::vector<Timing> times_of(Stopwatch& stopwatch, const Job& job, size_t bytes, const std::vector<Candidate>& list,
                             const Effort& effort) {
  const std::vector<Candidate> racers = distinct(job, bytes, list);
  const std::vector<Timing> timings = race(stopwatch, bytes, racers, effort);
  std::vector<uint64_t> prints;
  for (const Candidate& racer : racers) prints.push_back(fingerprint(job, bytes, racer));
  std::vector<Timing> all;
  for (const Candidate& candidate : list) {
    const uint64_t print = fingerprint(job, bytes, candidate);
    all.push_back(timings[size_t(std::find(prints.begin(), prints.end(), print) - prints.begin())]);
  }
  return all;
}

TuningRow row_of(const Candidate& candidate) {
  TuningRow row;
  row.algorithm = candidate.algorithm;
  row.piece = candidate.piece;
  row.depth = candidate.depth;
  row.radix = candidate.radix;
  return row;
}

}  // namespace

Result search(Stopwatch& stopwatch, const Job& job, const Search& what, const Progress& progress) {
  Result result;
  for (size_t bytes = what.least_bytes; bytes <= what.most_bytes; bytes *= 4) result.sizes.push_back(bytes);
  Steps steps(progress, result.sizes);

  std::vector<Candidate> finalists;
  for (const size_t bytes : result.sizes) {
    steps.heats(bytes);
    result.builtin.push_back(chosen(builtin_tuning(), job, bytes));
    add(finalists, result.builtin.back());
    add(finalists, best_at(stopwatch, job, bytes, what.heats));
  }
  std::vector<Measured> measured;
  for (const size_t bytes : result.sizes) {
    steps.finals(bytes);
    measured.push_back({bytes, times_of(stopwatch, job, bytes, finalists, what.finals)});
  }

  const std::vector<Segment> segments = merge(measured, what.spread);
  size_t from = 0;
  for (const Segment& segment : segments) {
    TuningRow row = row_of(finalists[segment.finalist]);
    row.bytes.from = from;
    if (&segment != &segments.back()) {
      const size_t between = 2 * result.sizes[segment.last];
      const std::vector<Candidate> pair = {finalists[segment.finalist], finalists[(&segment)[1].finalist]};
      const std::vector<Timing> timings = times_of(stopwatch, job, between, pair, what.finals);
      row.bytes.to = timings[0].us <= timings[1].us ? between : result.sizes[segment.last];
    }
    from = row.bytes.to;  // the first row that fits applies
    result.rows.push_back(row);
    for (size_t size = segment.first; size <= segment.last; ++size) {
      const auto builtin = std::find(finalists.begin(), finalists.end(), result.builtin[size]) - finalists.begin();
      result.table.push_back(finalists[segment.finalist]);
      result.table_timings.push_back(measured[size].timings[segment.finalist]);
      result.builtin_timings.push_back(measured[size].timings[size_t(builtin)]);
    }
  }
  return result;
}

}  // namespace gpurdma::tuning
