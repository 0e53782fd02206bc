// What a run does where operands lie on GPUs: bringing them to where the plan works, and the work of resident plans.
#include "engine/run.h"

namespace gpurdma {

using Kind = PlanOp::Kind;

// First whatever the application has queued on the default stream, then the copy of the input.
void Run::enter() {
  if (entered_) return;
  for (const GpuId gpu : {placement_.gpu, placement_.other}) {
    if (gpu == kHost || status_ != Status::ok) continue;
    Status status = Status::ok;
    const bool ready = means_.gpus->enter(gpu, &means_.inbox, token(kReady), &status);
    if (status != Status::ok)
      fail_here(status, "using the GPU that the operands lie on");
    else if (!ready)
      ++gpu_work_;
  }
  if (gpu_work_ == 0) copy_in_operand();
}

void Run::copy_in_operand() {
  if (placement_.enter.width != 0 && status_ == Status::ok) {
    const Status status = means_.gpus->copy(placement_.gpu, placement_.enter, &means_.inbox, token(kEntered));
    if (status == Status::ok) {
      ++gpu_work_;
      return;
    }
    fail_here(status, "copying the input");
  }
  entered_ = true;
}

void Run::leave() {
  owes_leave_ = false;
  if (status_ != Status::ok) return;
  const Status status = means_.gpus->copy(placement_.gpu, placement_.leave, &means_.inbox, token(kLeft));
  if (status == Status::ok)
    ++gpu_work_;
  else
    fail_here(status, "copying the result");
}

void Run::ask_gpu(uint32_t op) {
  const PlanOp& o = plan_->ops()[op];
  const Status status =
      o.kind == Kind::reduce
          ? means_.gpus->reduce(placement_.gpu, op_, type_, at(o.dst), at(o.a), at(o.b), o.dst.n, &means_.inbox,
                                token(op))
          : means_.gpus->copy(placement_.gpu, {at(o.dst), at(o.a), o.dst.n * element_}, &means_.inbox, token(op));
  if (status == Status::ok) {
    waits_[op] = kInFlight;
    ++gpu_work_;
    return;
  }
  fail_here(status, o.kind == Kind::reduce ? "reducing on the GPU" : "copying on the GPU");
  finish(op);
}

void Run::worked(uint32_t op, Status status) {
  --gpu_work_;
  if (op == kReady) {
    if (status != Status::ok) fail_here(status, "waiting for the default stream");
    if (gpu_work_ == 0) copy_in_operand();
  } else if (op == kEntered) {
    if (status != Status::ok) fail_here(status, "copying the input");
    entered_ = true;
  } else if (op == kLeft) {
    if (status != Status::ok) fail_here(status, "copying the result");
  } else {
    if (status != Status::ok) fail_here(status, "working on the GPU");
    finish(op);
    pump();
  }
}

void Run::take_to_gpu(Flow& flow, uint32_t op, const Payload& payload) {
  const Status status = means_.stager.receive(placement_.gpu, payload, at(plan_->ops()[op].dst), token(op));
  if (status == Status::ok) {
    waits_[op] = kInFlight;
    ++flow.fetches_in_flight;
    return;
  }
  if (status == Status::transport)
    fail(status, flow.peer->rank, "fetching");
  else
    fail_here(status, "copying a message into the GPU's memory");
  finish(op);
}

}  // namespace gpurdma
