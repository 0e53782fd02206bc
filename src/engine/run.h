// Run: one plan, bound to buffers and started on a communicator.
//
// Operations become ready when all they wait for is done. Messages to one peer are issued in program order, at most
// kSendsInFlight of them at a time (receives have no such limit: one shared by both jams). Bulk data is sent only as
// far as the receiver has granted credit; the receiver grants it for every receive whose place is free, so what arrives
// early is small and is parked.
//
// After a failure the run still goes through its plan, so that channels stay in step: messages are sent without payload
// and marked failed, and no data is touched. A run is over when every operation is done; nothing is in flight then.
//
// Called by the engine, under its lock. Runs are pooled: bind() reuses the memory of the last plan.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "engine/communicator.h"
#include "engine/number.h"
#include "engine/parked.h"
#include "engine/placement.h"
#include "engine/stager.h"
#include "plan/plan.h"
#include "reduce/host.h"
#include "transport/transport.h"

namespace gpurdma {

class Mailbox;
struct Counters;

// What a plan is bound to. input == nullptr where the plan runs in place.
struct Binding {
  const void* input;
  void* output;
  size_t element;  // bytes
  Reduce reduce;
  // Where operands lie on GPUs:
  Placement placement{};
  Op op{};  // what `reduce` does
  Type type{};
  uint32_t window = 4;         // messages under way to and from each peer that pass through pinned memory
  Status failed = Status::ok;  // why the run can only say that it failed
};

// How the owner of a run learns of its end, and what the counters say about it. Large operands are written another way.
struct Ticket {
  void* cookie = nullptr;  // handed to the engine's completion function; nullptr: somebody waits for the run
  uint32_t algorithm = 0;  // row of the counters
  size_t bytes = 0;        // of one operand
};

class Run {
 public:
  static constexpr uint32_t kSendsInFlight = 32;  // per peer

  // What all runs of a process share. gpus may be nullptr.
  struct Means {
    Transport& transport;
    Mailbox& mailbox;
    Counters& counters;
    Gpus* gpus;
    Stager& stager;
    GpuInbox& inbox;  // tokens are token()s, and what it is told comes to worked()
  };
  Run(uint32_t slot, const Means& means) : slot_(slot), means_(means) {}
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Takes the plan, without starting it. scratch: scratch_elements() * element bytes, or nullptr when memory ran out,
  // in which case the run fails as soon as it starts. Errors: no_memory (of the run's own tables; nothing changed).
  Status bind(const Plan& plan, Communicator& comm, Number number, const Binding& binding, void* scratch);
  // Brings the operands to where the plan works; entered() from then on, or from a later worked() on.
  void enter();
  bool entered() const { return entered_; }
  // Starts; every peer's link must be up or lost. Ends with everything done that can be done now.
  void start();

  // The position-th message of the rank, or a credit.
  void arrived(const Header& header, const Payload& payload);
  // Work of a GPU ended; `op` as in the token.
  void worked(uint32_t op, Status status);
  // A send or fetch in flight ended.
  void completed(uint32_t op, Status status);
  // Nothing more comes from that rank.
  void lost(int rank);
  // Gives up all peers, also before the start: the run ends as soon as nothing is in flight. host_error: see
  // CommHooks::broken.
  void abandon(Status why, int host_error = 0);

  // Forgets the plan and what is still parked; afterwards bind() may be called again.
  void release();

  bool started() const { return started_; }
  bool over() const { return started_ && remaining_ == 0 && gpu_work_ == 0 && !owes_leave_; }
  // The plan is done, and its result has to be brought to where it belongs: leave() does that.
  bool may_leave() const { return started_ && remaining_ == 0 && gpu_work_ == 0 && owes_leave_; }
  void leave();
  Status status() const { return status_; }
  // A message was lost, not just its payload: peers would wait for it, so the communicator must be closed.
  bool out_of_step() const { return out_of_step_; }
  int host_error() const { return host_error_; }
  uint32_t slot() const { return slot_; }
  const Plan& plan() const { return *plan_; }
  Communicator& comm() const { return *comm_; }
  Number number() const { return number_; }
  Placement& placement() { return placement_; }
  void* scratch() const { return base_[2]; }
  size_t scratch_bytes() const { return plan_->scratch_elements() * element_; }
  Path path() const;  // the slowest among the peers
  // Ranks that we wait for, at most `room` of them; returns how many there are.
  int waits_for(int* ranks, int room) const;
  // Peers with a send or fetch in flight, for the engine to abandon.
  template <class F>
  void for_peers_in_flight(F f) const {
    for (const Flow& flow : flows_)
      if (flow.sends_in_flight || flow.fetches_in_flight) f(comm_->link(flow.peer->rank));
  }

  // The engine's: lists, and what it remembers of the run.
  Run* next_in_mailbox = nullptr;
  Run* next = nullptr;  // among runs that are active, or finished, or idle
  Run* previous = nullptr;
  Ticket ticket;
  uint64_t start_ticks = 0;
  uint64_t abandoned_ticks = 0;  // when its communicator was closed
  bool warned = false;           // of a stall
  bool settled = false;          // its end was noticed

 private:
  static constexpr uint32_t kReady = UINT32_MAX, kEntered = UINT32_MAX - 1, kLeft = UINT32_MAX - 2;  // in place of op
  static constexpr uint32_t kInFlight = UINT32_MAX - 1;
  static constexpr uint32_t kDone = UINT32_MAX;

  // What passes between us and one peer.
  struct Flow {
    const Plan::Peer* peer;
    uint32_t next_send;  // position of the next message to issue
    uint32_t may_send;   // positions below it have credit
    uint32_t sends_in_flight, fetches_in_flight;
    uint32_t ready;    // receives below it have their place free, or are done
    uint32_t told;     // the credit that the peer has
    uint32_t arrived;  // messages
    uint32_t batch;    // the least growth of credit that is worth a message
    bool lost;
  };
  struct Queue {
    std::unique_ptr<uint32_t[]> ops;
    uint32_t head, tail;
  };

  uint32_t uncredited(Span<const uint32_t> messages, size_t elements) const;
  char* at(const Slice& slice) const { return base_[int(slice.buf)] + slice.at * element_; }
  Flow* flow_of(int rank);
  Token token(uint32_t op) const { return Token(slot_) << 32 | op; }
  bool resident() const { return placement_.kind == Placement::Kind::resident; }

  void pump();
  void enqueue(uint32_t op);
  void issue_sends(Flow& flow);
  void issue_send(Flow& flow, uint32_t op);
  void grow_ready(Flow& flow);
  void tell_credit(Flow& flow);
  void take(Flow& flow, uint32_t op, const Header& header, const Payload& payload);
  void take_here(uint32_t op, const Payload& payload);
  void take_offer(Flow& flow, uint32_t op, const Payload& payload);
  void take_to_gpu(Flow& flow, uint32_t op, const Payload& payload);
  void take_parked(Flow& flow);
  void drop(const Payload& payload);
  void work(uint32_t op);
  void reduce(uint32_t op, const char* a, const char* b);
  void reduce_twice(uint32_t op, char* slot, const char* a, const char* b);
  void put(uint32_t op, const void* data);
  bool streams(uint32_t op, size_t known) const;
  bool can_send_after(uint32_t op, const Flow& flow) const;
  Header header_of(uint32_t send, Header::Kind kind) const;
  void finish(uint32_t op, uint32_t except = Plan::kNone);
  void copy_in_operand();
  void ask_gpu(uint32_t op);
  void fail(Status why, int rank, const char* what);
  void fail_here(Status why, const char* what);
  void lose(Flow& flow);

  const uint32_t slot_;
  const Means means_;

  const Plan* plan_ = nullptr;
  Communicator* comm_ = nullptr;
  Number number_;
  char* base_[3] = {};
  size_t element_ = 0;
  Reduce reduce_ = nullptr;
  Placement placement_;
  Op op_{};
  Type type_{};
  uint32_t window_ = 0;
  uint32_t gpu_work_ = 0;  // that has not ended, but for what the stager carries
  bool entered_ = false, owes_leave_ = false;

  size_t room_ = 0;                    // operations that the tables below can hold
  std::unique_ptr<uint32_t[]> waits_;  // per operation: how many it still waits for, or kInFlight, or kDone
  Queue messages_{}, work_{};  // ready sends and receives; ready copies and reductions. An operation enters once
  std::vector<Flow> flows_;    // in the order of plan.peers()
  Parked* parked_ = nullptr;   // messages whose receive is not ready
  uint32_t remaining_ = 0;
  bool started_ = false, out_of_step_ = false;
  Status status_ = Status::ok;
  int host_error_ = 0;
};

}  // namespace gpurdma
