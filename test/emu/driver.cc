#include "emu/driver.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "emu/context.h"
#include "emu/failures.h"
#include "emu/fault.h"
#include "emu/leaks.h"

namespace emu {

thread_local bool in_host_function = false;

Driver& driver() {
  static Driver* const driver = new Driver;
  return *driver;
}

void fail(const char* format, ...) {
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  fprintf(stderr, "emulated CUDA driver: %s (pid %d)\n", message, int(getpid()));
  fflush(stderr);
  abort();
}

CUresult misuse(CUresult error, const char* format, ...) {
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  if (driver().settings.strict) fail("%s: %s", name_of(error), message);
  return error;
}

Call::Call(const char* function, Need need) {
  Driver& state = driver();
  if (in_host_function) fail("%s was called from a host function of a stream", function);
  lock_ = Lock(state.mutex);
  if (state.settings.trace) fprintf(stderr, "emulated CUDA driver: %s (pid %d)\n", function, int(getpid()));
  if (state.ended) {
    refused_ = CUDA_ERROR_DEINITIALIZED;
  } else if (need == Need::init && state.pid != getpid()) {
    refused_ = CUDA_ERROR_NOT_INITIALIZED;  // in a forked child too
  } else {
    refused_ = failure_of_call(function);
    if (refused_ == CUDA_SUCCESS && need == Need::init) refused_ = sticky_error();
  }
}

CUuuid Device::uuid() const {
  CUuuid uuid = {};
  memcpy(uuid.bytes, "gpurdma emulated", 16);
  uuid.bytes[15] = char(0x40 + physical);
  return uuid;
}

CUdevice count_of_devices() { return CUdevice(driver().devices.size()); }

}  // namespace emu

using namespace emu;

extern "C" CUresult emu_cuInit(unsigned flags) {
  return enter(
      "cuInit",
      [&](Lock&) {
        Driver& state = driver();
        if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
        if (state.pid == getpid()) return CUDA_SUCCESS;
        if (state.pid != 0) return CUDA_ERROR_NOT_INITIALIZED;  // a child of a process that had
        state.settings = settings_of_environment();
        const std::vector<int> visible = visible_devices(state.settings.devices);
        if (visible.empty()) return CUDA_ERROR_NO_DEVICE;
        for (const int device : visible) {
          state.devices.emplace_back();
          state.devices.back().physical = device;
        }
        state.random.seed(state.settings.seed ^
                          strtoull(environment("OMPI_COMM_WORLD_RANK", "0").c_str(), nullptr, 10));
        state.pid = getpid();
        catch_faults();
        report_at_exit();
        return CUDA_SUCCESS;
      },
      Need::nothing);
}

extern "C" CUresult emu_cuDriverGetVersion(int* version) {
  return enter(
      "cuDriverGetVersion",
      [&](Lock&) {
        if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
        *version = CUDA_VERSION;
        return CUDA_SUCCESS;
      },
      Need::nothing);
}
