#include "test/sim/case.h"

#include <algorithm>
#include <numeric>

namespace gpurdma::sim {
namespace {

// Most elements and messages of an operation, all ranks together, in a small case; some cases are 10 and 40 times as
// large.
constexpr size_t kElements = 6000, kMessages = 2000;

int draw_ranks(Random& random) {
  const uint64_t what = random.below(1000);
  if (what < 780) return int(random.between(1, 9));
  if (what < 980) return int(random.between(10, 33));
  if (what < 995) return random.one_of(std::vector<int>{64, 65, 100, 127});
  return 257;
}

std::vector<int> draw_members(Random& random, int ranks) {
  std::vector<int> members(static_cast<size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  if (random.percent(60)) return members;
  random.shuffle(members);
  if (random.percent(50)) members.resize(size_t(random.between(1, uint64_t(ranks))));
  return members;
}

// One node, equal ones, uneven ones, or ranks dealt out in turn or at random.
std::vector<uint32_t> draw_nodes(Random& random, int ranks) {
  std::vector<uint32_t> nodes(static_cast<size_t>(ranks));
  const uint64_t most = random.one_of(std::vector<uint64_t>{2, 3, 4, 8, 16});
  switch (random.below(5)) {
    case 0:
      break;
    case 1:
      for (size_t rank = 0; rank < nodes.size(); ++rank) nodes[rank] = uint32_t(rank / most);
      break;
    case 2:
      for (uint32_t rank = 0, node = 0; rank < nodes.size(); ++node)
        for (uint64_t n = random.between(1, most); n > 0 && rank < nodes.size(); --n) nodes[rank++] = node;
      break;
    case 3:
      for (size_t rank = 0; rank < nodes.size(); ++rank) nodes[rank] = uint32_t(rank % most);
      break;
    default:
      for (uint32_t& node : nodes) node = uint32_t(random.below(most));
  }
  return nodes;
}

Operation draw_operation(Random& random, const Case& c, size_t scale, const Pinned& pinned) {
  Operation op{};
  op.comm = int(random.below(c.comms.size()));
  const size_t p = c.comms[size_t(op.comm)].size();
  op.call_class = CallClass(random.below(3));
  op.persistent = uint32_t(random.below(2));

  std::vector<const Algorithm*> able;
  for (const Algorithm& algorithm : catalogue())
    if (algorithm.takes(int(p)) && (!pinned.algorithm || pinned.algorithm == &algorithm)) able.push_back(&algorithm);
  op.algorithm = able.empty() ? nullptr : random.one_of(able);

  std::vector<const Element*> fitting;
  for (const Element& element : elements())
    if (element.any_order || (op.algorithm && !op.algorithm->limits.commutative)) fitting.push_back(&element);
  op.element = random.one_of(fitting);

  const size_t most = scale * kElements / p;
  op.count = std::min(most, random.one_of(std::vector<size_t>{0, 1, p - 1, p, p + 1, 7, 101, 1009, 4093, 65537, most}));
  op.tuning.piece = random.one_of(std::vector<size_t>{1, 2, 3, 7, 64, 1000, 4096, 1 << 20});
  op.tuning.depth = random.one_of(std::vector<int>{1, 2, 3, 8});
  if (op.algorithm && op.algorithm->uses.radix) op.tuning.radix = int(random.between(2, 8));
  // About as many messages as the ring needs, or multiplying with a large radix.
  while (2 * p * p + size_t(op.tuning.radix) * p * (op.count / op.tuning.piece) > scale * kMessages &&
         op.tuning.piece < op.count)
    op.tuning.piece *= 2;
  op.in_place = random.percent(50);
  return op;
}

// Two starts of a persistent operation are the same operation.
void unify_persistent(std::vector<Operation>& operations) {
  for (size_t i = 0; i < operations.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const Operation& earlier = operations[j];
      const bool same = operations[i].call_class == CallClass::persistent &&
                        earlier.call_class == CallClass::persistent && operations[i].comm == earlier.comm &&
                        operations[i].persistent == earlier.persistent;
      if (!same) continue;
      operations[i] = earlier;
      break;
    }
  }
}

}  // namespace

const char* name_of(Fault fault) {
  static constexpr const char* kNames[kFaults] = {"none",     "scratch", "death",  "absent", "frozen",
                                                  "mismatch", "errors",  "unable", "gpu"};
  return kNames[int(fault)];
}

bool has_deadline(Fault fault) { return fault == Fault::absent || fault == Fault::frozen || fault == Fault::mismatch; }

bool Case::repeatable() const {
  return fault == Fault::none &&
         std::any_of(operations.begin(), operations.end(), [](const Operation& op) { return !op.element->exact; });
}

Case draw_case(uint64_t seed, const Pinned& pinned) {
  Random random(seed);
  Case c{};
  c.seed = seed;
  c.ranks = draw_ranks(random);
  if (pinned.ranks) c.ranks = pinned.ranks;
  c.fault = random.percent(65) ? Fault::none : Fault(random.below(kFaults));
  if (pinned.fault >= 0) c.fault = Fault(pinned.fault);
  // What ends by a deadline ends in real time.
  if (!pinned.ranks && has_deadline(c.fault)) c.ranks = 1 + c.ranks % 9;
  c.victim = int(random.below(uint64_t(c.ranks)));
  c.behaviour = Behaviour::draw(random);
  c.behaviour.nodes = draw_nodes(random, c.ranks);
  if (c.fault == Fault::errors) c.behaviour.errors = random.one_of(std::vector<unsigned>{1, 3, 30});
  if (random.percent(50) || c.fault == Fault::gpu) c.on_gpus = random.one_of(std::vector<unsigned>{10, 50, 100});
  if (c.fault == Fault::scratch) c.on_gpus = 0;  // short of memory all over, not just before it starts
  c.gpus.kernels = random.one_of(std::vector<unsigned>{0, 50, 100, 100});
  c.gpus.short_memory = random.one_of(std::vector<unsigned>{0, 0, 10, 100});
  c.gpus.longest_work = random.one_of(std::vector<uint64_t>{1, 10, 300});
  c.busy = random.one_of(std::vector<unsigned>{0, 20, 80});
  c.greet = random.percent(40) || c.fault == Fault::unable;
  c.free_early = c.fault == Fault::none && random.percent(30);
  const uint64_t size = random.below(100);
  const size_t scale = size < 85 ? 1 : size < 99 ? 10 : 40;
  const uint64_t comms = c.ranks > 33 ? 1 : random.between(1, 3);
  for (uint64_t i = 0; i < comms; ++i) c.comms.push_back(draw_members(random, c.ranks));
  const uint64_t operations = c.ranks > 33 ? random.between(1, 2) : random.between(1, 8);
  for (uint64_t i = 0; i < operations; ++i) c.operations.push_back(draw_operation(random, c, scale, pinned));
  unify_persistent(c.operations);
  // Whether a communicator still works is seen by a last, small operation.
  for (size_t i = 0; i < c.comms.size(); ++i) {
    Operation op = draw_operation(random, c, scale, pinned);
    while (size_t(op.comm) != i) op = draw_operation(random, c, scale, pinned);
    op.call_class = CallClass::nonblocking;
    op.count = 1;
    op.tuning = {1, 1};
    op.last = true;
    c.operations.push_back(op);
  }
  c.operations.erase(
      std::remove_if(c.operations.begin(), c.operations.end(), [](const Operation& op) { return !op.algorithm; }),
      c.operations.end());
  return c;
}

std::string Case::text() const {
  static constexpr const char* kClasses[] = {"blocking", "nonblocking", "persistent"};
  std::string text = std::to_string(ranks) + " ranks, fault " + name_of(fault) + ", victim " + std::to_string(victim) +
                     ", busy " + std::to_string(busy) + "%, on GPUs " + std::to_string(on_gpus) + "%" +
                     (greet ? ", greeting" : "") + (free_early ? ", communicators freed early" : "") +
                     "\n  network: " + behaviour.text() + "\n";
  for (size_t i = 0; i < comms.size(); ++i) {
    text += "  communicator " + std::to_string(i) + ": rank@node";
    for (size_t place = 0; place < comms[i].size() && place < 40; ++place)
      text += " " + std::to_string(comms[i][place]) + "@" + std::to_string(behaviour.nodes[size_t(comms[i][place])]);
    text += "\n";
  }
  for (size_t i = 0; i < operations.size(); ++i) {
    const Operation& op = operations[i];
    text += "  operation " + std::to_string(i) + ": communicator " + std::to_string(op.comm) + ", " +
            kClasses[int(op.call_class)] +
            (op.call_class == CallClass::persistent ? " " + std::to_string(op.persistent) : "") + ", " +
            op.algorithm->name + ", " + std::to_string(op.count) + " x " + op.element->name + ", piece " +
            std::to_string(op.tuning.piece) + ", depth " + std::to_string(op.tuning.depth) +
            (op.algorithm->uses.radix ? ", radix " + std::to_string(op.tuning.radix) : "") +
            (op.in_place ? ", in place" : "") + (op.last ? ", last" : "") + "\n";
  }
  return text;
}

}  // namespace gpurdma::sim
