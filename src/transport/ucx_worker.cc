#include "transport/ucx_worker.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/log.h"

namespace gpurdma {
namespace {

// Transports that map memory of users into other processes (design: never).
const char* const kForbidden[] = {"cuda_ipc", "xpmem", "rocm_ipc", "ze_ipc"};

// UCX's list of transports without the forbidden ones.
std::string allowed_transports() {
  const char* site = std::getenv("UCX_TLS");
  if (!site || !*site || std::strcmp(site, "all") == 0) {
    std::string all = "^";
    for (const char* name : kForbidden) all += std::string(all.size() > 1 ? "," : "") + name;
    return all;
  }
  std::string kept = site;
  const bool excludes = kept[0] == '^';
  for (const char* name : kForbidden) {
    const size_t at = ("," + kept + ",").find("," + std::string(name) + ",");
    if (excludes && at == std::string::npos && kept.compare(1, std::strlen(name), name) != 0)
      kept += std::string(",") + name;
    if (!excludes && at != std::string::npos) kept.erase(at ? at - 1 : 0, std::strlen(name) + 1);
  }
  return kept;
}

struct Preset {
  const char* name;         // without UCX_
  const char* environment;  // a site that sets one of these has its way
  const char* value;
};
const Preset kPresets[] = {
    // A slot of shared memory holds a whole piece of 32 KiB with our header and UCX's, so that a reduction reads the
    // piece where it lies.
    {"MM_SEG_SIZE", "UCX_MM_SEG_SIZE UCX_POSIX_SEG_SIZE UCX_SYSV_SEG_SIZE", "33k"},
    // Payloads of up to 1 KiB travel within the queue itself, not by way of a slot, which costs two more cache misses
    // in a row: measured
    // with two processes at 256 bytes 0.69 us instead of 0.95 us.
    {"MM_FIFO_ELEM_SIZE", "UCX_MM_FIFO_ELEM_SIZE UCX_POSIX_FIFO_ELEM_SIZE UCX_SYSV_FIFO_ELEM_SIZE", "1152"},
    // Otherwise UCX leaves shared memory out of endpoints that can be closed while messages to a dead peer are queued.
    {"MM_ERROR_HANDLING", "UCX_MM_ERROR_HANDLING UCX_POSIX_ERROR_HANDLING UCX_SYSV_ERROR_HANDLING", "y"},
    {"MM_RX_BUFS_GROW", "UCX_MM_RX_BUFS_GROW UCX_POSIX_RX_BUFS_GROW UCX_SYSV_RX_BUFS_GROW", "128"},
};

// Whether UCX may use its shared memory, so that presets for it are not reported as unused.
bool allows_shared_memory(const std::string& transports) {
  if (transports[0] == '^') return true;
  const std::string list = "," + transports + ",";
  for (const char* name : {"all", "shm", "sm", "mm", "posix", "sysv"})
    if (list.find("," + std::string(name) + ",") != std::string::npos) return true;
  return false;
}

bool site_sets(const char* names) {
  std::string rest = names;
  while (!rest.empty()) {
    const size_t space = rest.find(' ');
    if (std::getenv(rest.substr(0, space).c_str())) return true;
    rest = space == std::string::npos ? "" : rest.substr(space + 1);
  }
  return false;
}

const char* value_of(const char* environment) {
  const char* value = std::getenv(environment);
  return value ? value : "not set";
}

void set(ucp_config_t* config, const char* name, const char* value) {
  const ucs_status_t status = ucp_config_modify(config, name, value);
  if (status != UCS_OK) GPURDMA_LOG(debug, "UCX does not take %s=%s: %s", name, value, ucs_status_string(status));
}

}  // namespace

UcxWorker::~UcxWorker() {
  if (worker_) ucp_worker_destroy(worker_);
  if (context_) ucp_cleanup(context_);
}

Status UcxWorker::start() {
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status == UCS_OK) {
    const std::string transports = allowed_transports();
    set(config, "TLS", transports.c_str());
    // UCX would warn that transports we leave out, or preset, are not there.
    set(config, "WARN_INVALID_CONFIG", "n");
    for (const Preset& preset : kPresets)
      if (allows_shared_memory(transports) && !site_sets(preset.environment)) set(config, preset.name, preset.value);
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
    params.features = UCP_FEATURE_AM;
    params.name = "gpurdma";
    status = ucp_init(&params, config, &context_);
    ucp_config_release(config);
  }
  if (status == UCS_OK) {
    ucp_context_attr_t attributes{};
    attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
    knows_gpu_memory_ = ucp_context_query(context_, &attributes) == UCS_OK &&
                        (attributes.memory_types >> UCS_MEMORY_TYPE_CUDA & 1) != 0;
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    status = ucp_worker_create(context_, &params, &worker_);
  }
  if (status == UCS_OK) return Status::ok;
  GPURDMA_LOG(error,
              "UCX could not be started: %s; compare ucx_info -d with UCX_TLS (%s) and UCX_NET_DEVICES (%s). If "
              "/dev/shm is full or small, UCX_TLS=^posix does without it",
              ucs_status_string(status), value_of("UCX_TLS"), value_of("UCX_NET_DEVICES"));
  worker_ = nullptr;
  if (context_) ucp_cleanup(context_);
  context_ = nullptr;
  return Status::transport;
}

// UCX before 1.14 has no call that names the transports of an endpoint, but every release prints them:
// "lane[0]:  2:posix/memory.0 md[2] ..." and, in later ones, the same words in another frame.
Path path_of(ucp_ep_h endpoint) {
  char* text = nullptr;
  size_t bytes = 0;
  std::FILE* stream = open_memstream(&text, &bytes);
  if (!stream) return Path::tcp;
  ucp_ep_print_info(endpoint, stream);
  std::fclose(stream);

  Path slowest = Path::self;
  bool found = false;
  char* rest = nullptr;
  for (char* line = strtok_r(text, "\n", &rest); line; line = strtok_r(nullptr, "\n", &rest)) {
    const char* lane = std::strstr(line, "lane[");
    const char* name = lane ? std::strstr(lane, "]:") : nullptr;
    if (!name || !std::strstr(name, "am")) continue;  // lanes for messages only; "am" is among their uses
    name += 2;
    while (*name == ' ' || *name == ':' || (*name >= '0' && *name <= '9')) ++name;
    const auto is = [name](const char* prefix) { return std::strncmp(name, prefix, std::strlen(prefix)) == 0; };
    Path path = Path::tcp;
    if (is("self"))
      path = Path::self;
    else if (is("posix") || is("sysv") || is("mm") || is("cma") || is("knem"))
      path = Path::shared_memory;
    else if (is("rc") || is("dc") || is("ud") || is("gga") || is("srd"))
      path = Path::rdma;
    slowest = std::max(slowest, path);
    found = true;
  }
  std::free(text);
  return found ? slowest : Path::tcp;
}

}  // namespace gpurdma
