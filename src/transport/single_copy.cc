#include "transport/single_copy.h"

#include <sys/uio.h>

#include <cerrno>

namespace gpurdma {

uint32_t SingleCopy::enter(PeerId peer, Token token) {
  if (free_entries_.empty()) {
    free_entries_.push_back(uint32_t(entries_.size()));
    entries_.push_back({peer, kNoToken});
  }
  const uint32_t id = free_entries_.back();
  free_entries_.pop_back();
  entries_[id] = {peer, token};
  return id;
}

Token SingleCopy::leave(uint32_t id, PeerId peer) {
  if (id >= entries_.size() || entries_[id].peer != peer || entries_[id].token == kNoToken) return kNoToken;
  const Token token = entries_[id].token;
  entries_[id].token = kNoToken;
  free_entries_.push_back(id);
  return token;
}

Token SingleCopy::leave_any(PeerId peer) {
  for (uint32_t id = 0; id < entries_.size(); ++id)
    if (entries_[id].peer == peer && entries_[id].token != kNoToken) return leave(id, peer);
  return kNoToken;
}

void* SingleCopy::keep(PeerId peer, const RingMemory::Offer& offer) {
  if (!free_takings_) {
    takings_.emplace_back();
    free_takings_ = &takings_.back();
    free_takings_->next = nullptr;
  }
  Taking* const taking = free_takings_;
  free_takings_ = taking->next;
  *taking = {peer, offer, nullptr};
  return reinterpret_cast<char*>(taking) + 1;
}

void SingleCopy::drop(Taking* taking) {
  taking->next = free_takings_;
  free_takings_ = taking;
}

int SingleCopy::read(uint32_t pid, uint64_t address, void* into, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const iovec local{static_cast<char*>(into) + done, bytes - done};
    const iovec remote{reinterpret_cast<void*>(address + done), bytes - done};
    const ssize_t n = process_vm_readv(pid_t(pid), &local, 1, &remote, 1, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EFAULT;
    done += size_t(n);
  }
  return 0;
}

}  // namespace gpurdma
