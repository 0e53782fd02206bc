#include "emu/context.h"

#include "emu/memory.h"
#include "emu/module.h"
#include "emu/stream.h"

namespace emu {

namespace {

thread_local std::vector<Context*> stack;

Handles<Context>& contexts() {
  static auto* const contexts = new Handles<Context>;
  return *contexts;
}

void begin_context(Context* context) {
  context->alive = true;
  context->sticky = CUDA_SUCCESS;
  context->id = driver().next_id();
  context->legacy = make_stream(context, CU_STREAM_DEFAULT, 0);
}

Context* new_context(int device) {
  auto context = std::make_shared<Context>();
  context->device = device;
  return contexts().add(std::move(context));
}

Context* primary_of(CUdevice device) {
  Context*& primary = driver().devices[device].primary;
  if (primary == nullptr) {
    primary = new_context(device);
    primary->primary = true;
  }
  return primary;
}

CUresult release(CUdevice device, Lock& lock) {
  Device& state = driver().devices[device];
  if (state.primary_users == 0) return misuse(CUDA_ERROR_INVALID_CONTEXT, "a primary context is released too often");
  if (--state.primary_users == 0) end_context(state.primary, lock);
  return CUDA_SUCCESS;
}

}  // namespace

Context* current_context() { return stack.empty() ? nullptr : stack.back(); }

Context* need_context(const char* function, CUresult* result) {
  Context* const context = current_context();
  if (context == nullptr) {
    *result = misuse(CUDA_ERROR_INVALID_CONTEXT, "%s: this thread has no current context", function);
    return nullptr;
  }
  if (!context->alive) {
    *result = misuse(CUDA_ERROR_CONTEXT_IS_DESTROYED, "%s: the current context was destroyed", function);
    return nullptr;
  }
  *result = CUDA_SUCCESS;
  return context;
}

Context* context_of(CUcontext handle, const char* function, CUresult* result) {
  Context* const context = contexts().find(handle);
  if (context == nullptr || !context->alive) {
    *result = misuse(CUDA_ERROR_INVALID_CONTEXT, "%s: %p is no context, or was destroyed", function, (void*)handle);
    return nullptr;
  }
  *result = CUDA_SUCCESS;
  return context;
}

CUresult sticky_error() {
  const Context* const context = current_context();
  return context == nullptr ? CUDA_SUCCESS : context->sticky;
}

void end_context(Context* context, Lock& lock) {
  wait_for_context(context, lock);
  end_streams(context);
  end_modules(context);
  end_memory(context);
  context->peers.clear();
  context->alive = false;
}

}  // namespace emu

using namespace emu;

extern "C" CUresult emu_cuCtxGetCurrent(CUcontext* handle) {
  return enter("cuCtxGetCurrent", [&](Lock&) {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* const context = current_context();
    *handle = context == nullptr ? nullptr : context->handle();
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuCtxSetCurrent(CUcontext handle) {
  return enter("cuCtxSetCurrent", [&](Lock&) {
    CUresult result = CUDA_SUCCESS;
    Context* const context = handle == nullptr ? nullptr : context_of(handle, "cuCtxSetCurrent", &result);
    if (result != CUDA_SUCCESS) return result;
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(context);
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuCtxPushCurrent_v2(CUcontext handle) {
  return enter("cuCtxPushCurrent", [&](Lock&) {
    CUresult result;
    Context* const context = context_of(handle, "cuCtxPushCurrent", &result);
    if (context != nullptr) stack.push_back(context);
    return result;
  });
}

extern "C" CUresult emu_cuCtxPopCurrent_v2(CUcontext* handle) {
  return enter("cuCtxPopCurrent", [&](Lock&) {
    if (stack.empty()) return misuse(CUDA_ERROR_INVALID_CONTEXT, "cuCtxPopCurrent: nothing was pushed");
    if (handle != nullptr) *handle = stack.back()->handle();
    stack.pop_back();
    return CUDA_SUCCESS;
  });
}

// Asked by those who do not know whether there is a context, so that having none is no misuse.
extern "C" CUresult emu_cuCtxGetDevice(CUdevice* device) {
  return enter("cuCtxGetDevice", [&](Lock&) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Context* const context = current_context();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *device = context->device;
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
  if (handle == nullptr) return emu_cuCtxGetDevice(device);
  return enter("cuCtxGetDevice", [&](Lock&) {
    CUresult result;
    const Context* const context = context_of(handle, "cuCtxGetDevice", &result);
    if (context != nullptr) *device = context->device;
    return result;
  });
}

// Asked by those who want to know whether a context still is what it was, so that a destroyed one is no misuse.
extern "C" CUresult emu_cuCtxGetId(CUcontext handle, unsigned long long* id) {
  return enter("cuCtxGetId", [&](Lock&) {
    const Context* const context = handle == nullptr ? current_context() : contexts().find(handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (!context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *id = context->id;
    return CUDA_SUCCESS;
  });
}

// UCX tries these when it starts, whether there is a context or not.
extern "C" CUresult emu_cuCtxGetFlags(unsigned* flags) {
  return enter("cuCtxGetFlags", [&](Lock&) {
    CUresult result = CUDA_ERROR_INVALID_CONTEXT;
    const Context* const context = current_context() ? need_context("cuCtxGetFlags", &result) : nullptr;
    if (context != nullptr) *flags = context->flags;
    return result;
  });
}

extern "C" CUresult emu_cuCtxSetFlags(unsigned flags) {
  return enter("cuCtxSetFlags", [&](Lock&) {
    CUresult result = CUDA_ERROR_INVALID_CONTEXT;
    Context* const context = current_context() ? need_context("cuCtxSetFlags", &result) : nullptr;
    if (context != nullptr) context->flags = flags;
    return result;
  });
}

extern "C" CUresult emu_cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
  return enter("cuCtxGetApiVersion", [&](Lock&) {
    CUresult result = CUDA_SUCCESS;
    if (handle != nullptr && context_of(handle, "cuCtxGetApiVersion", &result) == nullptr) return result;
    *version = 3020;
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return enter("cuCtxGetStreamPriorityRange", [&](Lock&) {
    CUresult result;
    if (need_context("cuCtxGetStreamPriorityRange", &result) == nullptr) return result;
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuCtxCreate_v2(CUcontext* handle, unsigned flags, CUdevice device) {
  return enter("cuCtxCreate", [&](Lock&) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    Context* const context = new_context(device);
    context->flags = flags;
    begin_context(context);
    stack.push_back(context);
    *handle = context->handle();
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuCtxCreate_v4(CUcontext* handle, void* parameters, unsigned flags, CUdevice device) {
  if (parameters != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return emu_cuCtxCreate_v2(handle, flags, device);
}

extern "C" CUresult emu_cuCtxDestroy_v2(CUcontext handle) {
  return enter("cuCtxDestroy", [&](Lock& lock) {
    CUresult result;
    Context* const context = context_of(handle, "cuCtxDestroy", &result);
    if (context == nullptr) return result;
    if (context->primary) return misuse(CUDA_ERROR_INVALID_CONTEXT, "cuCtxDestroy: this is a primary context");
    end_context(context, lock);
    if (current_context() == context) stack.pop_back();
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return enter("cuDevicePrimaryCtxGetState", [&](Lock&) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (flags != nullptr) *flags = driver().devices[device].primary_flags;
    if (active != nullptr) *active = driver().devices[device].primary_users > 0;
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  return enter("cuDevicePrimaryCtxSetFlags", [&](Lock&) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    driver().devices[device].primary_flags = flags;
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuDevicePrimaryCtxRetain(CUcontext* handle, CUdevice device) {
  return enter("cuDevicePrimaryCtxRetain", [&](Lock&) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    Context* const context = primary_of(device);
    if (driver().devices[device].primary_users++ == 0) begin_context(context);
    *handle = context->handle();
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return enter("cuDevicePrimaryCtxRelease", [&](Lock& lock) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    return release(device, lock);
  });
}

extern "C" CUresult emu_cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return enter("cuDevicePrimaryCtxReset", [&](Lock& lock) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    Device& state = driver().devices[device];
    if (state.primary_users == 0) return CUDA_SUCCESS;
    end_context(state.primary, lock);
    begin_context(state.primary);  // it stays retained
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
  return enter("cuCtxEnablePeerAccess", [&](Lock&) {
    CUresult result;
    Context* const context = need_context("cuCtxEnablePeerAccess", &result);
    if (context == nullptr) return result;
    const Context* const peer = context_of(handle, "cuCtxEnablePeerAccess", &result);
    if (peer == nullptr) return result;
    if (flags != 0 || peer->device == context->device) return CUDA_ERROR_INVALID_VALUE;
    return context->peers.insert(peer->device).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  });
}

extern "C" CUresult emu_cuCtxDisablePeerAccess(CUcontext handle) {
  return enter("cuCtxDisablePeerAccess", [&](Lock&) {
    CUresult result;
    Context* const context = need_context("cuCtxDisablePeerAccess", &result);
    if (context == nullptr) return result;
    const Context* const peer = context_of(handle, "cuCtxDisablePeerAccess", &result);
    if (peer == nullptr) return result;
    return context->peers.erase(peer->device) != 0 ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  });
}

extern "C" CUresult emu_cuCtxSynchronize() {
  return enter("cuCtxSynchronize", [&](Lock& lock) {
    CUresult result;
    Context* const context = need_context("cuCtxSynchronize", &result);
    if (context == nullptr) return result;
    if ((result = unsafe_while_capturing("cuCtxSynchronize")) != CUDA_SUCCESS) return result;
    wait_for_context(context, lock);
    return context->sticky;
  });
}
