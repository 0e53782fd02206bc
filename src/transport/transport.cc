#include "transport/transport.h"

namespace gpurdma {

const char* name_of(Path path) {
  switch (path) {
    case Path::self:
      return "self";
    case Path::shared_memory:
      return "shared_memory";
    case Path::rdma:
      return "rdma";
    case Path::tcp:
      return "tcp";
  }
  return "unknown";
}

}  // namespace gpurdma
