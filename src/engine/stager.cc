#include "engine/stager.h"

#include <cstring>

#include "base/log.h"

namespace gpurdma {

bool Stager::goes_directly(PeerId peer, size_t bytes) const {
  return direct_ != Direct::never && bytes > Transport::kInline && transport_.takes_gpu_memory(peer) &&
         (direct_ == Direct::always || transport_.path(peer) == Path::rdma);
}

Status Stager::send(GpuId gpu, PeerId peer, const Header& header, const void* data, size_t bytes, Token token) {
  Load* load = take(gpu, bytes, goes_directly(peer, bytes), token);
  if (!load) return Status::no_memory;
  load->peer = peer;
  load->header = header;
  load->stage = Stage::copying_out;
  const Status status = gpus_->copy(gpu, {load->piece, data, bytes}, this, load->index);
  if (status != Status::ok) give(*load);
  return status;
}

Status Stager::receive(GpuId gpu, const Payload& payload, void* data, Token token) {
  const bool device = payload.offer && direct_ != Direct::never && transport_.takes_gpu_memory(payload.offer);
  Load* load = take(gpu, payload.bytes, device, token);
  if (!load) {
    if (payload.offer) transport_.refuse(payload.offer);
    return Status::no_memory;
  }
  load->data = data;
  if (payload.data) {
    std::memcpy(load->piece, payload.data, payload.bytes);
  } else {
    load->stage = Stage::fetching;
    const Transport::Sent fetched = fetch(*load, payload.offer);
    if (fetched == Transport::Sent::pending) return Status::ok;
    if (fetched == Transport::Sent::failed) {
      give(*load);
      return Status::transport;
    }
  }
  const Status status = copy_in(*load);
  if (status != Status::ok) give(*load);
  return status;
}

Transport::Sent Stager::fetch(Load& load, void* offer) {
  const Token token = kMark | load.index;
  return load.kind == Kind::device ? transport_.fetch_to_gpu(offer, load.piece, load.bytes, token)
                                   : transport_.fetch(offer, load.piece, load.bytes, token);
}

Status Stager::copy_in(Load& load) {
  load.stage = Stage::copying_in;
  count(load);
  return gpus_->copy(load.gpu, {load.data, load.piece, load.bytes}, this, load.index);
}

void Stager::transmit(Load& load) {
  load.stage = Stage::sending;
  count(load);
  const Token token = kMark | load.index;
  switch (load.kind == Kind::device ? transport_.send_from_gpu(load.peer, load.header, load.piece, load.bytes, token)
                                    : transport_.send(load.peer, load.header, load.piece, load.bytes, token)) {
    case Transport::Sent::done:
      return end(load, Status::ok);
    case Transport::Sent::pending:
      return;
    case Transport::Sent::failed:
      return end(load, Status::transport);
  }
}

// The receiver counts on a message.
void Stager::transmit_mark(const Load& load) {
  Header header = load.header;
  header.kind = Header::Kind::failed;
  if (transport_.send(load.peer, header, nullptr, 0, kNoToken) == Transport::Sent::failed)
    GPURDMA_LOG(error, "a peer could not be told that a message to it failed on the GPU");
}

void Stager::completed(Token token, Status status) {
  Load& load = loads_[size_t(token & ~kMark)];
  if (load.stage == Stage::fetching && status == Status::ok) {
    status = copy_in(load);
    if (status == Status::ok) return;
  }
  end(load, status);
}

void Stager::worked(GpuToken token, Status status) {
  Load& load = loads_[size_t(token)];
  if (load.stage == Stage::copying_out) {
    if (status == Status::ok) return transmit(load);
    transmit_mark(load);
  }
  end(load, status);
}

void Stager::end(Load& load, Status status) {
  const Token token = load.token;
  give(load);
  listener_.carried(token, status);
}

void Stager::count(const Load& load) {
  if (load.kind == Kind::device)
    counters_.add(GpuCount::direct_messages, GpuCount::direct_bytes, load.bytes);
  else
    counters_.add(GpuCount::staged_messages, GpuCount::staged_bytes, load.bytes);
}

Stager::Load* Stager::take(GpuId gpu, size_t bytes, bool device, Token token) {
  Kind kind = Kind::device;
  void* piece = device ? gpus_->take(gpu, bytes) : nullptr;
  if (!piece) {
    kind = Kind::pinned;
    piece = gpus_->take_pinned(bytes);
  }
  if (!piece) {
    kind = Kind::pageable;
    piece = pageable_.take(bytes);
  }
  if (!piece) return nullptr;
  if (!free_) {
    loads_.emplace_back();
    loads_.back().index = uint32_t(loads_.size() - 1);
    free_ = &loads_.back();
  }
  Load* load = free_;
  free_ = load->next;
  load->gpu = gpu;
  load->token = token;
  load->piece = piece;
  load->kind = kind;
  load->bytes = bytes;
  return load;
}

void Stager::give(Load& load) {
  switch (load.kind) {
    case Kind::device:
      gpus_->give(load.gpu, load.piece, load.bytes);
      break;
    case Kind::pinned:
      gpus_->give_pinned(load.piece, load.bytes);
      break;
    case Kind::pageable:
      pageable_.give(load.piece, load.bytes);
  }
  load.next = free_;
  free_ = &load;
}

}  // namespace gpurdma
