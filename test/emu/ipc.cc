// Memory of other processes: a handle says which file of which process it lies in, and where; the exporter must live.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "emu/context.h"
#include "emu/memory.h"
#include "emu/stream.h"

namespace emu {

namespace {

// What is in a CUipcMemHandle.
struct Exported {
  uint64_t magic;
  int pid, fd;
  int physical;  // the device's number on this machine
  uint64_t offset, bytes;
  uint64_t id;  // of the allocation in its process
};
static_assert(sizeof(Exported) <= sizeof(CUipcMemHandle));
constexpr uint64_t kMagic = 0x67707572646d6121;

struct Opened {
  Exported exported;
  Context* context;
  int users;
};

// What this process has opened, by address.
std::map<uintptr_t, Opened>& opened() {
  static auto* const opened = new std::map<uintptr_t, Opened>;
  return *opened;
}

int device_with(int physical) {
  for (int device = 0; device < count_of_devices(); ++device)
    if (driver().devices[device].physical == physical) return device;
  return -1;
}

// Maps it as this process's own device memory is: out of the CPU's reach, and where the emulator reaches it.
CUresult map_exported(const Exported& exported, int device, Context* context, uintptr_t* address) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", exported.pid, exported.fd);
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return CUDA_ERROR_MAP_FAILED;
  const size_t bytes = whole_pages(exported.bytes);
  const int protection = driver().settings.reachable ? PROT_READ | PROT_WRITE : PROT_NONE;
  void* const visible = mmap(nullptr, bytes, protection, MAP_SHARED, fd, off_t(exported.offset));
  void* const alias = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, off_t(exported.offset));
  close(fd);
  if (visible == MAP_FAILED || alias == MAP_FAILED) return CUDA_ERROR_MAP_FAILED;
  auto memory = std::make_shared<Memory>();
  memory->kind = Memory::Kind::imported;
  memory->address = *address = reinterpret_cast<uintptr_t>(visible);
  memory->bytes = exported.bytes;
  memory->alias = static_cast<char*>(alias);
  memory->device = device;
  memory->context = context;
  add_memory(std::move(memory));
  return CUDA_SUCCESS;
}

}  // namespace

}  // namespace emu

using namespace emu;

extern "C" CUresult emu_cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  return enter("cuIpcGetMemHandle", [&](Lock&) {
    const std::shared_ptr<Memory> memory = find_memory(address);
    if (memory == nullptr || memory->kind != Memory::Kind::device) return CUDA_ERROR_INVALID_VALUE;
    const Exported exported = {kMagic,
                               driver().pid,
                               arena_of(memory->device).fd(),
                               driver().devices[memory->device].physical,
                               memory->offset,
                               memory->bytes,
                               memory->id};
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &exported, sizeof exported);
    return CUDA_SUCCESS;
  });
}

// Opened once more in the same context it is the same address.
extern "C" CUresult emu_cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  return enter("cuIpcOpenMemHandle", [&](Lock&) {
    CUresult result;
    Context* const context = need_context("cuIpcOpenMemHandle", &result);
    if (context == nullptr) return result;
    Exported exported;
    memcpy(&exported, &handle, sizeof exported);
    if (exported.magic != kMagic || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
    if (exported.pid == driver().pid) return CUDA_ERROR_INVALID_CONTEXT;  // not in the process that made it
    const int device = device_with(exported.physical);
    if (device < 0) return CUDA_ERROR_INVALID_DEVICE;
    for (auto& [known, open] : opened()) {
      if (open.context != context || memcmp(&open.exported, &exported, sizeof exported) != 0) continue;
      ++open.users;
      *address = known;
      return CUDA_SUCCESS;
    }
    uintptr_t mapped = 0;
    if ((result = map_exported(exported, device, context, &mapped)) != CUDA_SUCCESS) return result;
    if (device != context->device) context->peers.insert(device);
    opened()[mapped] = {exported, context, 1};
    *address = mapped;
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  return emu_cuIpcOpenMemHandle_v2(address, handle, flags);
}

extern "C" CUresult emu_cuIpcCloseMemHandle(CUdeviceptr address) {
  return enter("cuIpcCloseMemHandle", [&](Lock& lock) {
    const auto open = opened().find(address);
    if (open == opened().end())
      return misuse(CUDA_ERROR_INVALID_VALUE, "cuIpcCloseMemHandle: %#llx was not opened", address);
    if (--open->second.users > 0) return CUDA_SUCCESS;
    wait_for_context(open->second.context, lock);
    opened().erase(open);
    free_memory(find_memory(address));
    return CUDA_SUCCESS;
  });
}
