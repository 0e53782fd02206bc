#include "test/sim/world.h"

#include <algorithm>
#include <ctime>

#include "base/log.h"

namespace gpurdma::sim {
namespace {

constexpr uint64_t kMostEvents = 50'000'000;  // beyond that it is an endless exchange of messages
constexpr size_t kLittleScratch = 4096;
constexpr double kDeadline = 0.02, kGrace = 0.01;

}  // namespace

World::World(const Case& what, uint64_t network_seed)
    : case_(what),
      random_(mix(network_seed)),
      network_(what.ranks, what.behaviour, network_seed),
      results_(what.operations.size()),
      victim_waits_(what.fault == Fault::absent || what.fault == Fault::frozen) {
  make_ranks();
  make_communicators();
  make_turns();
}

World::~World() = default;

// ---- making the world ----

void World::make_ranks() {
  for (int r = 0; r < case_.ranks; ++r) {
    ranks_.push_back(std::make_unique<Rank>());
    Engine::Limits limits;
    if (case_.fault == Fault::scratch && r == case_.victim) limits.scratch = kLittleScratch;
    if (has_deadline(case_.fault)) limits.deadline_s = kDeadline;
    limits.grace_s = kGrace;
    Engine::Host host;
    host.context = &rank(r);
    host.plan_released = [](void* rank, const Plan&) { ++static_cast<Rank*>(rank)->released; };
    FakeGpus::Behaviour gpus = case_.gpus;
    if (case_.fault == Fault::gpu && r == case_.victim) gpus.errors = random_.one_of(std::vector<unsigned>{1, 10, 50});
    rank(r).gpus = std::make_unique<FakeGpus>(network_, r, gpus, case_.seed);
    Placer::Rules rules;
    rules.mirror_always = random_.percent(10);
    rules.mirror_up_to = random_.one_of(std::vector<size_t>{0, 1000, 50000});
    rank(r).engine =
        std::make_unique<Engine>(network_.port(r), rank(r).counters, limits, host, rank(r).gpus.get(), rules,
                                 random_.percent(50) ? Stager::Direct::always : Stager::Direct::over_rdma);
    if (random_.percent(50)) network_.port(r).learn_gpu_memory();
    rank(r).persistent.resize(case_.comms.size());
  }
  if (case_.fault == Fault::unable) network_.port(case_.victim).disable();
}

void World::make_communicators() {
  for (int c = 0; c < int(case_.comms.size()); ++c) {
    const std::vector<int>& members = case_.comms[size_t(c)];
    std::vector<uint32_t> nodes;
    for (const int r : members) nodes.push_back(case_.behaviour.nodes[size_t(r)]);
    layouts_.push_back(interned_.intern({nodes.data(), nodes.size()}));
    for (int r = 0; r < case_.ranks; ++r) {
      Rank& at = rank(r);
      at.comms.push_back(nullptr);
      const auto place = std::find(members.begin(), members.end(), r);
      if (place == members.end()) continue;
      members_.push_back(std::make_unique<Member>(Member{this, c, int(place - members.begin())}));
      const CommHooks hooks{members_.back().get(), exchange, exchange_test, exchange_end, nullptr};
      // So that handles differ from rank to rank.
      Communicator* other = random_.percent(50) ? at.engine->new_communicator(0, 1, "other", hooks) : nullptr;
      at.comms.back() =
          at.engine->new_communicator(members_.back()->place, int(members.size()), std::to_string(c).c_str(), hooks);
      if (other && random_.percent(50)) at.engine->free_communicator(other);
    }
    if (case_.greet) continue;
    for (const int r : members) {
      for (int place = 0; place < int(members.size()); ++place) {
        const int peer = members[size_t(place)];
        if (peer == r) continue;
        Link& link = rank(r).comms.back()->link(place);
        Span<const char> address;
        if (network_.port(peer).address(&address) != Status::ok ||
            network_.port(r).connect(address, &link.peer) != Status::ok)
          fail("two ranks could not be linked");
        link.path = network_.port(r).path(link.peer);
        link.handle = rank(peer).comms.back()->handle;
        link.state = Link::State::up;
      }
    }
  }
}

void World::make_turns() {
  for (int r = 0; r < case_.ranks; ++r) {
    std::map<std::vector<int>, Line> lines;
    for (size_t i = 0; i < case_.operations.size(); ++i) {
      const Operation& op = case_.operations[i];
      const std::vector<int>& members = case_.comms[size_t(op.comm)];
      const auto place = std::find(members.begin(), members.end(), r);
      if (place == members.end()) continue;
      turns_.push_back(std::make_unique<Turn>());
      Turn& turn = *turns_.back();
      turn.operation = i;
      turn.rank = r;
      turn.place = int(place - members.begin());
      turn.count = count_of(op, r);
      const bool persistent = op.call_class == CallClass::persistent;
      Line& line = lines[{op.comm, int(op.call_class), persistent ? int(op.persistent) : 0, op.last}];
      line.turns.push_back(&turn);
      line.one_at_a_time = op.call_class != CallClass::nonblocking;
      line.last = op.last;
      ++rank(r).open;
    }
    for (auto& line : lines) rank(r).lines.push_back(std::move(line.second));
    const uint64_t spread = random_.one_of(std::vector<uint64_t>{1, 10, 100, 3000});
    start_later(r, spread);
  }
  const uint64_t when = random_.below(random_.one_of(std::vector<uint64_t>{1, 100, 5000}));
  if (case_.fault == Fault::death)
    network_.later(case_.victim, when, Where::outside, [this] { network_.kill(case_.victim); });
  if (case_.fault == Fault::frozen)
    network_.later(case_.victim, when, Where::outside, [this] { frozen_ = victim_waits_; });
}

size_t World::count_of(const Operation& operation, int rank) const {
  const bool other = case_.fault == Fault::mismatch && rank == case_.victim && !operation.last;
  return operation.count + (other ? 1 + salt(operation.count) % 3 : 0);
}

bool World::concerned(const std::vector<int>& members) const {
  return case_.fault != Fault::none && std::find(members.begin(), members.end(), case_.victim) != members.end();
}

// ---- starting and ending operations ----

bool World::startable(const Rank& rank, const Line& line) const {
  if (line.next == line.turns.size()) return false;
  const bool victim = line.turns[0]->rank == case_.victim;
  if (victim && (frozen_ || (victim_waits_ && case_.fault == Fault::absent))) return false;
  if (line.one_at_a_time && line.next > 0 && !line.turns[line.next - 1]->ended) return false;
  return !line.last || std::all_of(rank.lines.begin(), rank.lines.end(), [](const Line& other) {
    return other.last || std::all_of(other.turns.begin(), other.turns.end(), [](const Turn* t) { return t->ended; });
  });
}

// Starts one after another what may start.
void World::start_later(int r, uint64_t spread) {
  network_.later(r, random_.below(spread), Where::outside, [this, r, spread] {
    if (start_one(rank(r))) start_later(r, spread);
  });
}

bool World::start_one(Rank& rank) {
  std::vector<Line*> able;
  for (Line& line : rank.lines)
    if (startable(rank, line)) able.push_back(&line);
  if (able.empty()) return false;
  Line& line = *random_.one_of(able);
  begin(*line.turns[line.next++]);
  return true;
}

void World::make_buffers(Turn& turn) {
  const Operation& op = operation_of(turn);
  const size_t bytes = turn.count * op.element->bytes;
  turn.output = Buffer(bytes, op.element->bytes);
  if (!op.in_place) turn.input = Buffer(bytes, op.element->bytes);
  op.element->fill(op.in_place ? turn.output.data() : turn.input.data(), salt(turn.operation), turn.place, turn.count);
  // The last operations show what still works: not the GPUs, where those fail.
  const bool on_host = case_.fault == Fault::gpu && op.last;
  turn.output_at = on_host ? turn.output.data() : put_somewhere(rank(turn.rank), turn.output);
  turn.input_at = op.in_place ? turn.output_at
                  : on_host   ? turn.input.data()
                              : put_somewhere(rank(turn.rank), turn.input);
}

void* World::put_somewhere(Rank& rank, const Buffer& buffer) {
  if (!random_.percent(case_.on_gpus)) return buffer.data();
  return rank.gpus->adopt(GpuId(random_.below(FakeGpus::kGpus)), buffer.data(), buffer.bytes());
}

// Makes the plan for where the operands are worked on.
Binding World::bind(Turn& turn) {
  const Operation& op = operation_of(turn);
  Communicator& comm = *rank(turn.rank).comms[size_t(op.comm)];
  Placer& placer = rank(turn.rank).engine->placer();
  const auto type = Type(op.element - elements().begin());
  const Operands operands{turn.input_at, turn.output_at, turn.count, op.element->bytes, Op::sum, type};
  Binding binding{nullptr, nullptr, op.element->bytes, op.element->reduce};
  Placement& placement = binding.placement;
  const auto plan = [&] {
    turn.plan = std::make_unique<Plan>(turn.place, comm.size);
    op.algorithm->build(*turn.plan, Group(turn.place, comm.size, layouts_[size_t(op.comm)].get()),
                        {turn.count, !placement.input, 0}, op.tuning);
    turn.plan->seal();
  };
  binding.failed = placer.place(operands, &placement);
  plan();
  if (placement.kind == Placement::Kind::resident &&
      !placer.take_scratch(placement, turn.plan->scratch_elements() * op.element->bytes)) {
    binding.failed = placer.mirror(operands, &placement);
    plan();
  }
  binding.input = placement.input;
  binding.output = placement.output;
  binding.op = operands.op;
  binding.type = operands.type;
  binding.window = uint32_t(op.tuning.depth);
  return binding;
}

void World::begin(Turn& turn) {
  const Operation& op = operation_of(turn);
  Rank& at = rank(turn.rank);
  Communicator& comm = *at.comms[size_t(op.comm)];
  make_buffers(turn);

  Number number;
  if (op.call_class == CallClass::persistent) {
    while (at.persistent[size_t(op.comm)] <= op.persistent) at.persistent[size_t(op.comm)] = comm.new_persistent() + 1;
    number = comm.next_start(op.persistent);
  } else {
    number = comm.next_call(op.call_class);
  }
  const Ticket ticket{&turn, 0, turn.output.bytes()};
  turn.begun = true;
  ++at.begun;
  const Binding binding = bind(turn);
  const Status status = at.engine->begin(*turn.plan, comm, number, binding, ticket, &turn.run);
  if (status != Status::ok) end(turn, status);
  collect(turn.rank);
}

void World::collect(int r) {
  Engine& engine = *rank(r).engine;
  Engine::Ended ended[3];
  const size_t before = rank(r).open;
  while (const int n = engine.finished(ended, int(std::size(ended))))
    for (int i = 0; i < n; ++i) end(*static_cast<Turn*>(ended[i].cookie), ended[i].status);
  if (before == rank(r).open) return;
  start_later(r, 20);
  if (case_.free_early) free_idle_communicators(r);
}

void World::end(Turn& turn, Status status) {
  if (turn.ended) return fail("an operation ended twice");
  turn.ended = true;
  turn.status = status;
  turn.run = nullptr;
  --rank(turn.rank).open;
  Result& result = results_[turn.operation];
  ++(status == Status::ok ? result.ok : result.failed);
  if (!turn.output.guards_intact() || (turn.input.data() && !turn.input.guards_intact()))
    fail("rank " + std::to_string(turn.rank) + " wrote beside a buffer of operation " + std::to_string(turn.operation));
  const bool mismatched = case_.fault == Fault::mismatch && concerned(case_.comms[size_t(operation_of(turn).comm)]);
  if (status == Status::ok && !mismatched) check_result(turn);
  // Nothing may be used past the end: it is gone.
  for (void* at : {turn.input_at, turn.output_at}) rank(turn.rank).gpus->disown(at);
  turn.input = Buffer();
  turn.output = Buffer();
  turn.plan.reset();
}

void World::check_result(Turn& turn) {
  const Operation& op = operation_of(turn);
  const std::string where = "operation " + std::to_string(turn.operation) + " on rank " + std::to_string(turn.rank);
  const size_t bytes = turn.count * op.element->bytes;
  Result& result = results_[turn.operation];
  if (!result.known) {
    const int size = int(case_.comms[size_t(op.comm)].size());
    size_t wrong = 0;
    if (!op.element->right(turn.output.data(), salt(turn.operation), size, turn.count, &wrong))
      fail(where + ": element " + std::to_string(wrong) + " is wrong");
    result.known = true;
    result.bits.assign(turn.output.data(), turn.output.data() + bytes);
  } else if (bytes && std::memcmp(result.bits.data(), turn.output.data(), bytes) != 0) {
    fail(where + ": other bits than on another rank");
  }
  if (op.in_place) return;
  std::vector<char> expected(bytes);
  op.element->fill(expected.data(), salt(turn.operation), turn.place, turn.count);
  if (bytes && std::memcmp(expected.data(), turn.input.data(), bytes) != 0) fail(where + ": the input was changed");
}

void World::free_idle_communicators(int r) {
  for (size_t c = 0; c < case_.comms.size(); ++c) {
    if (!rank(r).comms[c]) continue;
    const bool idle = std::none_of(turns_.begin(), turns_.end(), [&](const std::unique_ptr<Turn>& turn) {
      return turn->rank == r && size_t(operation_of(*turn).comm) == c && !turn->ended;
    });
    if (!idle) continue;
    rank(r).engine->free_communicator(rank(r).comms[c]);
    rank(r).comms[c] = nullptr;
  }
}

// The results of all operations, whichever ended first.
uint64_t World::result_hash() const {
  uint64_t hash = 0;
  for (const Result& result : results_) {
    for (const char c : result.bits) hash = (hash ^ uint64_t(c)) * 1099511628211u;
    hash = mix(hash);
  }
  return hash;
}

// ---- running ----

std::string World::run() {
  drive();
  if (failure_.empty() && victim_waits_) {
    victim_waits_ = frozen_ = false;
    start_later(case_.victim, 1);
    drive();
  }
  if (failure_.empty()) check_at_end();
  return failure_;
}

void World::drive() {
  while (failure_.empty()) {
    const int r = network_.step();
    if (!network_.complaint().empty()) return fail(network_.complaint());
    if (network_.events() > kMostEvents) return fail("no end in sight\n" + who_waits());
    if (r >= 0) {
      if (random_.percent(case_.busy)) {
        network_.later(r, network_.delay(), Where::outside, [] {});
        continue;
      }
      advance(r);
    } else if (all_ended()) {
      return;
    } else if (!spin_for_deadlines()) {
      return fail("nothing can happen any more, and not everything has ended\n" + who_waits());
    }
  }
}

void World::advance(int r) {
  if (frozen_ && r == case_.victim) return;
  rank(r).engine->progress();
  collect(r);
}

// Deadlines pass in real time. Whether something happened.
bool World::spin_for_deadlines() {
  if (!has_deadline(case_.fault)) return false;
  const uint64_t before = network_.events();
  for (int millisecond = 0; millisecond < 200 && network_.events() == before && !all_ended(); ++millisecond) {
    const timespec pause{0, 1000000};
    nanosleep(&pause, nullptr);
    for (int r = 0; r < case_.ranks; ++r) {
      for (int i = 0; i < 1100; ++i) advance(r);
    }
  }
  return network_.events() != before || all_ended();
}

bool World::all_ended() const {
  return std::all_of(turns_.begin(), turns_.end(), [&](const std::unique_ptr<Turn>& turn) {
    return turn->ended || !network_.alive(turn->rank) || (victim_waits_ && turn->rank == case_.victim);
  });
}

std::string World::who_waits() const {
  std::string text;
  for (const auto& turn : turns_) {
    if (turn->ended || !network_.alive(turn->rank)) continue;
    text += "  rank " + std::to_string(turn->rank) + ", operation " + std::to_string(turn->operation) + ": ";
    if (!turn->begun) {
      text += "not begun\n";
      continue;
    }
    int places[16];
    const int n = turn->run->waits_for(places, int(std::size(places)));
    text += std::string(turn->run->started() ? "" : "not started, ") + "status " + gpurdma::text(turn->run->status()) +
            ", waits for places";
    for (int i = 0; i < n && i < int(std::size(places)); ++i) text += " " + std::to_string(places[i]);
    text += "\n";
  }
  return text;
}

}  // namespace gpurdma::sim
