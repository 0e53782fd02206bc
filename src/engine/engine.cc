#include "engine/engine.h"

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"

namespace gpurdma {
namespace {

constexpr size_t kKeptScratch = size_t(32) << 20;  // bytes of free blocks; a ring of 32 KiB pieces uses 256 KiB
constexpr size_t kKeptEarly = size_t(4) << 20;

}  // namespace

Engine::Engine(Transport& transport, Counters& counters, const Limits& limits, const Host& host, Gpus* gpus,
               const Placer::Rules& rules, Stager::Direct direct)
    : transport_(transport),
      counters_(counters),
      limits_(limits),
      host_(host),
      scratch_(kKeptScratch, limits.scratch),
      early_(kKeptEarly),
      mailbox_(early_),
      gpus_(gpus),
      placer_(gpus, scratch_, rules),
      stager_(gpus, transport, scratch_, counters, *this, direct),
      means_{transport, mailbox_, counters, gpus, stager_, *this} {
  transport_.attach(this);
}

Engine::~Engine() {
  transport_.attach(nullptr);
  if (active_count_) GPURDMA_LOG(warn, "%zu operations never ended", active_count_);
}

// ---- lists ----

void Engine::List::push_back(Run& run) {
  run.next = nullptr;
  run.previous = tail;
  (tail ? tail->next : head) = &run;
  tail = &run;
}

void Engine::List::remove(Run& run) {
  (run.previous ? run.previous->next : head) = run.next;
  (run.next ? run.next->previous : tail) = run.previous;
  run.next = run.previous = nullptr;
}

// ---- communicators ----

Communicator* Engine::new_communicator(int rank, int size, const char* name, const CommHooks& hooks) {
  uint32_t index;
  if (free_indices_.empty()) {
    index = uint32_t(comms_.size());
    if (index >> kIndexBits) return nullptr;
    comms_.emplace_back();
    reuses_.push_back(0);
    free_indices_.reserve(comms_.size());  // so that freeing never allocates
  } else {
    index = free_indices_.back();
    free_indices_.pop_back();
  }
  const uint32_t handle = reuses_[index] << kIndexBits | index;
  comms_[index] = std::make_unique<Communicator>(handle, rank, size, name, hooks);
  return comms_[index].get();
}

void Engine::free_communicator(Communicator* comm) {
  for (Parked* parked = mailbox_.collect(comm->handle); parked;) {
    Parked* next = parked->next;
    drop(parked->payload());
    mailbox_.free(parked);
    parked = next;
  }
  greeting_.erase(std::remove(greeting_.begin(), greeting_.end(), comm), greeting_.end());
  const uint32_t index = comm->handle & ((1u << kIndexBits) - 1);
  ++reuses_[index];
  comms_[index].reset();
  free_indices_.push_back(index);
}

Communicator* Engine::find(uint32_t handle) const {
  const uint32_t index = handle & ((1u << kIndexBits) - 1);
  if (index >= comms_.size() || !comms_[index] || comms_[index]->handle != handle) return nullptr;
  return comms_[index].get();
}

void Engine::close(Communicator& comm, Status why, int host_error) {
  if (comm.closed != Status::ok) return;
  comm.closed = why;
  GPURDMA_LOG(error, "communicator %s: closed to gpurdma after a failure, later calls on it fail at once: %s",
              comm.name.c_str(), text(why));
  tell_closed(comm);
  for (Run *run = active_.head, *next; run; run = next) {
    next = run->next;  // settle() removes no other run, since the communicator is closed already
    if (&run->comm() != &comm) continue;
    run->abandoned_ticks = clock::ticks();
    run->abandon(why, host_error);
    if (!run->started()) start(*run);
    settle(*run);
  }
}

// Tells those who can be reached and do not know; called again when more can be reached.
void Engine::tell_closed(Communicator& comm) {
  for (int rank = 0; rank < comm.size; ++rank) {
    Link& link = comm.link(rank);
    if (link.state != Link::State::up || link.told_closed) continue;
    link.told_closed = true;
    const Header header{0, link.handle, uint32_t(comm.rank), uint32_t(comm.closed), Header::Kind::closed};
    if (transport_.send(link.peer, header, nullptr, 0, kNoToken) == Transport::Sent::failed)
      GPURDMA_LOG(debug, "communicator %s: rank %d could not be told", comm.name.c_str(), rank);
  }
}

// ---- runs ----

Run* Engine::take_run() {
  if (Run* run = idle_.tail) {
    idle_.remove(*run);
    return run;
  }
  runs_.emplace_back(uint32_t(runs_.size()), means_);
  return &runs_.back();
}

Status Engine::begin(const Plan& plan, Communicator& comm, Number number, Binding binding, const Ticket& ticket,
                     Run** out) {
  if (comm.closed != Status::ok) {
    link_peers(comm, plan);  // those who do not know yet learn it from the Hello
    placer_.release(binding.placement);
    if (host_.plan_released) host_.plan_released(host_.context, plan);
    return Status::closed;
  }
  Run* run = take_run();
  const size_t bytes = plan.scratch_elements() * binding.element;
  const bool resident = binding.placement.kind == Placement::Kind::resident;
  void* scratch = resident ? binding.placement.scratch : scratch_.take(bytes);
  const Status status = run->bind(plan, comm, number, binding, scratch);
  if (status != Status::ok) {
    GPURDMA_LOG(error, "communicator %s: no memory to run a plan of %zu operations", comm.name.c_str(),
                plan.ops().size());
    if (!resident) scratch_.give(scratch, bytes);
    placer_.release(binding.placement);
    idle_.push_back(*run);
    if (host_.plan_released) host_.plan_released(host_.context, plan);
    close(comm, status);  // nobody can be told within the plan, so peers are told this way
    return status;
  }
  run->ticket = ticket;
  run->start_ticks = clock::ticks();
  active_.push_back(*run);
  ++active_count_;
  mailbox_.add(*run);
  *out = run;
  link_peers(comm, plan);
  run->enter();
  if (gpus_) gpus_->flush();
  start_when_able(*run);
  return Status::ok;
}

void Engine::start_when_able(Run& run) {
  if (run.started() || !run.entered() || !linked(run)) return;
  start(run);
  settle(run);
  if (gpus_) gpus_->flush();
}

void Engine::link_peers(Communicator& comm, const Plan& plan) {
  for (const Plan::Peer& peer : plan.peers()) {
    if (comm.link(peer.rank).state != Link::State::none) continue;
    if (!comm.greeting()) greeting_.push_back(&comm);
    comm.greet(peer.rank, transport_);
    if (!comm.greeting()) greeting_.pop_back();
  }
}

bool Engine::linked(const Run& run) {
  for (const Plan::Peer& peer : run.plan().peers())
    if (run.comm().link(peer.rank).state == Link::State::exchanging) return false;
  return true;
}

// Starts the runs whose peers are linked now.
void Engine::poll_links() {
  for (size_t i = 0; i < greeting_.size();) {
    Communicator& comm = *greeting_[i];
    const int changed = comm.poll_greetings(transport_);
    if (comm.greeting()) {
      ++i;
    } else {
      greeting_[i] = greeting_.back();
      greeting_.pop_back();
    }
    if (changed == 0) continue;
    if (comm.closed != Status::ok) tell_closed(comm);
    const Status before = comm.closed;
    for (Run *run = active_.head, *next; run && comm.closed == before; run = next) {
      next = run->next;  // closing the communicator removes others too, and ends the loop
      if (&run->comm() == &comm) start_when_able(*run);
    }
  }
}

void Engine::start(Run& run) {
  run.start();
  for (Parked* parked = mailbox_.collect(run.comm().handle, run.number().bits()); parked;) {
    Parked* next = parked->next;
    run.arrived(parked->header, parked->payload());
    mailbox_.free(parked);
    parked = next;
  }
}

// Whether the run has ended: then it leaves the active ones.
void Engine::settle(Run& run) {
  if (run.out_of_step()) close(run.comm(), run.status());
  if (run.may_leave()) run.leave();
  if (!run.over() || run.settled) return;
  run.settled = true;
  mailbox_.remove(run);
  active_.remove(run);
  --active_count_;
  Counters::Row& row = counters_.rows[run.ticket.algorithm][int(run.path())];
  ++row.calls;
  row.bytes += run.ticket.bytes;
  row.ticks += clock::ticks() - run.start_ticks;
  count_placement(run);
  if (!run.ticket.cookie) return;  // wait() takes it
  finished_.push_back(run);
  ++finished_count_;
}

void Engine::count_placement(Run& run) {
  const Placement::Kind kind = run.placement().kind;
  if (kind == Placement::Kind::mirror)
    counters_.add(GpuCount::mirror_calls, GpuCount::mirror_bytes, run.ticket.bytes);
  else if (kind == Placement::Kind::resident)
    counters_.add(GpuCount::resident_calls, GpuCount::resident_bytes, run.ticket.bytes);
}

void Engine::recycle(Run& run) {
  if (run.placement().kind != Placement::Kind::resident) scratch_.give(run.scratch(), run.scratch_bytes());
  placer_.release(run.placement());
  const Plan& plan = run.plan();
  run.release();
  if (host_.plan_released) host_.plan_released(host_.context, plan);
  idle_.push_back(run);
}

int Engine::finished(Ended* ended, int room) {
  int n = 0;
  while (n < room && finished_.head) {
    Run& run = *finished_.head;
    finished_.remove(run);
    --finished_count_;
    ended[n++] = {run.ticket.cookie, run.status(), run.host_error()};
    recycle(run);
  }
  return n;
}

// ---- messages ----

void Engine::arrived(const Header& header, const Payload& payload) {
  Communicator* comm = find(header.comm);
  if (!comm || header.source >= uint32_t(comm->size)) return drop(payload);
  if (header.kind == Header::Kind::closed) {
    // A dead peer is a fact about the communicator wherever it is noticed; other reasons are the sender's.
    const bool dead = Status(header.position) == Status::peer_lost;
    return close(*comm, dead ? Status::peer_lost : Status::remote);
  }
  Run* run = mailbox_.find(header.comm, header.operation);
  if (run && run->started()) {
    run->arrived(header, payload);
    settle(*run);
    return;
  }
  const bool past = !run && comm->has_started(Number(header.operation));
  if (past || comm->closed != Status::ok) return drop(payload);
  Parked* parked = mailbox_.copy(header, payload);
  if (parked) return mailbox_.keep(parked);
  drop(payload);
  close(*comm, Status::no_memory);
}

void Engine::drop(const Payload& payload) {
  if (payload.offer) transport_.refuse(payload.offer);
}

void Engine::completed(Token token, Status status) {
  if (token & Stager::kMark) return stager_.completed(token, status);
  carried(token, status);
}

void Engine::carried(Token token, Status status) {
  Run& run = runs_[size_t(token >> 32)];
  run.completed(uint32_t(token), status);
  settle(run);
}

void Engine::worked(GpuToken token, Status status) {
  Run& run = runs_[size_t(token >> 32)];
  run.worked(uint32_t(token), status);
  start_when_able(run);
  settle(run);
}

// A peer that lives but does not let go of what is in flight. It is told first, on all communicators that we share.
void Engine::give_up(PeerId peer) {
  for (auto& comm : comms_) {
    if (!comm) continue;
    for (int rank = 0; rank < comm->size; ++rank)
      if (comm->link(rank).state == Link::State::up && comm->link(rank).peer == peer) close(*comm, Status::peer_lost);
  }
  transport_.abandon(peer);
  lost(peer);
}

void Engine::lost(PeerId peer) {
  for (auto& comm : comms_) {
    if (!comm) continue;
    bool member = false;
    for (int rank = 0; rank < comm->size; ++rank) {
      Link& link = comm->link(rank);
      if (link.state != Link::State::up || link.peer != peer) continue;
      link.state = Link::State::lost;
      member = true;
      for (Run* run = active_.head; run; run = run->next)
        if (&run->comm() == comm.get() && run->started()) run->lost(rank);
    }
    if (member) close(*comm, Status::peer_lost);
  }
}

}  // namespace gpurdma
