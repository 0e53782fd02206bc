// gpurdma_tune: measures on the ranks of this job which algorithm, piece, depth and radix is fastest at which size, and
// writes a tuning file.
//
//   mpirun --mca coll ^gpurdma gpurdma_tune [--output FILE] [--quick] [--ranks RANGE] [--max BYTES] [--comment TEXT]...
//     [--nodes SPEC]
//
// contrib/tune runs it so and says what the options mean; --nodes pretends nodes, in the words of coll/node_spec.h.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "coll/tuning_file.h"
#include "contrib/tuning/ranks.h"
#include "contrib/tuning/search.h"

namespace gpurdma::tuning {
namespace {

struct Arguments {
  std::string output = "tuning.txt", ranks;
  std::vector<std::string> comments;  // for the head of the file
  NodeSpec nodes;                     // pretended
  Search search;
};

[[noreturn]] void refuse(const std::string& why) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::fprintf(stderr, "gpurdma_tune: %s\n", why.c_str());
  MPI_Finalize();
  std::exit(2);
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--quick") {
      arguments.search.heats = {1500, 0.5e6, 5, 1.25};
      arguments.search.finals = {1500, 1e6, 7, 1.25};
      continue;
    }
    if (i + 1 == argc) refuse(option + " is not understood, or has no value");
    const char* value = argv[++i];
    if (option == "--output")
      arguments.output = value;
    else if (option == "--ranks")
      arguments.ranks = value;
    else if (option == "--comment")
      arguments.comments.push_back(value);
    else if (option == "--nodes" && NodeSpec::parse(value, &arguments.nodes))
      continue;
    else if (option == "--max")
      arguments.search.most_bytes = std::strtoull(value, nullptr, 10);
    else
      refuse(option + " " + value + " is not understood");
  }
  if (arguments.search.most_bytes < arguments.search.least_bytes) refuse("--max is a number of bytes, 4 or more");
  return arguments;
}

// The part of each row that says for which ranks it is: those of this job, unless others are asked for.
void limit_to(std::vector<TuningRow>& rows, const Job& job, const std::string& ranks) {
  const std::string text = "allreduce ranks " + (ranks.empty() ? std::to_string(job.ranks) : ranks) + " nodes " +
                           std::to_string(job.nodes()) + " " + catalogue()[0].name;
  const ParsedTuning parsed = parse_tuning(text);
  if (!parsed.error.empty()) refuse("--ranks " + ranks + ": a range is needed, as 4-7 or 8-");
  for (TuningRow& row : rows) {
    row.ranks = parsed.rows[0].ranks;
    row.nodes = parsed.rows[0].nodes;
  }
}

std::string head(const Ranks& ranks, const Arguments& arguments) {
  char date[32], mpi[MPI_MAX_LIBRARY_VERSION_STRING];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  int length = 0;
  MPI_Get_library_version(mpi, &length);
  mpi[std::strcspn(mpi, ",\n")] = '\0';
  std::string text = "# Tuning of gpurdma, made by contrib/tune on " + std::string(date) + ".\n";
  text += "# " + std::to_string(ranks.job().ranks) + " ranks on " + std::to_string(ranks.job().nodes()) +
          (ranks.job().nodes() == 1 ? " node" : " nodes") + (ranks.oversubscribed() ? ", more ranks than cores" : "") +
          "; gpurdma " GPURDMA_VERSION ", " + mpi + "\n";
  for (const std::string& comment : arguments.comments) text += "# " + comment + "\n";
  return text + "# To use it: mpirun --mca coll_gpurdma_tuning FILE, or OMPI_MCA_coll_gpurdma_tuning=FILE.\n";
}

// All or nothing: an interrupted run leaves the file that was there.
bool write_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".new";
  std::FILE* file = std::fopen(temporary.c_str(), "w");
  if (!file) return std::perror(temporary.c_str()), false;
  const bool written = std::fputs(text.c_str(), file) >= 0;
  if (std::fclose(file) == 0 && written && std::rename(temporary.c_str(), path.c_str()) == 0) return true;
  std::perror(path.c_str());
  unlink(temporary.c_str());
  return false;
}

void report(const Result& result, double spread) {
  std::printf("\n%10s %12s %12s %7s   %s\n", "bytes", "table us", "built-in us", "ratio", "the table's choice");
  std::vector<double> us;
  for (size_t i = 0; i < result.sizes.size(); ++i) {
    us.push_back(result.table_timings[i].us);
    std::printf("%10s %12.2f %12.2f %7.2f   %s\n", in_units(result.sizes[i]).c_str(), us[i],
                result.builtin_timings[i].us, us[i] / result.builtin_timings[i].us, to_text(result.table[i]).c_str());
  }
  constexpr double kQuiet = 0.1;  // noise on a machine where nothing else runs is below
  std::vector<double> noise;
  for (const Timing& timing : result.table_timings) noise.push_back(timing.noise);
  std::sort(noise.begin(), noise.end());
  if (noise[noise.size() / 2] > kQuiet)
    std::printf(
        "warning: times varied by %.0f %%: something else ran on this machine, run this again when it is quiet\n",
        100 * noise[noise.size() / 2]);
  for (const size_t i : cliffs(us, spread))
    std::printf(
        "warning: %s bytes take longer than %s bytes, %.2f us and %.2f us: run this again on a quiet machine; if it "
        "stays, the algorithms have a cliff there\n",
        in_units(result.sizes[i]).c_str(), in_units(result.sizes[i + 1]).c_str(), us[i], us[i + 1]);
}

class Clock {
 public:
  void show(const std::string& next, double done) const {
    const double spent = MPI_Wtime() - start_;
    std::printf("%3.0f %%  %4.0f s", 100 * done, spent);
    if (done > 0.02) std::printf(", about %.0f s left", spent * (1 - done) / done);
    std::printf(": %s\n", next.c_str());
    std::fflush(stdout);
  }

 private:
  double start_ = MPI_Wtime();
};

int run(const Arguments& arguments) {
  Ranks ranks(arguments.search.most_bytes, arguments.nodes);
  if (ranks.job().ranks < 2) refuse("one rank has nothing to tune: two or more are needed");
  std::vector<TuningRow> unused;
  limit_to(unused, ranks.job(), arguments.ranks);  // before the long part
  const Clock clock;
  Result result = search(ranks, ranks.job(), arguments.search, [&](const std::string& next, double done) {
    if (ranks.rank() == 0) clock.show(next, done);
  });
  if (ranks.rank() != 0) return 0;
  limit_to(result.rows, ranks.job(), arguments.ranks);
  std::string text = head(ranks, arguments);
  for (const TuningRow& row : result.rows) text += to_line(row) + "\n";
  report(result, arguments.search.spread);
  std::printf("\n%s", text.c_str());
  if (!write_file(arguments.output, text)) return 1;
  std::printf("\nwritten to %s\n", arguments.output.c_str());
  return 0;
}

}  // namespace
}  // namespace gpurdma::tuning

int main(int argc, char** argv) {
  using namespace gpurdma::tuning;
  MPI_Init(&argc, &argv);
  const int status = run(parse(argc, argv));
  MPI_Finalize();
  return status;
}
