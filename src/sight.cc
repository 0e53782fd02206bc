// The C boundary, third part: counters for MPI_T, and the table printed at the end.
#include <algorithm>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "runtime.h"

using namespace gpurdma;

namespace {

enum class Value { calls, bytes, time_ns, sent_bytes, gpu };

struct Named {
  std::string name, help;
  Value value;
  int algorithm, path;  // gpu: path is a GpuCount
};

constexpr gpurdma_counter_t kGpu[] = {
    {"gpu_mirrored", "Calls on device memory that worked on a copy of it in host memory"},
    {"gpu_mirrored_bytes", "Bytes of operands of these calls"},
    {"gpu_resident", "Calls on device memory that worked on the GPU"},
    {"gpu_resident_bytes", "Bytes of operands of these calls"},
    {"gpu_staged_messages", "Messages that went between a GPU and the network through pinned host memory"},
    {"gpu_staged_bytes", "Bytes of these messages"},
    {"gpu_direct_messages", "Messages that UCX took from or brought to device memory"},
    {"gpu_direct_bytes", "Bytes of these messages"},
};
constexpr int kGpuCounts = int(GpuCount::count);
static_assert(sizeof kGpu / sizeof *kGpu == kGpuCounts, "a name for each");

struct List {
  std::vector<Named> named;
  std::vector<gpurdma_counter_t> counters;

  List() {
    for (int path = 0; path < Counters::kPaths; ++path) {
      const std::string over = name_of(Path(path));
      for (size_t a = 0; a < catalogue().size(); ++a) {
        const std::string by = std::string(name_of(catalogue()[a].collective)) + " by " + catalogue()[a].name;
        const std::string prefix = std::string(catalogue()[a].name) + "_" + over;
        named.push_back(
            {prefix + "_calls", "Calls of " + by + " whose slowest path was " + over, Value::calls, int(a), path});
        named.push_back({prefix + "_bytes", "Bytes of operands of these calls", Value::bytes, int(a), path});
        named.push_back({prefix + "_time_ns", "Nanoseconds from start to end of these calls, waiting included",
                         Value::time_ns, int(a), path});
      }
      named.push_back({over + "_sent_bytes", "Bytes of payload sent over " + over, Value::sent_bytes, 0, path});
    }
    for (int i = 0; i < kGpuCounts; ++i) named.push_back({kGpu[i].name, kGpu[i].help, Value::gpu, 0, i});
    for (const Named& n : named) counters.push_back({n.name.c_str(), n.help.c_str()});
  }
};

const List& list() {
  static const List all;
  return all;
}

}  // namespace

extern "C" {

size_t gpurdma_counters(const gpurdma_counter_t** counters) {
  *counters = list().counters.data();
  return list().counters.size();
}

uint64_t gpurdma_counter_read(gpurdma_runtime_t* runtime, size_t index) {
  if (!runtime || index >= list().named.size()) return 0;
  const std::lock_guard<Engine> lock(runtime->engine);
  const Named& n = list().named[index];
  if (n.value == Value::gpu) return runtime->counters.gpu[n.path];
  const Counters::Row& row = runtime->counters.rows[n.algorithm][n.path];
  switch (n.value) {
    case Value::calls:
      return row.calls;
    case Value::bytes:
      return row.bytes;
    case Value::time_ns:
      return uint64_t(clock::seconds(row.ticks) * 1e9);
    case Value::sent_bytes:
      return runtime->counters.sent_bytes[n.path];
    case Value::gpu:
      break;
  }
  return 0;
}

size_t gpurdma_summary(gpurdma_runtime_t* runtime, char* text, size_t size) {
  const std::lock_guard<Engine> lock(runtime->engine);
  char line[160];
  const std::string head =
      "gpurdma on this process (calls that Open MPI makes for itself are among them; times of overlapping calls add "
      "up)\n"
      "collective  algorithm     path               calls          bytes     seconds    us/call\n";
  std::string table = head;
  for (size_t a = 0; a < catalogue().size(); ++a) {
    for (int path = 0; path < Counters::kPaths; ++path) {
      const Counters::Row& row = runtime->counters.rows[a][path];
      if (row.calls == 0) continue;
      const double seconds = clock::seconds(row.ticks);
      std::snprintf(line, sizeof line, "%-11s %-13s %-14s %9llu %14llu %11.6f %10.2f\n",
                    name_of(catalogue()[a].collective), catalogue()[a].name, name_of(Path(path)),
                    static_cast<unsigned long long>(row.calls), static_cast<unsigned long long>(row.bytes), seconds,
                    seconds * 1e6 / double(row.calls));
      table += line;
    }
  }
  for (int path = 0; path < Counters::kPaths; ++path) {
    if (runtime->counters.sent_bytes[path] == 0) continue;
    std::snprintf(line, sizeof line, "sent over %s: %llu bytes\n", name_of(Path(path)),
                  static_cast<unsigned long long>(runtime->counters.sent_bytes[path]));
    table += line;
  }
  static constexpr const char* kWhat[] = {"calls through a mirror in host memory", "calls resident on the GPU",
                                          "messages staged through pinned memory", "messages by UCX directly"};
  for (int i = 0; i < kGpuCounts; i += 2) {
    if (runtime->counters.gpu[i] == 0) continue;
    std::snprintf(line, sizeof line, "device memory: %llu %s, %llu bytes\n",
                  static_cast<unsigned long long>(runtime->counters.gpu[i]), kWhat[i / 2],
                  static_cast<unsigned long long>(runtime->counters.gpu[i + 1]));
    table += line;
  }
  if (table == head) table = "gpurdma ran nothing on this process\n";
  const size_t n = std::min(table.size(), size ? size - 1 : 0);
  if (size) {
    table.copy(text, n);
    text[n] = '\0';
  }
  return n;
}

}  // extern "C"
