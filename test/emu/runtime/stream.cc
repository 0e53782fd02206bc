// Streams, events, and the capture of a stream. Handles and the two default streams (1: legacy, 2: of the thread) are
// those of the driver.
#include "emu/runtime/runtime.h"

using namespace emu_runtime;

namespace {

// What the driver calls back names no cudaError_t: this bridges the two signatures.
struct Callback {
  cudaStreamCallback_t function;
  void* data;
};
void CUDA_CB call_back(CUstream stream, CUresult status, void* data) {
  const Callback callback = *static_cast<Callback*>(data);
  delete static_cast<Callback*>(data);
  callback.function(stream, static_cast<cudaError_t>(status), callback.data);
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return in_context([&] { return cuStreamCreate(stream, flags); });
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  return in_context([&] { return cuStreamCreateWithPriority(stream, flags, priority); });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return in_context([&] { return cuStreamDestroy(stream); });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return in_context([&] { return cuStreamSynchronize(stream); });
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return in_context([&] { return cuStreamQuery(stream); });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return in_context([&] { return cuStreamWaitEvent(stream, event, flags); });
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags) {
  return in_context([&] { return cuStreamGetFlags(stream, flags); });
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return in_context([&] { return cuStreamGetPriority(stream, priority); });
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return in_context([&] { return cuStreamGetId(stream, id); });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return in_context([&] { return cuLaunchHostFunc(stream, function, data); });
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* data, unsigned int flags) {
  return in_context([&] {
    auto* callback = new Callback{function, data};
    const CUresult result = cuStreamAddCallback(stream, call_back, callback, flags);
    if (result != CUDA_SUCCESS) delete callback;
    return result;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return in_context([&] { return cuEventCreate(event, flags); });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return in_context([&] { return cuEventDestroy(event); });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return in_context([&] { return cuEventRecord(event, stream); });
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  return in_context([&] { return cuEventRecordWithFlags(event, stream, flags); });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return in_context([&] { return cuEventSynchronize(event); });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return in_context([&] { return cuEventQuery(event); });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  return in_context([&] { return cuEventElapsedTime(milliseconds, from, to); });
}
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return in_context([&] { return cuIpcGetEventHandle(reinterpret_cast<CUipcEventHandle*>(handle), event); });
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return in_context([&] { return cuIpcOpenEventHandle(event, reinterpret_cast<CUipcEventHandle&>(handle)); });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  return in_context([&] { return cuStreamBeginCapture(stream, static_cast<CUstreamCaptureMode>(mode)); });
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return in_context([&] { return cuStreamEndCapture(stream, graph); });
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* status) {
  return in_context([&] { return cuStreamIsCapturing(stream, reinterpret_cast<CUstreamCaptureStatus*>(status)); });
}
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode) {
  return started([&] { return cuThreadExchangeStreamCaptureMode(reinterpret_cast<CUstreamCaptureMode*>(mode)); });
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  return in_context([&] { return cuGraphInstantiate(executable, graph, flags); });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return in_context([&] { return cuGraphLaunch(executable, stream); });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return in_context([&] { return cuGraphExecDestroy(executable); });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return in_context([&] { return cuGraphDestroy(graph); });
}

}  // extern "C"
