#include "engine/run.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/counters.h"
#include "base/log.h"
#include "engine/mailbox.h"

namespace gpurdma {

using Kind = PlanOp::Kind;

Run::~Run() { release(); }

void Run::release() {
  while (Parked* parked = parked_) {
    parked_ = parked->next;
    drop(parked->payload());
    means_.mailbox.free(parked);
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
  if (ops) std::memcpy(waits_.get(), plan.waits().data(), ops * sizeof(uint32_t));
  messages_.head = messages_.tail = work_.head = work_.tail = 0;
  remaining_ = uint32_t(ops);
  started_ = false;
  placement_ = binding.placement;
  op_ = binding.op;
  type_ = binding.type;
  window_ = binding.window;
  gpu_work_ = 0;
  entered_ = placement_.kind == Placement::Kind::host;
  owes_leave_ = placement_.leave.width != 0;
  status_ = plan.scratch_elements() && !scratch ? Status::no_memory : binding.failed;
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

// ---- sending ----

void Run::issue_sends(Flow& flow) {
  const Span<const uint32_t> sends = flow.peer->sends;
  const uint32_t most = resident() ? window_ : kSendsInFlight;
  while (flow.next_send < sends.size() && flow.sends_in_flight < most) {
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
  if (resident() && status_ == Status::ok) {
    means_.counters.sent_bytes[int(link.path)] += o.a.n * element_;
    const Status status = means_.stager.send(placement_.gpu, link.peer, header_of(op, Header::Kind::data), at(o.a),
                                             o.a.n * element_, token(op));
    if (status == Status::ok) {
      waits_[op] = kInFlight;
      ++flow.sends_in_flight;
      return;
    }
    fail_here(status, "copying a message out of the GPU's memory");
  }
  const bool good = status_ == Status::ok;
  const size_t bytes = good ? o.a.n * element_ : 0;
  const Header header = header_of(op, good ? Header::Kind::data : Header::Kind::failed);
  means_.counters.sent_bytes[int(link.path)] += bytes;
  switch (means_.transport.send(link.peer, header, good ? at(o.a) : nullptr, bytes, token(op))) {
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
  if (first) flow.batch = std::max(1u, (resident() ? std::min(flow.ready, window_) : flow.ready) / 2);
  tell_credit(flow);
  if (parked_) take_parked(flow);
}

void Run::tell_credit(Flow& flow) {
  // What passes through pinned memory is let come as far as the window says.
  const uint32_t through = flow.arrived - flow.fetches_in_flight;
  const uint32_t ready = resident() ? std::min(flow.ready, through + window_) : flow.ready;
  if (ready <= flow.told || flow.lost) return;
  const bool all = ready == flow.peer->recvs.size();
  const bool starving = flow.arrived >= flow.told;
  if (!all && !starving && ready - flow.told < flow.batch) return;
  const Link& link = comm_->link(flow.peer->rank);
  const Header header{number_.bits(), link.handle, uint32_t(comm_->rank), ready, Header::Kind::credit};
  flow.told = ready;
  if (means_.transport.send(link.peer, header, nullptr, 0, kNoToken) == Transport::Sent::failed)
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
  Parked* parked = means_.mailbox.copy(header, payload);
  if (!parked) {
    drop(payload);
    return fail(Status::no_memory, int(header.source), "keeping an early message");
  }
  parked->next = parked_;
  parked_ = parked;
}

void Run::drop(const Payload& payload) {
  if (payload.offer) means_.transport.refuse(payload.offer);
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
    means_.mailbox.free(parked);
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
  } else if (resident()) {
    take_to_gpu(flow, op, payload);
  } else if (payload.data) {
    take_here(op, payload);
  } else {
    take_offer(flow, op, payload);
  }
  if (flow.told < flow.ready) tell_credit(flow);
}

void Run::take_offer(Flow& flow, uint32_t op, const Payload& payload) {
  switch (means_.transport.fetch(payload.offer, at(plan_->ops()[op].dst), payload.bytes, token(op))) {
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
  if (status == Status::gpu || status == Status::no_memory)  // of our own: the peer got a mark
    fail_here(status, "copying a message");
  else if (status != Status::ok)
    fail(status, flow.peer->rank, "a message in flight");
  --(o.kind == Kind::send ? flow.sends_in_flight : flow.fetches_in_flight);
  finish(op);
  if (resident()) tell_credit(flow);
  issue_sends(flow);
  pump();
}

// ---- failing ----

void Run::fail(Status why, int rank, const char* what) {
  if (why != Status::remote) out_of_step_ = true;
  if (status_ != Status::ok) return;
  status_ = why;
  const Path path = comm_->link(rank).path;
  GPURDMA_LOG(error, "communicator %s: %s operation %llu on rank %d fails at %s, peer rank %d over %s: %s",
              comm_->name.c_str(), name_of(number_.call_class()), number_.of_its_class(), comm_->rank, what, rank,
              path == Path::self ? "no path" : name_of(path), text(why));
}

// A failure of our own: peers get all messages, marked, so that the channels stay in step.
void Run::fail_here(Status why, const char* what) {
  if (status_ != Status::ok) return;
  status_ = why;
  GPURDMA_LOG(error, "communicator %s: %s operation %llu on rank %d fails at %s: %s", comm_->name.c_str(),
              name_of(number_.call_class()), number_.of_its_class(), comm_->rank, what, text(why));
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
