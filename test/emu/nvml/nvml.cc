// libnvidia-ml.so.1 for the software driver: the part of NVML without which UCX's CUDA module does not load. It looks
// all of these up, or uses none. There are no NVLinks and no fabric.
//
// The structures are written from NVIDIA's documentation of NVML; the toolkit need not bring nvml.h.
#include <cstdio>

#include "emu/emu.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

enum Result : int { kOk = 0, kUninitialized = 1, kInvalidArgument = 2, kNotSupported = 3 };

struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device;
  unsigned pci_device_id;  // of the chip and its vendor
  unsigned pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68, "nvmlPciInfo_t");

struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency_us;
  int value_type;
  int result;
  unsigned long long value;
};
static_assert(sizeof(FieldValue) == 40, "nvmlFieldValue_t");

struct FabricInfo {  // the part that versions 2 and 3 share
  unsigned version;
  unsigned char cluster_uuid[16];
  int status;
  unsigned clique;
  unsigned char state;  // 0: not supported
};

constexpr unsigned kNvidia = 0x10de;

// A handle is the number of the device plus one.
using Handle = struct nvmlDevice_st*;

int device_of(Handle handle) { return static_cast<int>(reinterpret_cast<long>(handle)) - 1; }

}  // namespace

EXPORT Result nvmlInit_v2() { return kOk; }
EXPORT Result nvmlShutdown() { return kOk; }

// NVML does not start CUDA.
EXPORT Result nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(emu_device_count());
  return kOk;
}

EXPORT Result nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle* handle) {
  if (index >= static_cast<unsigned>(emu_device_count())) return kInvalidArgument;
  *handle = reinterpret_cast<Handle>(static_cast<long>(index) + 1);
  return kOk;
}
EXPORT Result nvmlDeviceGetHandleByIndex(unsigned index, Handle* handle) {
  return nvmlDeviceGetHandleByIndex_v2(index, handle);
}

EXPORT Result nvmlDeviceGetPciInfo_v3(Handle handle, PciInfo* info) {
  PciInfo found = {};
  int domain, bus, device;
  if (emu_pci_id(device_of(handle), &domain, &bus, &device) != 0) return kInvalidArgument;
  found.domain = static_cast<unsigned>(domain);
  found.bus = static_cast<unsigned>(bus);
  found.device = static_cast<unsigned>(device);
  std::snprintf(found.legacy_bus_id, sizeof found.legacy_bus_id, "%04X:%02X:%02X.0", found.domain & 0xffff,
                found.bus & 0xff, found.device & 0xff);
  std::snprintf(found.bus_id, sizeof found.bus_id, "%08X:%02X:%02X.0", found.domain, found.bus & 0xff,
                found.device & 0xff);
  found.pci_device_id = kNvidia;
  *info = found;
  return kOk;
}

// Each value carries a result of its own.
EXPORT Result nvmlDeviceGetFieldValues(Handle, int count, FieldValue* values) {
  for (int i = 0; i < count; ++i) values[i].result = kNotSupported;
  return kOk;
}

EXPORT Result nvmlDeviceGetNvLinkRemotePciInfo_v2(Handle, unsigned, PciInfo*) { return kNotSupported; }
EXPORT Result nvmlDeviceGetNvLinkRemotePciInfo(Handle, unsigned, PciInfo*) { return kNotSupported; }

EXPORT Result nvmlDeviceGetGpuFabricInfoV(Handle, FabricInfo* info) {
  info->status = kOk;
  info->state = 0;
  return kOk;
}

EXPORT const char* nvmlErrorString(Result result) {
  switch (result) {
    case kOk:
      return "success";
    case kUninitialized:
      return "uninitialized";
    case kInvalidArgument:
      return "invalid argument";
    case kNotSupported:
      return "not supported";
  }
  return "unknown error";
}
