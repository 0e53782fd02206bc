// The product behind its C boundary, on a communicator of one rank: nothing is sent, so no UCX is needed.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpurdma.h"
#include "reduce/types.h"

namespace gpurdma {

struct Boundary {
  gpurdma_settings_t settings;
  gpurdma_host_t host{[](int, const char* line) { log() += std::string(line) + "\n"; }, [] {}, [](int) {},
                      [](void* cookie, int status) { *static_cast<int*>(cookie) = status; }};
  gpurdma_runtime_t* runtime = nullptr;
  gpurdma_comm_t* comm = nullptr;

  static std::string& log() {
    static std::string lines;
    return lines;
  }

  Boundary() {
    log().clear();
    gpurdma_settings_default(&settings);
    settings.verbose = 3;
  }
  ~Boundary() {
    gpurdma_comm_destroy(comm);
    gpurdma_runtime_destroy(runtime);
  }
  Boundary(const Boundary&) = delete;

  void open() {
    ASSERT_EQ(gpurdma_runtime_create(&settings, &host, &runtime), GPURDMA_OK) << log();
    gpurdma_comm_info_t info{};
    info.size = 1;
    info.name = "alone";
    ASSERT_EQ(gpurdma_comm_create(runtime, &info, &comm), GPURDMA_OK);
  }

  int sum(const std::vector<int>& in, std::vector<int>& out) {
    return gpurdma_allreduce(comm, in.data(), out.data(), in.size(), int(Op::sum), int(Type::int32));
  }

  // UINT64_MAX: there is no such counter.
  uint64_t counter(const std::string& name) const {
    const gpurdma_counter_t* counters;
    const size_t n = gpurdma_counters(&counters);
    for (size_t i = 0; i < n; ++i)
      if (name == counters[i].name) return gpurdma_counter_read(runtime, i);
    return UINT64_MAX;
  }
};

}  // namespace gpurdma
