// cuGetProcAddress, and what all functions do that the emulator does not have.
#include "emu/exports.h"

#include <cstdlib>
#include <cstring>

#include "emu/driver.h"

namespace emu {

namespace {

// Whether `name` is a version of the function `base`: base itself, or base_v2, ..., with `suffix` behind.
bool is_version_of(const char* name, const char* base, const char* suffix) {
  const size_t length = strlen(base);
  if (strncmp(name, base, length) != 0) return false;
  name += length;
  if (strncmp(name, "_v", 2) == 0) {
    char* end;
    strtol(name + 2, &end, 10);
    name = end;
  }
  return strcmp(name, suffix) == 0;
}

// The newest version of a function that a program of that version of CUDA knows; *known: there are others.
const Export* newest(const char* base, const char* suffix, int version, bool* known) {
  const Export* found = nullptr;
  for (size_t i = 0; i < kExportCount; ++i) {
    const Export& one = kExports[i];
    if (!is_version_of(one.name, base, suffix)) continue;
    *known = true;
    if (one.version <= version && (found == nullptr || one.version >= found->version)) found = &one;
  }
  return found;
}

}  // namespace

}  // namespace emu

using namespace emu;

extern "C" CUresult emu_not_supported() { return CUDA_ERROR_NOT_SUPPORTED; }

// `status`: CUdriverProcAddressQueryResult, since CUDA 12.0: 0 found, 1 not found, 2 the version is not sufficient.
extern "C" CUresult emu_cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
                                            int* status) {
  return enter(
      "cuGetProcAddress",
      [&](Lock&) {
        if (name == nullptr || function == nullptr || version > CUDA_VERSION) return CUDA_ERROR_INVALID_VALUE;
        constexpr cuuint64_t kPerThread = 2;
        bool known = false;
        const Export* found = nullptr;
        if ((flags & kPerThread) != 0) {
          found = newest(name, "_ptsz", version, &known);
          if (found == nullptr) found = newest(name, "_ptds", version, &known);
        }
        if (found == nullptr) found = newest(name, "", version, &known);
        *function = found == nullptr ? nullptr : reinterpret_cast<void*>(found->function);
        if (status != nullptr) *status = found != nullptr ? 0 : known ? 2 : 1;
        return CUDA_SUCCESS;
      },
      Need::nothing);
}

// Until 11.8 a function that is not there was an error.
extern "C" CUresult emu_cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags) {
  const CUresult result = emu_cuGetProcAddress_v2(name, function, version, flags, nullptr);
  return result == CUDA_SUCCESS && *function == nullptr ? CUDA_ERROR_NOT_FOUND : result;
}
