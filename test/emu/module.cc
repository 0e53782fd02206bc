#include "emu/module.h"

#include <cstring>

#include "emu/context.h"
#include "emu/counts.h"
#include "emu/kernels.h"
#include "emu/stream.h"

namespace emu {

namespace {

using gpurdma::ReduceArgs;
using gpurdma::ReduceTask;

struct Module {
  Context* context = nullptr;
  bool alive = true;
};

struct Function {
  Module* module = nullptr;
  Kernel kernel = nullptr;
  size_t element = 0;
};

Handles<Module>& modules() {
  static auto* const modules = new Handles<Module>;
  return *modules;
}

Handles<Function>& functions() {
  static auto* const functions = new Handles<Function>;
  return *functions;
}

thread_local Context* running = nullptr;  // whose kernel this thread runs

// A fat binary, alone or in the wrapper that nvcc makes, a cubin, or PTX.
bool is_image(const void* image) {
  uint32_t magic;
  memcpy(&magic, image, sizeof magic);
  const char* const text = static_cast<const char*>(image);
  return magic == 0xba55ed50 || magic == 0x466243b1 || memcmp(image, "\177ELF", 4) == 0 ||
         strncmp(text, ".version", 8) == 0 || strncmp(text, "//", 2) == 0;
}

CUresult load(CUmodule* handle, const void* image, const char* function) {
  return enter(function, [&](Lock&) {
    CUresult result;
    Context* const context = need_context(function, &result);
    if (context == nullptr) return result;
    if ((result = unsafe_while_capturing(function)) != CUDA_SUCCESS) return result;
    if (image == nullptr || !is_image(image)) return CUDA_ERROR_INVALID_IMAGE;
    if (driver().settings.refuses_images) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    auto module = std::make_shared<Module>();
    module->context = context;
    *handle = reinterpret_cast<CUmodule>(modules().add(std::move(module)));
    return CUDA_SUCCESS;
  });
}

Function* function_of(CUfunction handle, const char* call, CUresult* result) {
  Function* const function = functions().find(handle);
  *result = CUDA_SUCCESS;
  if (function != nullptr && function->module->alive) return function;
  *result = misuse(CUDA_ERROR_INVALID_HANDLE, "%s: %p is no kernel, or its module was unloaded", call, (void*)handle);
  return nullptr;
}

bool may_touch(const Context& context, const Memory& memory) {
  if (memory.on_host() || memory.kind == Memory::Kind::managed) return true;
  if (memory.kind == Memory::Kind::pool || memory.kind == Memory::Kind::mapped)
    return (memory.accessible >> context.device & 1) != 0;
  return memory.device == context.device || context.peers.count(memory.device) != 0;
}

// One operand of a task: checked, and where the emulator reaches it.
CUresult operand(const Context& context, const void* address, size_t bytes, std::vector<Place>* places, char** data) {
  CUresult result;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  places->push_back(place_of(begin, bytes, "a kernel", &result));
  const Place& place = places->back();
  if (result == CUDA_SUCCESS && place.memory == nullptr)
    result = misuse(CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel touches %#zx, which is no memory of the GPU", size_t(begin));
  if (result == CUDA_SUCCESS && !may_touch(context, *place.memory))
    result = misuse(CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel on device %d has no access to %s", context.device,
                    describe(begin).c_str());
  *data = place.data;
  return result == CUDA_SUCCESS ? result : CUDA_ERROR_ILLEGAL_ADDRESS;
}

struct Launch {
  Context* context;
  Kernel kernel;
  std::vector<ReduceTask> tasks;
  std::vector<Place> places;
  uint64_t threads;  // of a task

  void operator()() const {
    running = context;
    for (const ReduceTask& task : tasks)
      for (uint64_t thread = 0; thread < threads; ++thread) kernel(task, thread, threads);
    running = nullptr;
  }
};

}  // namespace

void misaligned_access(const void* address, size_t bytes) {
  if (driver().settings.strict) fail("a kernel touches %zu bytes at %p, which is misaligned", bytes, address);
  Lock lock(driver().mutex);
  running->sticky = CUDA_ERROR_MISALIGNED_ADDRESS;
}

void end_modules(Context* context) {
  for (const auto& [handle, module] : modules().all())
    if (module->context == context) module->alive = false;
}

size_t living_modules() {
  size_t living = 0;
  for (const auto& [handle, module] : modules().all()) living += module->alive ? 1 : 0;
  return living;
}

}  // namespace emu

using namespace emu;

extern "C" CUresult emu_cuModuleLoadData(CUmodule* module, const void* image) {
  return load(module, image, "cuModuleLoadData");
}

extern "C" CUresult emu_cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return load(module, image, "cuModuleLoadDataEx");
}

extern "C" CUresult emu_cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return load(module, image, "cuModuleLoadFatBinary");
}

extern "C" CUresult emu_cuModuleUnload(CUmodule handle) {
  return enter("cuModuleUnload", [&](Lock& lock) {
    Module* const module = modules().find(handle);
    if (module == nullptr || !module->alive)
      return misuse(CUDA_ERROR_INVALID_HANDLE, "cuModuleUnload: %p is no module, or was unloaded", (void*)handle);
    wait_for_context(module->context, lock);
    module->alive = false;
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuModuleGetFunction(CUfunction* handle, CUmodule module_handle, const char* name) {
  return enter("cuModuleGetFunction", [&](Lock&) {
    Module* const module = modules().find(module_handle);
    if (module == nullptr || !module->alive)
      return misuse(CUDA_ERROR_INVALID_HANDLE, "cuModuleGetFunction: %p is no module", (void*)module_handle);
    auto function = std::make_shared<Function>();
    function->module = module;
    function->kernel = find_kernel(name, &function->element);
    if (function->kernel == nullptr) return CUDA_ERROR_NOT_FOUND;
    *handle = reinterpret_cast<CUfunction>(functions().add(std::move(function)));
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  return enter("cuFuncGetAttribute", [&](Lock&) {
    CUresult result;
    if (function_of(handle, "cuFuncGetAttribute", &result) == nullptr) return result;
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024
             : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS            ? 32
                                                                  : 0;
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int threads,
                                                                    size_t) {
  return enter("cuOccupancyMaxActiveBlocksPerMultiprocessor", [&](Lock&) {
    CUresult result;
    if (function_of(handle, "cuOccupancyMaxActiveBlocksPerMultiprocessor", &result) == nullptr) return result;
    if (threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    *blocks = 2048 / threads;
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuOccupancyMaxPotentialBlockSize(int* blocks, int* threads, CUfunction handle, void*, size_t,
                                                         int) {
  return enter("cuOccupancyMaxPotentialBlockSize", [&](Lock&) {
    CUresult result;
    if (function_of(handle, "cuOccupancyMaxPotentialBlockSize", &result) == nullptr) return result;
    *blocks = 8;
    *threads = 1024;
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuLaunchKernel(CUfunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned,
                                       CUstream stream_handle, void** parameters, void** extra) {
  return enter("cuLaunchKernel", [&](Lock&) {
    CUresult result;
    const Function* const function = function_of(handle, "cuLaunchKernel", &result);
    if (function == nullptr) return result;
    Stream* const stream = stream_of(stream_handle, "cuLaunchKernel", &result);
    if (stream == nullptr) return result;
    if (current_context() != stream->context || function->module->context != stream->context)
      return misuse(CUDA_ERROR_INVALID_CONTEXT,
                    "cuLaunchKernel: kernel, stream and current context are not of one context");
    if (grid_x == 0 || grid_y == 0 || block_x == 0 || grid_z != 1 || block_y != 1 || block_z != 1 || block_x > 1024 ||
        grid_y > gpurdma::kTasksPerLaunch || extra != nullptr)
      return misuse(CUDA_ERROR_INVALID_VALUE, "cuLaunchKernel: a grid of %ux%ux%u blocks of %ux%ux%u threads", grid_x,
                    grid_y, grid_z, block_x, block_y, block_z);
    ReduceArgs arguments;
    memcpy(&arguments, parameters[0], sizeof arguments);
    Launch launch = {stream->context, function->kernel, {}, {}, uint64_t(grid_x) * block_x};
    uint64_t elements = 0;
    for (unsigned row = 0; row < grid_y; ++row) {
      const ReduceTask& task = arguments.tasks[row];
      if (task.count == 0) continue;
      char *dst, *left, *right;
      const size_t bytes = task.count * function->element;
      for (const auto& [address, data] :
           {std::pair<const void*, char**>(task.dst, &dst), {task.left, &left}, {task.right, &right}})
        if (result == CUDA_SUCCESS) result = operand(*stream->context, address, bytes, &launch.places, data);
      if (result != CUDA_SUCCESS) return stream->context->sticky = result;
      launch.tasks.push_back({dst, left, right, task.count});
      elements += task.count;
    }
    result = submit(stream, std::move(launch), "cuLaunchKernel");
    if (result == CUDA_SUCCESS) count_launch(3 * elements * function->element);
    return result;
  });
}
