// The devices: what cuDevice... says of them.
#include <cstdio>
#include <cstring>

#include "emu/driver.h"
#include "emu/emu.h"

using namespace emu;

extern "C" int emu_device_count() { return int(visible_devices(settings_of_environment().devices).size()); }

extern "C" int emu_pci_id(int device, int* domain, int* bus, int* slot) {
  const std::vector<int> visible = visible_devices(settings_of_environment().devices);
  if (device < 0 || device >= int(visible.size())) return -1;
  Device physical;
  physical.physical = visible[device];
  *domain = 0;
  *bus = physical.bus();
  *slot = 0;
  return 0;
}

extern "C" CUresult emu_cuDeviceGetCount(int* count) {
  return enter("cuDeviceGetCount", [&](Lock&) {
    *count = count_of_devices();
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuDeviceGet(CUdevice* device, int ordinal) {
  return enter("cuDeviceGet", [&](Lock&) {
    if (!is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuDeviceGetName(char* name, int length, CUdevice device) {
  return enter("cuDeviceGetName", [&](Lock&) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, size_t(length), "gpurdma emulated GPU");
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return enter("cuDeviceGetUuid", [&](Lock&) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *uuid = driver().devices[device].uuid();
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuDeviceGetUuid(CUuuid* uuid, CUdevice device) { return emu_cuDeviceGetUuid_v2(uuid, device); }

extern "C" CUresult emu_cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return enter("cuDeviceTotalMem", [&](Lock&) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *bytes = driver().settings.memory;
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  return enter("cuDeviceGetPCIBusId", [&](Lock&) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    const int written = snprintf(text, size_t(length), "0000:%02X:00.0", driver().devices[device].bus());
    return written < length ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

extern "C" CUresult emu_cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  return enter("cuDeviceGetByPCIBusId", [&](Lock&) {
    unsigned domain = 0, bus = 0, slot = 0;
    if (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3) return CUDA_ERROR_INVALID_VALUE;
    for (CUdevice i = 0; i < count_of_devices(); ++i) {
      if (domain != 0 || slot != 0 || driver().devices[i].bus() != int(bus)) continue;
      *device = i;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
  });
}

extern "C" CUresult emu_cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return enter("cuDeviceCanAccessPeer", [&](Lock&) {
    if (!is_device(device) || !is_device(peer)) return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer;
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice source,
                                                CUdevice destination) {
  return enter("cuDeviceGetP2PAttribute", [&](Lock&) {
    if (!is_device(source) || !is_device(destination) || source == destination) return CUDA_ERROR_INVALID_DEVICE;
    *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
    return CUDA_SUCCESS;
  });
}

// What a data-centre GPU of compute capability 8.0 says. 0: it has not, or nobody asked yet.
static int attribute_of(const Device& device, CUdevice_attribute attribute) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return 2147483647;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      return 2147483647;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return 1000000;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return 4;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return 2048;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return 32;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return 8;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return 0;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return device.bus();
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 2;
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      return 1;
    default:
      break;
  }
  switch (int(attribute)) {  // numbers: they were named differently over the years, or are newer than some toolkits
    case 92:                 // CAN_USE_STREAM_MEM_OPS, until 12.0
    case 93:                 // CAN_USE_64_BIT_STREAM_MEM_OPS, until 12.0
    case 122:                // CAN_USE_64_BIT_STREAM_MEM_OPS
    case 123:                // CAN_USE_STREAM_WAIT_VALUE_NOR
      return 1;
    case 117:  // GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS: host
      return 1;
    default:
      return 0;
  }
}

extern "C" CUresult emu_cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return enter("cuDeviceGetAttribute", [&](Lock&) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (attribute <= 0) return CUDA_ERROR_INVALID_VALUE;
    const auto& others = driver().settings.attributes;
    const auto other = others.find(int(attribute));
    *value = other != others.end() ? other->second : attribute_of(driver().devices[device], attribute);
    return CUDA_SUCCESS;
  });
}
