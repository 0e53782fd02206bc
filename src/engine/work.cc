// What a run does to data: copies and reductions, and payloads that are used where they lie.
#include <algorithm>
#include <cstring>

#include "base/copy.h"
#include "base/counters.h"
#include "engine/run.h"

namespace gpurdma {
namespace {

using Kind = PlanOp::Kind;

// Parts of a size that stays in the first-level cache until it is copied.
constexpr size_t kPart = 4096;  // bytes
// From so many bytes of output on, what no later operation touches is written past the caches. Measured with 2 ranks on
// a core each (2 MiB of second-level cache): 0.8 to 0.9 of the time at 16 and 64 MiB, 1.1 at 4 MiB.
constexpr size_t kStreams = size_t(16) << 20;

}  // namespace

void Run::work(uint32_t op) {
  if (status_ == Status::ok) {
    if (resident()) return ask_gpu(op);
    const PlanOp& o = plan_->ops()[op];
    if (o.kind == Kind::reduce) return reduce(op, at(o.a), at(o.b));
    std::memcpy(at(o.dst), at(o.a), o.dst.n * element_);
  }
  finish(op);
}

// Does a reduction whose operands lie at a and b. Where its result is sent next, and can be sent now, it is written to
// the peer's slot as well, in the same pass.
void Run::reduce(uint32_t op, const char* a, const char* b) {
  const PlanOp& o = plan_->ops()[op];
  const uint32_t send = o.consumer;
  Flow* const flow = send == Plan::kNone ? nullptr : &flows_[plan_->ops()[send].peer];
  const size_t bytes = o.dst.n * element_;
  void* const slot =
      flow && can_send_after(op, *flow) ? means_.transport.reserve(comm_->link(flow->peer->rank).peer, bytes) : nullptr;
  if (!slot) {
    reduce_(at(o.dst), a, b, o.dst.n);
    return finish(op);
  }
  reduce_twice(op, static_cast<char*>(slot), a, b);
  const Link& link = comm_->link(flow->peer->rank);
  means_.counters.sent_bytes[int(link.path)] += bytes;
  means_.transport.commit(link.peer, header_of(send, Header::Kind::data), bytes);
  ++flow->next_send;
  finish(op, send);
  finish(send);
  issue_sends(*flow);
}

// dst and the slot, in one pass.
void Run::reduce_twice(uint32_t op, char* slot, const char* a, const char* b) {
  const PlanOp& o = plan_->ops()[op];
  char* const dst = at(o.dst);
  const bool past_caches = streams(op, 1);  // the send alone reads it
  const size_t part = std::max<size_t>(kPart / element_, 1);
  for (size_t i = 0; i < o.dst.n; i += part) {
    const size_t n = std::min(part, o.dst.n - i), from = i * element_;
    expect_writing(slot + from, n * element_);
    reduce_(past_caches ? slot + from : dst + from, a + from, b + from, n);
    if (past_caches)
      stream_copy(dst + from, slot + from, n * element_);
    else
      std::memcpy(slot + from, dst + from, n * element_);
  }
  if (past_caches) stream_fence();
}

// What came for a receive, to its place.
void Run::put(uint32_t op, const void* data) {
  const Slice& dst = plan_->ops()[op].dst;
  if (!streams(op, 0)) {
    std::memcpy(at(dst), data, dst.n * element_);
    return;
  }
  stream_copy(at(dst), data, dst.n * element_);
  stream_fence();
}

// Whether what `op` writes goes past the caches: it is part of a large output, and no more than `known` operations
// touch it afterwards.
bool Run::streams(uint32_t op, size_t known) const {
  return ticket.bytes >= kStreams && plan_->ops()[op].dst.buf == Buf::output && plan_->successors(op).size() == known;
}

// Whether the send that `op` feeds would go out as soon as `op` has ended.
bool Run::can_send_after(uint32_t op, const Flow& flow) const {
  const uint32_t send = plan_->ops()[op].consumer, position = plan_->ops()[send].position;
  return waits_[send] == 1 && position == flow.next_send && position < flow.may_send && !flow.lost &&
         flow.sends_in_flight < kSendsInFlight;
}

// The payload is in memory of the transport: reduce straight from it where the plan allows and nothing else is waited
// for.
void Run::take_here(uint32_t op, const Payload& payload) {
  const PlanOp& o = plan_->ops()[op];
  const uint32_t next = o.consumer;
  const size_t alignment = std::min<size_t>(element_ & -element_, 16);
  if (next == Plan::kNone || waits_[next] != 1 || reinterpret_cast<uintptr_t>(payload.data) % alignment != 0) {
    put(op, payload.data);
    return finish(op);
  }
  const PlanOp& r = plan_->ops()[next];
  const bool left = r.a.buf == Buf::scratch && r.a.at == o.dst.at;
  const char* data = static_cast<const char*>(payload.data);
  finish(op, next);
  reduce(next, left ? data : at(r.a), left ? at(r.b) : data);
}

}  // namespace gpurdma
