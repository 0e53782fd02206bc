#include "engine/run.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/copy.h"
#include "base/counters.h"
#include "base/log.h"
#include "engine/mailbox.h"

namespace gpurdma {

using Kind = PlanOp::Kind;

namespace {
// Parts of a size that stays in the first-level cache until it is copied.
constexpr size_t kPart = 4096;  // bytes
// From so many bytes of output on, what no later operation touches is written past the caches. Measured with 2 ranks on
// a core each (2 MiB of second-level cache): 0.8 to 0.9 of the time at 16 and 64 MiB, 1.1 at 4 MiB.
constexpr size_t kStreams = size_t(16) << 20;
}  // namespace

Run::Run(uint32_t slot, Transport& transport, Mailbox& mailbox, Counters& counters)
    : slot_(slot), transport_(transport), mailbox_(mailbox), counters_(counters) {}

Run::~Run() { release(); }

void Run::release() {
  while (Parked* parked = parked_) {
    parked_ = parked->next;
    drop(parked->payload());
    mailbox_.free(parked);
  }
  plan_ = nullptr;
}

Status Run::bind(const Plan& plan, Communicator& comm, Number number, const Binding& binding, void* scratch) {
  const size_t ops = plan.ops().size();
  if (ops > room_) {
    std::unique_ptr<uint32_t[]> waits(new (std::nothrow) uint32_t[ops]);
    std::unique_ptr<uint32_t[]> messages(new (std::nothrow) uint32_t[ops]), work(new (std::nothrow) uint32_t[ops]);
    if (!waits || !messages || !work) return Status::no_memory;
    waits_ = std::move(waits);
    messages_.ops = std::move(messages);
    work_.ops = std::move(work);
    room_ = ops;
  }
  plan_ = &plan;
  comm_ = &comm;
  number_ = number;
  base_[0] = static_cast<char*>(const_cast<void*>(binding.input));  // plans only read input
  base_[1] = static_cast<char*>(binding.output);
  base_[2] = static_cast<char*>(scratch);
  element_ = binding.element;
  reduce_ = binding.reduce;
  streams_ = binding.bytes >= kStreams;
  if (ops) std::memcpy(waits_.get(), plan.waits().data(), ops * sizeof(uint32_t));
  messages_.head = messages_.tail = work_.head = work_.tail = 0;
  remaining_ = uint32_t(ops);
  started_ = false;
  status_ = plan.scratch_elements() && !scratch ? Status::no_memory : Status::ok;
  host_error_ = 0;
  out_of_step_ = warned = settled = false;
  abandoned_ticks = 0;
  flows_.resize(plan.peers().size());
  for (size_t i = 0; i < flows_.size(); ++i) {
    const Plan::Peer& peer = plan.peers()[i];
    const uint32_t told = uncredited(peer.recvs, peer.elements_received);
    flows_[i] = {&peer, 0, uncredited(peer.sends, peer.elements_sent), 0, 0, 0, told, 0, 0, false};
  }
  return Status::ok;
}

// How many messages may go before any credit: both sides count the same bytes.
uint32_t Run::uncredited(Span<const uint32_t> messages, size_t elements) const {
  if (elements * element_ <= Transport::kInline) return uint32_t(messages.size());
  size_t bytes = 0;
  uint32_t n = 0;
  for (const uint32_t op : messages) {
    const PlanOp& o = plan_->ops()[op];
    bytes += std::max(o.a.n, o.dst.n) * element_;  // of a send, of a recv
    if (bytes > Transport::kInline) break;
    ++n;
  }
  return n;
}

Run::Flow* Run::flow_of(int rank) {
  const Flow* end = flows_.data() + flows_.size();
  for (Flow* flow = flows_.data(); flow != end; ++flow)
    if (flow->peer->rank == rank) return flow;
  return nullptr;
}

void Run::start() {
  started_ = true;
  if (plan_->scratch_elements() && !scratch())
    GPURDMA_LOG(error, "communicator %s: no memory for %zu bytes of scratch", comm_->name.c_str(), scratch_bytes());
  for (Flow& flow : flows_) {
    if (comm_->link(flow.peer->rank).state != Link::State::lost) continue;
    fail(Status::peer_lost, flow.peer->rank, "a peer that cannot be reached");
    lose(flow);
  }
  for (const uint32_t op : plan_->roots()) {
    enqueue(op);
  }
  pump();
}

// Does what is ready: messages first, since others wait for them.
void Run::pump() {
  for (;;) {
    if (messages_.head != messages_.tail) {
      const uint32_t op = messages_.ops[messages_.head++];
      const PlanOp& o = plan_->ops()[op];
      Flow& flow = flows_[o.peer];
      if (o.kind == Kind::send) {
        if (o.position == flow.next_send) issue_sends(flow);
      } else if (flow.lost) {
        if (waits_[op] == 0) finish(op);
      } else {
        grow_ready(flow);
      }
    } else if (work_.head != work_.tail) {
      work(work_.ops[work_.head++]);
    } else {
      return;
    }
  }
}

void Run::finish(uint32_t op, uint32_t except) {
  waits_[op] = kDone;
  --remaining_;
  for (const uint32_t next : plan_->successors(op)) {
    if (next != except && --waits_[next] == 0) enqueue(next);
  }
}

// Takes an operation that waits for nothing any more.
void Run::enqueue(uint32_t op) {
  Queue& queue = plan_->ops()[op].kind <= Kind::recv ? messages_ : work_;
  queue.ops[queue.tail++] = op;
}

void Run::work(uint32_t op) {
  if (status_ == Status::ok) {
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
      flow && can_send_after(op, *flow) ? transport_.reserve(comm_->link(flow->peer->rank).peer, bytes) : nullptr;
  if (!slot) {
    reduce_(at(o.dst), a, b, o.dst.n);
    return finish(op);
  }
  reduce_twice(op, static_cast<char*>(slot), a, b);
  const Link& link = comm_->link(flow->peer->rank);
  counters_.sent_bytes[int(link.path)] += bytes;
  transport_.commit(link.peer, header_of(send, Header::Kind::data), bytes);
  ++flow->next_send;
  finish(op, send);
  finish(send);
  issue_sends(*flow);
}

// dst and the slot, in one pass.
void Run::reduce_twice(uint32_t op, char* slot, const char* a, const char* b) {
  const PlanOp& o = plan_->ops()[op];
  char* const dst = at(o.dst);
  const bool streams = streams_ && o.dst.buf == Buf::output && plan_->successors(op).size() == 1;  // the send alone
  const size_t part = std::max<size_t>(kPart / element_, 1);
  for (size_t i = 0; i < o.dst.n; i += part) {
    const size_t n = std::min(part, o.dst.n - i), from = i * element_;
    expect_writing(slot + from, n * element_);
    reduce_(streams ? slot + from : dst + from, a + from, b + from, n);
    if (streams)
      stream_copy(dst + from, slot + from, n * element_);
    else
      std::memcpy(slot + from, dst + from, n * element_);
  }
  if (streams) stream_fence();
}

// What came for a receive, to its place.
void Run::put(uint32_t op, const void* data) {
  const Slice& dst = plan_->ops()[op].dst;
  if (!streams_ || dst.buf != Buf::output || !plan_->successors(op).empty()) {
    std::memcpy(at(dst), data, dst.n * element_);
    return;
  }
  stream_copy(at(dst), data, dst.n * element_);
  stream_fence();
}

// Whether the send that `op` feeds would go out as soon as `op` has ended.
bool Run::can_send_after(uint32_t op, const Flow& flow) const {
  const uint32_t send = plan_->ops()[op].consumer, position = plan_->ops()[send].position;
  return waits_[send] == 1 && position == flow.next_send && position < flow.may_send && !flow.lost &&
         flow.sends_in_flight < kSendsInFlight;
}

// ---- sending ----

void Run::issue_sends(Flow& flow) {
  const Span<const uint32_t> sends = flow.peer->sends;
  while (flow.next_send < sends.size() && flow.sends_in_flight < kSendsInFlight) {
    const uint32_t op = sends[flow.next_send];
    if (waits_[op] != 0) return;
    if (flow.next_send >= flow.may_send && status_ == Status::ok && !flow.lost) return;  // a mark needs no credit
    issue_send(flow, op);
    ++flow.next_send;
  }
}

Header Run::header_of(uint32_t send, Header::Kind kind) const {
  const PlanOp& o = plan_->ops()[send];
  return {number_.bits(), comm_->link(flows_[o.peer].peer->rank).handle, uint32_t(comm_->rank), o.position, kind};
}

void Run::issue_send(Flow& flow, uint32_t op) {
  if (flow.lost) return finish(op);
  const PlanOp& o = plan_->ops()[op];
  const Link& link = comm_->link(flow.peer->rank);
  const bool good = status_ == Status::ok;
  const size_t bytes = good ? o.a.n * element_ : 0;
  const Header header = header_of(op, good ? Header::Kind::data : Header::Kind::failed);
  counters_.sent_bytes[int(link.path)] += bytes;
  switch (transport_.send(link.peer, header, good ? at(o.a) : nullptr, bytes, token(op))) {
    case Transport::Sent::done:
      return finish(op);
    case Transport::Sent::pending:
      waits_[op] = kInFlight;
      ++flow.sends_in_flight;
      return;
    case Transport::Sent::failed:
      fail(Status::transport, flow.peer->rank, "sending");
      return finish(op);
  }
}

// ---- receiving ----

// A receive has become ready: see how far the peer may send now, and whether its message is here already.
void Run::grow_ready(Flow& flow) {
  const Span<const uint32_t> recvs = flow.peer->recvs;
  const bool first = flow.batch == 0;
  while (flow.ready < recvs.size()) {
    const uint32_t waits = waits_[recvs[flow.ready]];
    if (waits != 0 && waits != kDone && waits != kInFlight) break;
    ++flow.ready;
  }
  if (first) flow.batch = std::max(1u, flow.ready / 2);
  tell_credit(flow);
  if (parked_) take_parked(flow);
}

void Run::tell_credit(Flow& flow) {
  if (flow.ready <= flow.told || flow.lost) return;
  const bool all = flow.ready == flow.peer->recvs.size();
  const bool starving = flow.arrived >= flow.told;
  if (!all && !starving && flow.ready - flow.told < flow.batch) return;
  const Link& link = comm_->link(flow.peer->rank);
  const Header header{number_.bits(), link.handle, uint32_t(comm_->rank), flow.ready, Header::Kind::credit};
  flow.told = flow.ready;
  if (transport_.send(link.peer, header, nullptr, 0, kNoToken) == Transport::Sent::failed)
    fail(Status::transport, flow.peer->rank, "granting credit");
}

void Run::arrived(const Header& header, const Payload& payload) {
  Flow* flow = flow_of(int(header.source));
  const bool credit = header.kind == Header::Kind::credit;
  if (!flow || header.position >= (credit ? flow->peer->sends.size() + 1 : flow->peer->recvs.size())) {
    drop(payload);
    return fail(Status::transport, int(header.source), "receiving a message that is not in the plan");
  }
  if (credit) {
    flow->may_send = std::max(flow->may_send, header.position);
    issue_sends(*flow);
    return pump();
  }
  const uint32_t op = flow->peer->recvs[header.position];
  if (waits_[op] == 0) {
    take(*flow, op, header, payload);
    return pump();
  }
  if (waits_[op] == kDone || waits_[op] == kInFlight) {  // given up before it came
    drop(payload);
    return;
  }
  Parked* parked = mailbox_.copy(header, payload);
  if (!parked) {
    drop(payload);
    return fail(Status::no_memory, int(header.source), "keeping an early message");
  }
  parked->next = parked_;
  parked_ = parked;
}

void Run::drop(const Payload& payload) {
  if (payload.offer) transport_.refuse(payload.offer);
}

void Run::take_parked(Flow& flow) {
  for (Parked** at = &parked_; *at;) {
    Parked* parked = *at;
    const uint32_t op =
        int(parked->header.source) == flow.peer->rank ? flow.peer->recvs[parked->header.position] : Plan::kNone;
    if (op == Plan::kNone || waits_[op] != 0) {
      at = &parked->next;
      continue;
    }
    *at = parked->next;
    take(flow, op, parked->header, parked->payload());
    mailbox_.free(parked);
  }
}

void Run::take(Flow& flow, uint32_t op, const Header& header, const Payload& payload) {
  ++flow.arrived;
  const size_t expected = plan_->ops()[op].dst.n * element_;
  if (header.kind == Header::Kind::failed)
    fail(Status::remote, flow.peer->rank, "receiving");
  else if (payload.bytes != expected)
    fail(Status::transport, flow.peer->rank,
         "receiving a message of another size; do all ranks pass the same count and type?");
  if (status_ != Status::ok) {
    drop(payload);
    finish(op);
  } else if (payload.data) {
    take_here(op, payload);
  } else {
    take_offer(flow, op, payload);
  }
  if (flow.told < flow.ready) tell_credit(flow);
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

void Run::take_offer(Flow& flow, uint32_t op, const Payload& payload) {
  switch (transport_.fetch(payload.offer, at(plan_->ops()[op].dst), payload.bytes, token(op))) {
    case Transport::Sent::done:
      return finish(op);
    case Transport::Sent::pending:
      waits_[op] = kInFlight;
      ++flow.fetches_in_flight;
      return;
    case Transport::Sent::failed:
      fail(Status::transport, flow.peer->rank, "fetching");
      return finish(op);
  }
}

void Run::completed(uint32_t op, Status status) {
  const PlanOp& o = plan_->ops()[op];
  Flow& flow = flows_[o.peer];
  if (status != Status::ok) fail(status, flow.peer->rank, "a message in flight");
  --(o.kind == Kind::send ? flow.sends_in_flight : flow.fetches_in_flight);
  finish(op);
  issue_sends(flow);
  pump();
}

// ---- failing ----

void Run::fail(Status why, int rank, const char* what) {
  if (why != Status::remote) out_of_step_ = true;
  if (status_ != Status::ok) return;
  status_ = why;
  static const char* const kClasses[] = {"blocking", "nonblocking", "persistent", "unknown"};
  const bool persistent = number_.call_class() == CallClass::persistent;
  GPURDMA_LOG(error, "communicator %s: %s operation %llu on rank %d fails at %s, peer rank %d over %s: %s",
              comm_->name.c_str(), kClasses[int(number_.call_class())],
              static_cast<unsigned long long>(persistent ? number_.persistent_id() : number_.index()), comm_->rank,
              what, rank, comm_->link(rank).path == Path::self ? "no path" : name_of(comm_->link(rank).path),
              text(why));
}

void Run::lose(Flow& flow) {
  if (flow.lost) return;
  flow.lost = true;
  for (const uint32_t op : flow.peer->recvs)
    if (waits_[op] == 0) finish(op);
}

void Run::lost(int rank) {
  Flow* flow = flow_of(rank);
  if (!flow || flow->lost) return;
  fail(Status::peer_lost, rank, "a peer that was lost");
  lose(*flow);
  issue_sends(*flow);
  pump();
}

void Run::abandon(Status why, int host_error) {
  if (status_ == Status::ok) status_ = why;
  if (host_error_ == 0) host_error_ = host_error;
  for (Flow& flow : flows_) lose(flow);
  for (Flow& flow : flows_) issue_sends(flow);
  pump();
}

// ---- sight ----

Path Run::path() const {
  Path slowest = Path::self;
  for (const Flow& flow : flows_) slowest = std::max(slowest, comm_->link(flow.peer->rank).path);
  return slowest;
}

int Run::waits_for(int* ranks, int room) const {
  int n = 0;
  for (const Flow& flow : flows_) {
    const bool open =
        flow.arrived < flow.peer->recvs.size() || flow.next_send < flow.peer->sends.size() || flow.sends_in_flight;
    if (!open || flow.lost) continue;
    if (n < room) ranks[n] = flow.peer->rank;
    ++n;
  }
  return n;
}

}  // namespace gpurdma
