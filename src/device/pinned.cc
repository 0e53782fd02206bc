#include "device/pinned.h"

#include <sys/mman.h>

#include "base/log.h"

namespace gpurdma {

CUresult pin(const Driver& driver, size_t bytes, void** memory) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  // A child of fork() would share the pages until either writes to them, and the GPU would go on with the wrong copy.
  (void)madvise(at, bytes, MADV_DONTFORK);
  const CUresult result =
      driver.mem_host_register(at, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  if (result != CUDA_SUCCESS) {
    munmap(at, bytes);
    return result;
  }
  *memory = at;
  return CUDA_SUCCESS;
}

void unpin(const Driver& driver, void* memory, size_t bytes, CUresult entered) {
  if (!gone(entered)) {
    const CUresult result = driver.mem_host_unregister(memory);
    if (result != CUDA_SUCCESS && !gone(result) && result != CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED)
      GPURDMA_LOG(warn, "%zu bytes of pinned memory were not given back by the CUDA driver: %s", bytes,
                  driver.text(result));
  }
  munmap(memory, bytes);
}

}  // namespace gpurdma
