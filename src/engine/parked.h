// A message that waits for its run to start, or for its place in it: copied aside, so nothing of the transport's is
// held.
#pragma once
#include "transport/transport.h"

namespace gpurdma {

struct alignas(64) Parked {
  Parked* next;
  Header header;
  size_t bytes;
  void* offer;  // see Payload
  bool copied;  // the payload follows this struct

  Payload payload() const { return {copied ? this + 1 : nullptr, bytes, offer}; }
};

}  // namespace gpurdma
