#include "engine/mailbox.h"

#include <cstring>

namespace gpurdma {

Mailbox::~Mailbox() {
  for (Parked*& head : kept_) {
    while (Parked* parked = head) {
      head = parked->next;
      free(parked);
    }
  }
}

Parked* Mailbox::copy(const Header& header, const Payload& payload) {
  const size_t room = payload.data ? payload.bytes : 0;
  auto* parked = static_cast<Parked*>(memory_.take(sizeof(Parked) + room));
  if (!parked) return nullptr;
  *parked = {nullptr, header, payload.bytes, payload.offer, payload.data != nullptr};
  if (room) std::memcpy(parked + 1, payload.data, room);
  return parked;
}

void Mailbox::free(Parked* parked) { memory_.give(parked, sizeof(Parked) + (parked->copied ? parked->bytes : 0)); }

void Mailbox::keep(Parked* parked) {
  Parked*& head = kept_[bucket(parked->header.comm, parked->header.operation)];
  parked->next = head;
  head = parked;
  ++kept_count_;
}

Parked* Mailbox::collect(uint32_t comm, uint64_t operation) {
  if (kept_count_ == 0) return nullptr;
  Parked* found = nullptr;
  for (Parked** at = &kept_[bucket(comm, operation)]; *at;) {
    Parked* parked = *at;
    if (parked->header.comm != comm || parked->header.operation != operation) {
      at = &parked->next;
      continue;
    }
    *at = parked->next;
    parked->next = found;  // turns latest first into order of arrival
    found = parked;
    --kept_count_;
  }
  return found;
}

Parked* Mailbox::collect(uint32_t comm) {
  Parked* found = nullptr;
  for (size_t b = 0; b < kBuckets && kept_count_ != 0; ++b) {
    for (Parked** at = &kept_[b]; *at;) {
      Parked* parked = *at;
      if (parked->header.comm != comm) {
        at = &parked->next;
        continue;
      }
      *at = parked->next;
      parked->next = found;
      found = parked;
      --kept_count_;
    }
  }
  return found;
}

}  // namespace gpurdma
