// An engine on a scripted transport, with one communicator whose ranks are linked: rank r is peer 10 + r and calls the
// communicator 100 + r. Elements are 32-bit integers, reductions sums.
#pragma once
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "base/log.h"
#include "engine/engine.h"
#include "test/unit/engine/scripted_transport.h"

namespace gpurdma {

using Ints = std::vector<int32_t>;

// Lines of the log, while it lives.
class CapturedLog {
 public:
  CapturedLog() {
    text().clear();
    log::configure(log::Level::warn, [](log::Level, const char* line) { text() += std::string(line) + "\n"; });
  }
  ~CapturedLog() { log::configure(log::Level::warn, nullptr); }
  bool says(const std::string& what) const { return text().find(what) != std::string::npos; }
  static std::string& text() {
    static std::string text;
    return text;
  }
};

// What a run without an engine needs, where no GPU has a part.
struct NoGpus final : GpuInbox, Stager::Listener {
  NoGpus(Transport& transport, Mailbox& mailbox, Memory& memory)
      : stager(nullptr, transport, memory, counters, *this, Stager::Direct::never), means{transport, mailbox, counters,
                                                                                          nullptr,   stager,  *this} {}
  void worked(GpuToken, Status) override { ADD_FAILURE(); }
  void carried(Token, Status) override { ADD_FAILURE(); }
  Counters counters;
  Stager stager;
  const Run::Means means;
};

struct Rig {
  struct Operands {
    void* dst;
    const void *left, *right;
  };

  ScriptedTransport transport;
  Counters counters;
  int released = 0;
  Engine engine;
  Communicator* comm;
  Ints input, output;
  static std::vector<Operands>& reductions() {  // so far
    static std::vector<Operands> reductions;
    return reductions;
  }

  explicit Rig(int rank, int size, const Engine::Limits& limits = {}, const CommHooks& hooks = {})
      : engine(transport, counters, limits, host()),
        comm(engine.new_communicator(rank, size, "rig", hooks)),
        input(10000),
        output(10000) {
    reductions().clear();
    std::iota(input.begin(), input.end(), 1);
    engine.lock();
    for (int r = 0; r < size; ++r) {
      if (r == rank) continue;
      comm->link(r).state = Link::State::up;
      comm->link(r).path = Path::rdma;
      comm->link(r).peer = PeerId(10 + r);
      comm->link(r).handle = uint32_t(100 + r);
    }
  }
  ~Rig() {
    EXPECT_EQ(engine.active(), 0u);
    EXPECT_EQ(engine.scratch_bytes(), 0u);
    engine.unlock();
  }

  Engine::Host host() {
    return {nullptr, [](void* rig, const Plan&) { ++static_cast<Rig*>(rig)->released; }, this};
  }

  static void sum(void* dst, const void* left, const void* right, size_t count) {
    reductions().push_back({dst, left, right});
    for (size_t i = 0; i < count; ++i)
      static_cast<int32_t*>(dst)[i] = static_cast<const int32_t*>(left)[i] + static_cast<const int32_t*>(right)[i];
  }

  // Starts the plan as the next nonblocking call.
  Run* begin(const Plan& plan, void* cookie = &nothing()) {
    Run* run = nullptr;
    number = comm->next_call(CallClass::nonblocking);
    status = engine.begin(plan, *comm, number, {input.data(), output.data(), 4, sum}, {cookie, 0, operand_bytes}, &run);
    return run;
  }
  size_t operand_bytes = 4;  // as the ticket has them
  Number number;             // of the last begin
  Status status = Status::ok;

  Header header(int from, uint32_t position, Header::Kind kind) const {
    return {number.bits(), comm->handle, uint32_t(from), position, kind};
  }
  void data(int from, uint32_t position, const Ints& values) { data_at(from, position, values, 0); }
  // The payload lies `offset` bytes beside an aligned address, and is gone afterwards. Returns where it was.
  const void* data_at(int from, uint32_t position, const Ints& values, size_t offset) {
    alignas(64) static char room[1 << 16];
    std::memcpy(room + offset, values.data(), values.size() * 4);
    transport.inbox->arrived(header(from, position, Header::Kind::data), {room + offset, values.size() * 4, nullptr});
    std::memset(room, 0xEE, sizeof room);
    return room + offset;
  }
  void offer(int from, uint32_t position, Ints& values) {
    transport.inbox->arrived(header(from, position, Header::Kind::data), {nullptr, values.size() * 4, values.data()});
  }
  void mark(int from, uint32_t position) {
    transport.inbox->arrived(header(from, position, Header::Kind::failed), {"", 0, nullptr});
  }
  void credit(int from, uint32_t upto) {
    transport.inbox->arrived(header(from, upto, Header::Kind::credit), {"", 0, nullptr});
  }
  // The one operation that ended, or Status::unsupported when there is none.
  Status ended() {
    Engine::Ended ended{};
    if (engine.finished(&ended, 1) == 0) return Status::unsupported;
    host_error = ended.host_error;
    return ended.status;
  }
  int host_error = 0;

  size_t sent(Header::Kind kind = Header::Kind::data) const { return transport.of_kind(kind).size(); }
  // How far rank `to` may send.
  uint32_t granted(int to) const {
    uint32_t most = 0;
    for (const auto& s : transport.of_kind(Header::Kind::credit))
      if (s.peer == PeerId(10 + to)) most = std::max(most, s.header.position);
    return most;
  }
  // progress(), often enough and for long enough that the clock is looked at.
  void let_time_pass(double seconds) {
    const timespec pause{0, long(seconds * 1e9)};
    nanosleep(&pause, nullptr);
    for (int i = 0; i < 2048; ++i) engine.progress();
  }

  static int& nothing() {
    static int nothing;
    return nothing;
  }
};

constexpr Slice in(size_t at, size_t n) { return {Buf::input, at, n}; }
constexpr Slice out(size_t at, size_t n) { return {Buf::output, at, n}; }
constexpr size_t kBulk = Transport::kInline / 4 + 1;  // elements

template <class Record>
Plan plan_of(int rank, int size, Record record) {
  Plan plan(rank, size);
  record(plan);
  plan.seal();
  return plan;
}

}  // namespace gpurdma
