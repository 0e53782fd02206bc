#include "engine/placement.h"

namespace gpurdma {

Status Placer::place(const Operands& o, Placement* placement) {
  *placement = {};
  const GpuId output_at = gpus_ ? gpus_->place(o.output) : kHost;
  const GpuId input_at = o.input == o.output || !gpus_ ? output_at : gpus_->place(o.input);
  if (output_at == kUnknown || input_at == kUnknown) return Status::gpu;
  if (output_at == kHost && input_at == kHost) {
    placement->input = o.input == o.output ? nullptr : o.input;
    placement->output = o.output;
    return Status::ok;
  }
  const bool resident = output_at != kHost && !rules_.mirror_always && o.bytes() > rules_.mirror_up_to &&
                        gpus_->reduces(output_at, o.op, o.type);
  if (!resident) return mirror(o, placement);
  placement->kind = Placement::Kind::resident;
  placement->gpu = output_at;
  placement->output = o.output;
  if (input_at == output_at) {
    placement->input = o.input == o.output ? nullptr : o.input;
  } else {
    if (input_at != kHost) placement->other = input_at;
    placement->enter = {o.output, o.input, o.bytes()};
  }
  return Status::ok;
}

Status Placer::mirror(const Operands& o, Placement* placement) {
  release(*placement);
  *placement = {};
  placement->kind = Placement::Kind::mirror;
  const GpuId output_at = gpus_->place(o.output), input_at = gpus_->place(o.input);
  if (output_at == kUnknown || input_at == kUnknown) return Status::gpu;
  placement->gpu = output_at != kHost ? output_at : input_at;
  if (input_at != kHost && input_at != placement->gpu) placement->other = input_at;
  if (output_at == kHost) {
    placement->output = o.output;
  } else {
    placement->mirror = gpus_->take_pinned(o.bytes());
    placement->pinned_mirror = placement->mirror != nullptr;
    if (!placement->mirror) placement->mirror = pageable_.take(o.bytes());
    if (!placement->mirror && o.bytes() > 0) return Status::no_memory;
    placement->output = placement->mirror;
    placement->leave = {o.output, placement->mirror, o.bytes()};
  }
  if (input_at == kHost)
    placement->input = o.input;  // and the output is on a GPU
  else
    placement->enter = {placement->output, o.input, o.bytes()};
  return Status::ok;
}

bool Placer::take_scratch(Placement& placement, size_t bytes) {
  if (bytes == 0) return true;
  placement.scratch = gpus_->take(placement.gpu, bytes);
  placement.scratch_bytes = bytes;
  return placement.scratch != nullptr;
}

void Placer::release(Placement& placement) {
  if (placement.scratch) gpus_->give(placement.gpu, placement.scratch, placement.scratch_bytes);
  if (placement.mirror && placement.pinned_mirror)
    gpus_->give_pinned(placement.mirror, placement.leave.width);
  else if (placement.mirror)
    pageable_.give(placement.mirror, placement.leave.width);
  placement.scratch = placement.mirror = nullptr;
}

}  // namespace gpurdma
