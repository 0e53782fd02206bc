// One UCX context and worker of our own, apart from those of the MPI library.
//
// Read from UCX's usual environment, with what design and measurements ask for where the site has not said otherwise.
// One thread at a time.
#pragma once
#include <ucp/api/ucp.h>

#include <cstddef>

#include "base/status.h"
#include "transport/transport.h"

namespace gpurdma {

class UcxWorker {
 public:
  UcxWorker() = default;
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  // Cost: some 10 ms. Logs what went wrong. Errors: transport.
  Status start();
  bool started() const { return worker_ != nullptr; }
  ucp_worker_h get() const { return worker_; }
  // UCX was built with CUDA, and found a driver that was in use when start() was called.
  bool knows_gpu_memory() const { return knows_gpu_memory_; }

 private:
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  bool knows_gpu_memory_ = false;
};

// The slowest path that UCX chose for messages on the endpoint.
Path path_of(ucp_ep_h endpoint);

}  // namespace gpurdma
