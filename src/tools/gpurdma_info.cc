// gpurdma_info: shows what gpurdma would do, without running it. Needs no MPI.
//
// One function for each thing it can show, one row in kCommands. Exits with 2 when the arguments make no sense, with 1
// when a tuning file is wrong.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "coll/layout.h"
#include "coll/node_spec.h"
#include "coll/selection.h"
#include "coll/tuning_file.h"
#include "device/gpus.h"
#include "plan/chain.h"
#include "plan/print.h"
#include "reduce/types.h"

namespace gpurdma {
namespace {

// ---- arguments ----

constexpr size_t kMostRanks = 1 << 20;
constexpr size_t kMostCount = size_t{1} << 48;

struct Arguments {
  std::string command, collective, file;  // command: without its dashes
  size_t ranks = 0, count = 0, piece = 0, depth = 0, radix = 0, gpus = 0;
  long rank = -1;  // all
  std::string algorithm = "auto", type = "float32";
  NodeSpec nodes;
  bool in_place = false, has_count = false;
};

[[noreturn]] void refuse(const std::string& what) {
  std::fprintf(stderr, "gpurdma_info: %s\nTry gpurdma_info --help.\n", what.c_str());
  std::exit(2);
}

// A whole number from least to most; K, M and G behind it mean 2^10, 2^20 and 2^30.
size_t number(const std::string& option, const char* text, size_t least, size_t most) {
  char* end = nullptr;
  const bool digit = text[0] >= '0' && text[0] <= '9';
  unsigned long long value = digit ? std::strtoull(text, &end, 10) : 0;
  bool good = digit;
  if (good && *end != '\0') {
    static constexpr char kUnits[] = "KMG";
    const char* unit = std::strchr(kUnits, *end);
    const int shift = unit == nullptr ? 0 : 10 * static_cast<int>(unit - kUnits + 1);
    good = shift > 0 && end[1] == '\0' && value <= (most >> shift);
    if (good) value <<= shift;
  }
  if (!good || value < least || value > most) {
    refuse(option + " " + text + ": a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
           " is needed (K, M and G are understood)");
  }
  return value;
}

struct Command {
  const char* name;
  int (*run)(const Arguments&);
};
const Command* find_command(const std::string& name);

// Takes `--option value` and `--option=value`.
Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    std::string option = argv[i];
    const size_t equals = option.find('=');
    std::string given = equals == std::string::npos ? "" : option.substr(equals + 1);
    option.resize(std::min(equals, option.size()));
    bool taken = equals == std::string::npos;  // whether what was given behind '=' had a use
    const auto value = [&]() -> const char* {
      if (equals != std::string::npos) return taken = true, given.c_str();
      if (i + 1 == argc) refuse(option + " needs a value");
      return argv[++i];
    };

    if (option.compare(0, 2, "--") == 0 && find_command(option.substr(2)) != nullptr) {
      if (!arguments.command.empty()) refuse("only one of --" + arguments.command + " and " + option + " at a time");
      arguments.command = option.substr(2);
      if (arguments.command == "plan") arguments.collective = value();
      const bool file_follows = i + 1 < argc && std::strncmp(argv[i + 1], "--", 2) != 0;
      if (arguments.command == "tuning" && (!taken || file_follows)) arguments.file = value();
    } else if (option == "--ranks") {
      arguments.ranks = number(option, value(), 1, kMostRanks);
    } else if (option == "--count") {
      arguments.count = number(option, value(), 0, kMostCount);
      arguments.has_count = true;
    } else if (option == "--rank") {
      arguments.rank = static_cast<long>(number(option, value(), 0, kMostRanks - 1));
    } else if (option == "--piece") {
      arguments.piece = number(option, value(), 1, kMostCount);
    } else if (option == "--depth") {
      arguments.depth = number(option, value(), 1, 1024);
    } else if (option == "--radix") {
      arguments.radix = number(option, value(), 2, kMostRadix);
    } else if (option == "--gpus") {
      arguments.gpus = number(option, value(), 0, kMostRanks);
    } else if (option == "--nodes") {
      const char* words = value();
      if (!NodeSpec::parse(words, &arguments.nodes)) {
        refuse(option + " " + words +
               ": N (blocks of N ranks), N,M,... (of these sizes) or %N (rank modulo N) is needed");
      }
    } else if (option == "--algorithm") {
      arguments.algorithm = value();
    } else if (option == "--type") {
      arguments.type = value();
    } else if (option == "--in-place") {
      arguments.in_place = true;
    } else {
      refuse("unknown argument " + std::string(argv[i]));
    }
    if (!taken) refuse(option + " takes no value");
  }
  return arguments;
}

// ---- --plan ----

Collective collective_of(const Arguments& arguments) {
  std::string names;
  for (int i = 0; i < kCollectives; ++i) {
    const Collective collective = static_cast<Collective>(i);
    if (arguments.collective == name_of(collective)) return collective;
    names += std::string(i == 0 ? "" : ", ") + name_of(collective);
  }
  refuse("--plan " + arguments.collective + ": there are plans for " + names);
}

Type type_of(const Arguments& arguments) {
  std::string names;
  for (int i = 0; i < kTypes; ++i) {
    const Type type = static_cast<Type>(i);
    if (arguments.type == name_of(type)) return type;
    names += std::string(i == 0 ? "" : ", ") + name_of(type);
  }
  refuse("--type " + arguments.type + ": must be one of " + names);
}

// What the call would use: the tuning table, with what the arguments force.
Choice choose(const Arguments& arguments, Collective collective, int nodes, size_t element_bytes) {
  const int ranks = static_cast<int>(arguments.ranks);
  Forced forced{nullptr, arguments.piece, static_cast<int>(arguments.depth), static_cast<int>(arguments.radix)};
  if (arguments.algorithm != "auto") {
    forced.algorithm = find_algorithm(collective, arguments.algorithm.c_str());
    if (forced.algorithm == nullptr) {
      refuse("--algorithm " + arguments.algorithm + ": must be auto or one of " + algorithm_names(collective));
    }
    if (!forced.algorithm->takes(ranks)) {
      refuse("--algorithm " + arguments.algorithm + ": cannot run among " + std::to_string(ranks) + " ranks");
    }
  }
  return select(builtin_tuning(),
                {collective, ranks, nodes, arguments.count * element_bytes, element_bytes, int(arguments.gpus)},
                forced);
}

int show_plan(const Arguments& arguments) {
  const Collective collective = collective_of(arguments);
  const size_t element = size_of(type_of(arguments));
  if (arguments.ranks == 0) refuse("--plan needs --ranks");
  if (!arguments.has_count) refuse("--plan needs --count");
  if (arguments.rank >= static_cast<long>(arguments.ranks)) {
    refuse("--rank " + std::to_string(arguments.rank) + ": must be below --ranks " + std::to_string(arguments.ranks));
  }
  const int ranks = static_cast<int>(arguments.ranks);
  const std::vector<uint32_t> node_of_rank = arguments.nodes.nodes(ranks);
  Layouts layouts;
  const std::shared_ptr<const Layout> layout = layouts.intern({node_of_rank.data(), node_of_rank.size()});
  const int nodes = layout ? layout->nodes() : 1;
  const Choice choice = choose(arguments, collective, nodes, element);
  std::printf("%s among %d ranks on %d node%s, %zu x %s%s: %s, piece %zu elements, depth %d", name_of(collective),
              ranks, nodes, nodes > 1 ? "s" : "", arguments.count, arguments.type.c_str(),
              arguments.in_place ? " in place" : "", choice.algorithm->name, choice.tuning.piece, choice.tuning.depth);
  if (choice.algorithm->uses.radix) std::printf(", radix %d", choice.tuning.radix);
  std::printf("\n");

  const auto build = [&](int rank) {
    Plan plan(rank, ranks);
    choice.algorithm->build(plan, Group(rank, ranks, layout.get()), {arguments.count, arguments.in_place, 0},
                            choice.tuning);
    plan.seal();
    return plan;
  };
  const auto show = [&](const Plan& plan) {
    const Sent sent = sent_by(plan);
    std::printf("\nrank %d", plan.rank());
    if (layout) std::printf(", node %d", layout->node_of(plan.rank()));
    std::printf("\n%s        sends %zu messages, %zu bytes; scratch %zu bytes\n", to_text(plan).c_str(), sent.messages,
                sent.elements * element, plan.scratch_elements() * element);
  };
  for (int rank = 0; rank < ranks; ++rank) {
    if (arguments.rank < 0 || arguments.rank == rank) show(build(rank));
  }

  // Counting steps takes the plans of all ranks at once, and building each takes time for every rank.
  constexpr int kMostRanks = 4096;
  constexpr size_t kMostOperations = 4 << 20;
  if (ranks > kMostRanks) {
    std::printf("\nsteps: not counted, there are more than %d ranks\n", kMostRanks);
    return 0;
  }
  std::vector<Plan> plans;
  size_t operations = 0;
  for (int rank = 0; rank < ranks && operations < kMostOperations; ++rank) {
    plans.push_back(build(rank));
    operations += plans.back().ops().size();
  }
  if (operations >= kMostOperations) {
    std::printf("\nsteps: not counted, there are more than %zu operations\n", kMostOperations);
  } else {
    std::printf("\nsteps: %d (the longest chain of messages that wait for each other)\n", longest_chain(plans));
  }
  return 0;
}

// ---- the others ----

int show_algorithms(const Arguments&) {
  for (const Algorithm& algorithm : catalogue()) {
    std::string needs;
    if (algorithm.limits.power_of_two) needs += "; a power of two ranks";
    if (algorithm.limits.most_ranks != INT_MAX) {
      needs += "; at most " + std::to_string(algorithm.limits.most_ranks) + " ranks";
    }
    if (algorithm.limits.commutative) needs += "; commutative ops";
    if (algorithm.uses.radix) needs += "; has a radix";
    if (algorithm.uses.layout) needs += "; follows the nodes";
    std::printf("%s  %-12s  %s%s\n", name_of(algorithm.collective), algorithm.name, algorithm.description,
                needs.c_str());
  }
  return 0;
}

int show_tuning(const Arguments& arguments) {
  ParsedTuning parsed;
  if (!arguments.file.empty()) parsed = read_tuning(arguments.file.c_str());
  if (!parsed.error.empty()) {
    std::fprintf(stderr, "gpurdma_info: %s\n", parsed.error.c_str());
    return 1;
  }
  for (const TuningRow& row : before_builtin(parsed.rows)) std::printf("%s\n", to_line(row).c_str());
  return 0;
}

int show_version(const Arguments&) {
  std::printf("gpurdma %s\nmemory of GPUs: %s\n", GPURDMA_VERSION,
              kHasCuda ? "supported" : "not supported, this build was made without CUDA");
  return 0;
}

int show_help(const Arguments&) {
  std::printf(R"(usage: gpurdma_info COMMAND

  --algorithms          the algorithms there are, and what each needs
  --tuning [FILE]       the table: which algorithm runs when; the first row that fits applies. With a tuning
                        file its rows, then the built-in ones; a file that is wrong is refused with status 1
  --plan COLLECTIVE     what each rank does, operation by operation
      --ranks N           number of ranks
      --count N           elements of the vector
      --algorithm NAME    instead of what the table says: %s
      --piece BYTES       most bytes in one message
      --depth N           scratch slots per neighbour
      --radix N           partners of a step plus one, of algorithms that have a radix
      --nodes SPEC        where the ranks are: N (blocks of N), N,M,... (blocks of these sizes, the last one repeated),
                          %%N (rank modulo N); all on one node unless given
      --gpus N            ranks that could use a GPU, which the table asks for; none unless given
      --type TYPE         element type, float32 unless given
      --in-place          the contribution is in the output
      --rank R            only this rank
  --version
  --help

Numbers may end in K, M or G.
example: gpurdma_info --plan allreduce --ranks 6 --count 1000 --algorithm ring
)",
              algorithm_names(Collective::allreduce));
  return 0;
}

constexpr Command kCommands[] = {
    {"plan", show_plan}, {"algorithms", show_algorithms}, {"tuning", show_tuning}, {"version", show_version},
    {"help", show_help},
};

const Command* find_command(const std::string& name) {
  for (const Command& command : kCommands) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

}  // namespace
}  // namespace gpurdma

int main(int argc, char** argv) {
  using namespace gpurdma;
  const Arguments arguments = parse(argc, argv);
  return find_command(arguments.command.empty() ? "help" : arguments.command)->run(arguments);
}
