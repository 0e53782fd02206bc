#include "engine/stager.h"

#include <cstring>

#include "base/log.h"

namespace gpurdma {

Status Stager::send(GpuId gpu, PeerId peer, const Header& header, const void* data, size_t bytes, Token token) {
  Load* load = take(gpu, bytes, token);
  if (!load) return Status::no_memory;
  load->peer = peer;
  load->header = header;
  load->stage = Stage::copying_out;
  const Status status = gpus_->copy(gpu, {load->piece, data, bytes}, this, load->index);
  if (status != Status::ok) give(*load);
  return status;
}

Status Stager::receive(GpuId gpu, const Payload& payload, void* data, Token token) {
  Load* load = take(gpu, payload.bytes, token);
  if (!load) {
    if (payload.offer) transport_.refuse(payload.offer);
    return Status::no_memory;
  }
  load->data = data;
  if (payload.data) {
    std::memcpy(load->piece, payload.data, payload.bytes);
  } else {
    load->stage = Stage::fetching;
    const auto fetched = transport_.fetch(payload.offer, load->piece, load->bytes, kMark | load->index);
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

Status Stager::copy_in(Load& load) {
  load.stage = Stage::copying_in;
  count(load);
  return gpus_->copy(load.gpu, {load.data, load.piece, load.bytes}, this, load.index);
}

void Stager::transmit(Load& load) {
  load.stage = Stage::sending;
  count(load);
  switch (transport_.send(load.peer, load.header, load.piece, load.bytes, kMark | load.index)) {
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

void Stager::count(const Load& load) { counters_.add(GpuCount::staged_messages, GpuCount::staged_bytes, load.bytes); }

Stager::Load* Stager::take(GpuId gpu, size_t bytes, Token token) {
  void* piece = gpus_->take_pinned(bytes);
  const bool pinned = piece != nullptr;
  if (!piece) piece = pageable_.take(bytes);
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
  load->pinned = pinned;
  load->bytes = bytes;
  return load;
}

void Stager::give(Load& load) {
  if (load.pinned)
    gpus_->give_pinned(load.piece, load.bytes);
  else
    pageable_.give(load.piece, load.bytes);
  load.next = free_;
  free_ = &load;
}

}  // namespace gpurdma
