// The engine's progress: polling, waiting, and the rare looks at the clock.
#include <sched.h>
#include <time.h>

#include <cstdio>

#include "base/clock.h"
#include "base/log.h"
#include "engine/engine.h"

namespace gpurdma {
namespace {

constexpr unsigned kPollsPerTick = 1024;          // of progress(), between looks at the clock
constexpr unsigned kSpins = 4096;                 // empty polls before wait() yields the core: some 100 us
constexpr unsigned kSpinsOversubscribed = 4;      // the peer may need this very core
constexpr unsigned kYields = 2000;                // before it naps: the peer is late by a millisecond or more
constexpr timespec kNap{0, 50000};                // the timer adds about as much
constexpr unsigned kPollsPerHostProgress = 64;    // opal_progress costs about three polls of ours
constexpr double kTick = 1e-3, kPeerCheck = 0.1;  // seconds

// The ranks that a run waits for, as "1, 5, 7".
void name_awaited(const Run& run, char* text, size_t size) {
  constexpr int kShown = 8;
  int ranks[kShown];
  const int n = run.waits_for(ranks, kShown);
  size_t at = size_t(std::snprintf(text, size, "%s", n ? "" : "none"));
  for (int i = 0; i < n && i < kShown; ++i)
    at += size_t(std::snprintf(text + at, size - at, "%s%d", i ? ", " : "", ranks[i]));
  if (n > kShown) std::snprintf(text + at, size - at, ", ...");
}

}  // namespace

int Engine::poll() {
  int events = transport_.progress();
  if (gpus_) {
    events += gpus_->progress();
    gpus_->flush();
  }
  return events;
}

int Engine::progress() {
  const int events = poll();
  look_around();
  return events;
}

// What else may have come about: peers that are linked now, and, once in a while, what only the clock tells.
void Engine::look_around() {
  if (!greeting_.empty()) poll_links();
  if (++polls_ % kPollsPerTick == 0 && active_count_ != 0) tick();
}

Status Engine::wait(Run& run, int* host_error) {
  const unsigned spins = run.comm().oversubscribed ? kSpinsOversubscribed : kSpins;
  unsigned polls = 0, empty = 0;
  while (!run.over()) {
    empty = poll() != 0 ? 0 : empty + 1;
    if (run.over()) break;
    // Between these polls nothing else is looked at: the time of a small operation is made of them.
    const bool greets = !greeting_.empty();  // then it is the host that brings us on
    const bool yield = empty >= spins, nap = empty >= spins + kYields;
    // A nap is long, and the peer may be late because it waits for other messages of this process.
    const bool help_host = greets || nap || ++polls % kPollsPerHostProgress == 0;
    if (!help_host && !yield) continue;
    look_around();
    lock_.unlock();
    if (help_host && host_.progress) host_.progress(host_.context);
    if (yield) nap ? void(nanosleep(&kNap, nullptr)) : void(sched_yield());
    lock_.lock();
  }
  const Status status = run.status();
  if (host_error) *host_error = run.host_error();
  recycle(run);
  return status;
}

// Deadlines, stalls, dead peers, revoked communicators: looked at about once a millisecond while something is active.
void Engine::tick() {
  const uint64_t now = clock::ticks();
  if (clock::since(last_tick_, now) < kTick) return;
  last_tick_ = now;
  if (clock::since(last_peer_check_, now) >= kPeerCheck) {
    last_peer_check_ = now;
    transport_.check_peers();
  }
  // One run at a time: closing a communicator changes the list.
  for (Run* run = active_.head; run;) {
    Run* next = run->next;
    const size_t before = active_count_;
    check(*run, now);
    run = active_count_ == before ? next : active_.head;
  }
}

void Engine::check(Run& run, uint64_t now) {
  Communicator& comm = run.comm();
  if (run.abandoned_ticks != 0) {
    if (clock::since(run.abandoned_ticks, now) > limits_.grace_s)
      run.for_peers_in_flight([&](const Link& link) { give_up(link.peer); });
    return;
  }
  const int broken = comm.hooks.broken ? comm.hooks.broken(comm.hooks.opaque) : 0;
  const double seconds = clock::since(run.start_ticks, now);
  const bool late = limits_.deadline_s > 0 && seconds > limits_.deadline_s;
  const bool stalled = limits_.stall_warning_s > 0 && seconds > limits_.stall_warning_s && !run.warned;
  if (!broken && !late && !stalled) return;
  run.warned = true;
  char peers[128];
  name_awaited(run, peers, sizeof peers);
  if (broken)
    GPURDMA_LOG(
        error,
        "communicator %s: Open MPI reports that it was revoked or that a member failed; rank %d waits for rank %s",
        comm.name.c_str(), comm.rank, peers);
  else if (late)
    GPURDMA_LOG(error, "communicator %s: rank %d gives up after %.1f s, the deadline; it waits for rank %s",
                comm.name.c_str(), comm.rank, seconds, peers);
  else
    GPURDMA_LOG(warn, "communicator %s: rank %d has waited %.1f s in one operation for rank %s; are all ranks in it?",
                comm.name.c_str(), comm.rank, seconds, peers);
  if (broken)
    close(comm, Status::peer_lost, broken);
  else if (late)
    close(comm, Status::deadline);
}

}  // namespace gpurdma
