// The C boundary, first part: settings, and the key by which processes agree whether gpurdma runs on a communicator.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/log.h"
#include "base/status.h"
#include "coll/catalogue.h"
#include "coll/node_spec.h"
#include "coll/tuning_file.h"
#include "device/gpus.h"
#include "gpurdma.h"
#include "guard.h"
#include "transport/arena.h"

namespace gpurdma {
namespace {

// A key's lower half: 8 bits of version, 20 of a hash, and flags. Processes whose versions differ do not understand
// each other.
constexpr uint32_t kVersion = 2;
constexpr uint32_t kAble = 1, kNamed = 2, kGpu = 4;
constexpr int kHashShift = 4, kVersionShift = 24;
constexpr uint32_t kHashMask = 0xFFFFF;
constexpr int kNodeShift = 32;

bool decided_by_table(const char* algorithm) {
  return !algorithm || !*algorithm || std::strcmp(algorithm, "auto") == 0;
}

uint32_t mix(uint32_t hash, uint64_t value) {
  for (int i = 0; i < 8; ++i) hash = (hash ^ uint8_t(value >> 8 * i)) * 16777619u;  // FNV-1a
  return hash;
}

uint32_t mix(uint32_t hash, const std::string& text) {
  for (const char c : text) hash = mix(hash, uint64_t(uint8_t(c)));
  return mix(hash, text.size());
}

ParsedTuning tuning_of(const gpurdma_settings_t& settings) {
  return parse_tuning(settings.tuning ? settings.tuning : "");
}

// Of the settings that must agree: those that choose what runs.
uint32_t hash(const gpurdma_settings_t& settings) {
  uint32_t h = mix(2166136261u, uint64_t(settings.scope));
  if (!decided_by_table(settings.algorithm)) h = mix(h, std::string(settings.algorithm));
  h = mix(mix(mix(h, settings.piece), uint64_t(settings.depth)), uint64_t(settings.priority));
  h = mix(h, uint64_t(settings.radix));
  h = mix(h, std::string(settings.test_nodes ? settings.test_nodes : ""));
  for (const TuningRow& row : before_builtin(tuning_of(settings).rows)) h = mix(h, to_line(row));
  return (h ^ h >> 20) & kHashMask;
}

// What the process says of its node.
uint32_t node_of(const gpurdma_settings_t& settings, const char* name, uint32_t rank) {
  NodeSpec spec;
  if (NodeSpec::parse(settings.test_nodes, &spec) && !spec.empty()) return spec.node_of(rank);
  return mix(2166136261u, std::string(name ? name : ""));
}

void inactive(gpurdma_verdict_t* verdict, const char* format, int rank) {
  *verdict = {};
  std::snprintf(verdict->reason, sizeof verdict->reason, format, rank);
}

}  // namespace
}  // namespace gpurdma

using namespace gpurdma;

extern "C" {

const char* gpurdma_status_text(int status) { return text(Status(status)); }

void gpurdma_settings_default(gpurdma_settings_t* settings) {
  *settings = {};  // no tuning, no nodes, no deadline, and the table decides
  settings->priority = 95;
  settings->scope = GPURDMA_SCOPE_AUTO;
  settings->algorithm = "auto";
  settings->tuning = settings->test_nodes = "";
  settings->shared_memory = size_t(2) << 20;
  settings->single_copy = 1;
  settings->gpu = GPURDMA_GPU_DETECT;
  settings->pinned_memory = size_t(128) << 20;
  settings->device_memory = size_t(64) << 20;
  settings->input_ready = GPURDMA_INPUT_READY_DEFAULT_STREAM;
  settings->gpu_path = GPURDMA_GPU_PATH_AUTO;
  settings->gpu_mirror = size_t(256) << 10;  // reckoned: four copies cost what a kernel launch for each step does
  settings->gpu_kernels = 1;
  settings->stall_warning_s = 60;
  settings->verbose = int(log::Level::warn);
}

const char* gpurdma_algorithm_names(void) { return algorithm_names(Collective::allreduce); }

int gpurdma_settings_check(const gpurdma_settings_t* s, char* message, size_t size) {
  const auto bad = [&](const char* format, auto... arguments) {
    const int n = std::snprintf(message, size, "setting coll_gpurdma_");
    if (n >= 0 && size_t(n) < size) std::snprintf(message + n, size - size_t(n), format, arguments...);
    return int(GPURDMA_INVALID);
  };
  if (s->priority > 100) return bad("priority is %d; allowed are whole numbers up to 100", s->priority);
  if (s->scope < GPURDMA_SCOPE_AUTO || s->scope > GPURDMA_SCOPE_NEVER)
    return bad("scope is %d; allowed are 0 (auto), 1 (always), 2 (never)", s->scope);
  if (!decided_by_table(s->algorithm) && !find_algorithm(Collective::allreduce, s->algorithm))
    return bad("algorithm is \"%s\"; allowed are auto, %s", s->algorithm, gpurdma_algorithm_names());
  if (s->piece > size_t(1) << 30)
    return bad("piece is %zu; allowed are 0 (the table decides) and 1 to 1073741824 bytes", s->piece);
  if (s->depth < 0 || s->depth > 1024)
    return bad("depth is %d; allowed are 0 (the table decides) and 1 to 1024 slots", s->depth);
  if (s->radix != 0 && (s->radix < 2 || s->radix > kMostRadix))
    return bad("radix is %d; allowed are 0 (the table decides) and 2 to %d", s->radix, kMostRadix);
  const int status = guarded([&] {
    const std::string error = tuning_of(*s).error;
    return error.empty() ? int(GPURDMA_OK) : bad("tuning: %s", error.c_str());
  });
  if (status != GPURDMA_OK) return status;
  NodeSpec nodes;
  if (!NodeSpec::parse(s->test_nodes, &nodes))
    return bad(
        "test_nodes is \"%s\"; allowed are nothing, N (blocks of N ranks), N,M,... (blocks of these sizes, the last "
        "one "
        "repeated), %%N (rank modulo N)",
        s->test_nodes);
  if (s->shared_memory != 0 && (s->shared_memory < Arena::kLeast || s->shared_memory > Arena::kMost))
    return bad("shared_memory is %zu; allowed are 0 (none) and %zu to %zu bytes", s->shared_memory, Arena::kLeast,
               Arena::kMost);
  if (s->gpu < GPURDMA_GPU_DETECT || s->gpu > GPURDMA_GPU_NO)
    return bad("gpu is %d; allowed are 0 (detect), 1 (yes), 2 (no)", s->gpu);
  if (s->gpu_path < GPURDMA_GPU_PATH_AUTO || s->gpu_path > GPURDMA_GPU_PATH_DIRECT)
    return bad("gpu_path is %d; allowed are 0 (auto), 1 (mirror), 2 (staged), 3 (direct)", s->gpu_path);
  if (s->input_ready < GPURDMA_INPUT_READY_DEFAULT_STREAM || s->input_ready > GPURDMA_INPUT_READY_NONE)
    return bad("input_ready is %d; allowed are 0 (default_stream), 1 (none)", s->input_ready);
  if (!std::isfinite(s->deadline_s) || s->deadline_s < 0)
    return bad("deadline is %g; allowed are 0 (none) and any positive number of seconds", s->deadline_s);
  if (!std::isfinite(s->stall_warning_s) || s->stall_warning_s < 0)
    return bad("stall_warning is %g; allowed are 0 (never) and any positive number of seconds", s->stall_warning_s);
  if (s->verbose < int(log::Level::error) || s->verbose > int(log::Level::trace))
    return bad("verbose is %d; allowed are 0 (errors), 1 (warnings), 2 (info), 3 (debug), 4 (trace)", s->verbose);
  return GPURDMA_OK;
}

int gpurdma_tuning_read(const char* path, char** rows, char* message, size_t size) {
  return guarded([&]() -> int {
    const ParsedTuning parsed = read_tuning(path);
    if (!parsed.error.empty()) {
      std::snprintf(message, size, "setting coll_gpurdma_tuning: %s", parsed.error.c_str());
      return GPURDMA_INVALID;
    }
    std::string text;
    for (const TuningRow& row : parsed.rows) text += to_line(row) + "\n";
    char* copy = strdup(text.c_str());
    if (!copy) return GPURDMA_NO_MEMORY;
    *rows = copy;
    return GPURDMA_OK;
  });
}

uint64_t gpurdma_key(const gpurdma_settings_t* settings, int named, const char* node, uint32_t rank) {
  return uint64_t(node_of(*settings, node, rank)) << kNodeShift | kVersion << kVersionShift |
         hash(*settings) << kHashShift | (gpu_present(GpuSettings::Presence(settings->gpu)) ? kGpu : 0) |
         (named ? kNamed : 0) | kAble;
}

uint32_t gpurdma_key_node(uint64_t key) { return uint32_t(key >> kNodeShift); }

int gpurdma_key_gpu(uint64_t key) { return (key & kGpu) != 0; }

void gpurdma_decide(const uint64_t* keys, int size, int scope, gpurdma_verdict_t* verdict) {
  if (scope == GPURDMA_SCOPE_NEVER) return inactive(verdict, "scope is never", 0);
  const auto agreed = [](uint64_t key) { return uint32_t(key) >> kHashShift; };
  int gpu = -1, named = -1;
  for (int rank = size - 1; rank >= 0; --rank) {
    if (keys[rank] & kGpu) gpu = rank;
    if (keys[rank] & kNamed) named = rank;
  }
  for (int rank = 0; rank < size; ++rank) {
    if (!(keys[rank] & kAble)) {
      inactive(verdict, "gpurdma is missing or could not start on rank %d", rank);
      verdict->surprising = named >= 0;  // a rank that is not the first of its node keeps bad settings to itself
      return;
    }
    if (agreed(keys[rank]) == agreed(keys[0])) continue;
    if (uint32_t(keys[rank]) >> kVersionShift != uint32_t(keys[0]) >> kVersionShift)
      inactive(verdict, "rank %d has another version of gpurdma than rank 0", rank);
    else
      inactive(verdict,
               "rank %d has other settings (scope, priority, algorithm, piece, depth, radix or tuning) than rank 0",
               rank);
    verdict->surprising = 1;
    return;
  }
  if (scope == GPURDMA_SCOPE_AUTO && named < 0 && gpu < 0)
    return inactive(verdict, "scope is auto, no rank has a GPU, and --mca coll does not name gpurdma", 0);
  verdict->active = 1;
  verdict->surprising = 0;
  if (scope == GPURDMA_SCOPE_ALWAYS)
    std::snprintf(verdict->reason, sizeof verdict->reason, "scope is always");
  else if (named >= 0)
    std::snprintf(verdict->reason, sizeof verdict->reason, "--mca coll names gpurdma");
  else
    std::snprintf(verdict->reason, sizeof verdict->reason, "rank %d has a GPU", gpu);
}

}  // extern "C"
