// simulator: runs cases drawn from seeds until time is up, and says how to repeat the one that failed.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/clock.h"
#include "base/log.h"
#include "test/sim/world.h"

namespace gpurdma::sim {
namespace {

struct Options {
  uint64_t seed = 1;
  uint64_t cases = UINT64_MAX;
  double seconds = 20;
  bool verbose = false;
  Pinned pinned;
};

constexpr const char* kUsage =
    "usage: simulator [--seed N] [--cases N] [--seconds S] [--algorithm NAME] [--ranks N] [--fault NAME] [--verbose]\n"
    "  Case number i has seed N + i. --seed random draws it. It ends after S seconds (20), or as many cases.\n"
    "  Faults: none, scratch, death, absent, frozen, mismatch, errors, unable, gpu.\n";

bool parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const auto is = [&](const char* name) { return std::strcmp(argv[i], name) == 0; };
    if (is("--verbose")) {
      options->verbose = true;
      continue;
    }
    if (i + 1 == argc) return false;
    const char* value = argv[i + 1];
    if (is("--seed")) {
      const bool random = std::strcmp(value, "random") == 0;
      options->seed = random ? mix(clock::nanoseconds()) >> 16 : std::strtoull(value, nullptr, 10);
    } else if (is("--cases")) {
      options->cases = std::strtoull(value, nullptr, 10);
    } else if (is("--seconds")) {
      options->seconds = std::strtod(value, nullptr);
    } else if (is("--ranks")) {
      options->pinned.ranks = std::atoi(value);
      if (options->pinned.ranks < 1) return false;
    } else if (is("--algorithm")) {
      options->pinned.algorithm = find_algorithm(Collective::allreduce, value);
      if (!options->pinned.algorithm) return false;
    } else if (is("--fault")) {
      for (int f = 0; f < kFaults; ++f)
        if (std::strcmp(value, name_of(Fault(f))) == 0) options->pinned.fault = f;
      if (options->pinned.fault < 0) return false;
    } else {
      return false;
    }
    ++i;
  }
  return true;
}

// Lines of the engine: wrong where nothing goes wrong, and expected where something does.
bool verbose = false;
std::string first_line;
void sink(log::Level level, const char* line) {
  if (level <= log::Level::warn && first_line.empty()) first_line = line;
  if (verbose) std::fprintf(stderr, "    %s\n", line);
}

std::string run_case(const Case& c) {
  first_line.clear();
  World world(c, c.seed);
  std::string wrong = world.run();
  if (wrong.empty() && c.fault == Fault::none && !first_line.empty()) wrong = "unexpected line: " + first_line;
  if (!wrong.empty() || !c.repeatable()) return wrong;
  World other(c, mix(c.seed));
  wrong = other.run();
  if (wrong.empty() && world.result_hash() != other.result_hash()) wrong = "other bits over another network";
  return wrong;
}

void print_repeat(const Options& options, uint64_t seed) {
  std::printf("repeat with: simulator --seed %llu --cases 1", static_cast<unsigned long long>(seed));
  if (options.pinned.algorithm) std::printf(" --algorithm %s", options.pinned.algorithm->name);
  if (options.pinned.ranks) std::printf(" --ranks %d", options.pinned.ranks);
  if (options.pinned.fault >= 0) std::printf(" --fault %s", name_of(Fault(options.pinned.fault)));
  std::printf(" --verbose\n");
}

int run(const Options& options) {
  verbose = options.verbose;
  log::configure(verbose ? log::Level::debug : log::Level::warn, sink);
  const uint64_t start = clock::nanoseconds();
  uint64_t done = 0, by_fault[kFaults] = {};
  while (done < options.cases && double(clock::nanoseconds() - start) * 1e-9 < options.seconds) {
    const uint64_t seed = options.seed + done;
    const Case c = draw_case(seed, options.pinned);
    if (verbose) std::printf("case %llu: %s", static_cast<unsigned long long>(seed), c.text().c_str());
    const std::string wrong = run_case(c);
    if (!wrong.empty()) {
      std::printf("FAILED: %s\n%s", wrong.c_str(), verbose ? "" : c.text().c_str());
      print_repeat(options, seed);
      return 1;
    }
    ++done;
    ++by_fault[int(c.fault)];
  }
  std::printf("simulator: %llu cases from seed %llu, all right;", static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(options.seed));
  for (int f = 0; f < kFaults; ++f)
    std::printf(" %s %llu%s", name_of(Fault(f)), static_cast<unsigned long long>(by_fault[f]),
                f + 1 < kFaults ? "," : "\n");
  return 0;
}

}  // namespace
}  // namespace gpurdma::sim

int main(int argc, char** argv) {
  gpurdma::sim::Options options;
  if (!gpurdma::sim::parse(argc, argv, &options)) {
    std::fputs(gpurdma::sim::kUsage, stderr);
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  return gpurdma::sim::run(options);
}
