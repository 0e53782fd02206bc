#include "base/status.h"

namespace gpurdma {

const char* text(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::unsupported:
      return "not supported here";
    case Status::no_memory:
      return "out of memory";
    case Status::peer_lost:
      return "a peer was lost";
    case Status::deadline:
      return "the deadline passed";
    case Status::remote:
      return "a peer failed";
    case Status::closed:
      return "the communicator was closed by an earlier failure";
    case Status::invalid:
      return "invalid argument or setting";
    case Status::transport:
      return "the transport failed";
    case Status::gpu:
      return "a GPU or its driver failed";
  }
  return "unknown status";
}

}  // namespace gpurdma
