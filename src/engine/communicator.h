// Communicator: the engine's side of one MPI communicator: who its ranks are, how to reach them, and the numbers of its
// operations.
//
// Ranks are linked pair by pair, when a plan first needs the pair: both send a Hello over the host's point-to-point
// messages, so nothing blocks and nothing takes a place in the order of other collectives. The Hello brings the peer's
// transport address and its handle of this communicator, which later messages carry. The host matches Hellos by its own
// communicator, so a handle stands for the context id, in 32 bits, without ever being compared to anyone else's.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/number.h"
#include "transport/transport.h"

namespace gpurdma {

// What the host of a communicator offers; see gpurdma_comm_info_t, whose members these are.
struct CommHooks {
  void* opaque = nullptr;
  void* (*exchange)(void* opaque, int rank, const void* mine, size_t bytes, void* theirs, size_t capacity) = nullptr;
  int (*exchange_test)(void* exchange, size_t* received) = nullptr;
  void (*exchange_end)(void* exchange) = nullptr;
  int (*broken)(void* opaque) = nullptr;
};

struct Link {
  enum class State : uint8_t { none, exchanging, up, lost } state = State::none;
  Path path = Path::self;
  bool told_closed = false;  // that we closed the communicator
  PeerId peer = 0;
  uint32_t handle = 0;  // the peer's handle of this communicator
};

class Communicator {
 public:
  Communicator(uint32_t handle, int rank, int size, std::string name, CommHooks hooks);
  ~Communicator();  // ends exchanges that are still under way
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const uint32_t handle;
  const int rank, size;
  const std::string name;
  const CommHooks hooks;
  bool oversubscribed = false;
  Status closed = Status::ok;  // otherwise: why every later call fails at once

  Link& link(int rank) { return links_[size_t(rank)]; }
  size_t links() const { return links_.size(); }

  // Starts saying Hello to `rank`; the link's state becomes exchanging, or lost where that failed.
  void greet(int rank, Transport& transport);
  // Looks at the Hellos under way. Returns how many links came up or were lost.
  int poll_greetings(Transport& transport);
  bool greeting() const { return !greetings_.empty(); }

  Number next_call(CallClass c) { return Number::call(c, next_[size_t(c)]++); }
  uint32_t new_persistent() {
    starts_.push_back(0);
    return uint32_t(starts_.size() - 1);
  }
  Number next_start(uint32_t persistent) { return Number::start(persistent, starts_[persistent]++); }
  // Whether our side of an operation has started, now or in the past.
  bool has_started(Number number) const;

 private:
  struct Greeting;

  Status answered(const Greeting& greeting, size_t bytes, Transport& transport);

  std::vector<Link> links_;
  std::vector<std::unique_ptr<Greeting>> greetings_;
  uint64_t next_[2] = {0, 0};     // blocking, nonblocking
  std::vector<uint32_t> starts_;  // of each persistent operation
};

}  // namespace gpurdma
