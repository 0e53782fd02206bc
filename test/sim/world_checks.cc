// What must hold when everything has ended.
#include "test/sim/world.h"

namespace gpurdma::sim {

void World::check_at_end() {
  for (size_t i = 0; i < results_.size(); ++i) {
    const Operation& op = case_.operations[i];
    const Result& result = results_[i];
    const std::string name = "operation " + std::to_string(i);
    const bool concerned_here = concerned(case_.comms[size_t(op.comm)]);
    const bool own = case_.fault == Fault::scratch || case_.fault == Fault::gpu;  // the victim's failure alone
    const bool may_fail = case_.fault != Fault::none && (!own || (concerned_here && !op.last));
    if (result.failed && !may_fail) fail(name + " failed on some ranks");
    if (case_.fault == Fault::scratch && result.failed && result.ok)
      fail(name + " failed on some ranks and not on others");
    if (case_.fault == Fault::mismatch && concerned_here && !op.last && !result.failed &&
        case_.comms[size_t(op.comm)].size() > 1)
      fail(name + " did not fail, though counts differ");
  }
  if (case_.fault != Fault::none) check_closed();
  for (int r = 0; r < case_.ranks; ++r) {
    if (!network_.alive(r)) continue;
    Rank& at = rank(r);
    Engine& engine = *at.engine;
    const std::string name = "rank " + std::to_string(r);
    const bool clean = case_.fault == Fault::none || case_.fault == Fault::scratch || case_.fault == Fault::gpu;
    if (clean && engine.early_bytes()) fail(name + " keeps early messages");
    for (Communicator*& comm : at.comms)
      if (comm) engine.free_communicator(comm);
    if (engine.active() || engine.unclaimed()) fail(name + " has operations that have not ended");
    if (engine.early_bytes()) fail(name + " keeps early messages of no communicator");
    if (engine.scratch_bytes()) fail(name + " keeps scratch");
    if (at.gpus->open()) fail(name + " has work on GPUs that has not ended");
    if (at.gpus->held()) fail(name + " keeps memory of GPUs");
    if (at.begun != at.released) fail(name + " has not released all plans");
  }
  while (network_.step() >= 0) {
  }
  for (int r = 0; r < case_.ranks; ++r)
    if (network_.alive(r) && network_.port(r).open() && case_.fault == Fault::none)
      fail("rank " + std::to_string(r) + " leaves messages open");
  if (!network_.complaint().empty()) fail(network_.complaint());
  bury_the_dead();
}

// Gives back what a dead rank still has, for the leak checker.
void World::bury_the_dead() {
  for (int r = 0; r < case_.ranks; ++r) {
    if (network_.alive(r)) continue;
    network_.port(r).lose_all();
    for (Communicator* comm : rank(r).comms)
      if (comm) rank(r).engine->close(*comm, Status::closed);
    collect(r);
  }
}

// Either nobody or everybody has closed a communicator, and what is closed refuses new operations.
void World::check_closed() {
  for (size_t c = 0; c < case_.comms.size(); ++c) {
    const std::vector<int>& members = case_.comms[c];
    size_t closed = 0, alive = 0;
    for (const int r : members) {
      if (!network_.alive(r)) continue;
      ++alive;
      Communicator& comm = *rank(r).comms[c];
      if (comm.closed == Status::ok) continue;
      ++closed;
      Plan plan(comm.rank, comm.size);
      plan.seal();
      ++rank(r).begun;
      Run* run = nullptr;
      const Binding binding{nullptr, nullptr, 1, nullptr};
      if (rank(r).engine->begin(plan, comm, comm.next_call(CallClass::nonblocking), binding, {}, &run) !=
          Status::closed)
        fail("a closed communicator takes operations");
    }
    const bool anywhere = has_deadline(case_.fault) || case_.fault == Fault::errors;
    if (closed && ((!concerned(members) && !anywhere) || case_.fault == Fault::scratch || case_.fault == Fault::gpu))
      fail("communicator " + std::to_string(c) + " was closed without need");
    const bool may_differ = case_.fault == Fault::unable || case_.fault == Fault::frozen;  // not all could be told
    if (closed && closed != alive && !may_differ)
      fail("communicator " + std::to_string(c) + " was closed on " + std::to_string(closed) + " of " +
           std::to_string(alive) + " ranks");
  }
}

}  // namespace gpurdma::sim
