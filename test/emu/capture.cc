#include "emu/capture.h"

#include <algorithm>
#include <thread>

#include "emu/context.h"
#include "emu/event.h"
#include "emu/stream.h"

namespace emu {

struct Capture {
  uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  Stream* origin = nullptr;
  bool spoilt = false;
  std::vector<std::function<void()>> work;
  std::map<Stream*, bool> streams;              // that take part: whether another waits for all that was captured in it
  std::map<const Event*, Stream*> recorded_in;  // the last record of each event
};

namespace {

struct Graph {
  std::vector<std::function<void()>> work;
  bool alive = true;
};

Handles<Graph>& graphs() {
  static auto* const graphs = new Handles<Graph>;
  return *graphs;
}

std::vector<std::shared_ptr<Capture>>& captures() {
  static auto* const captures = new std::vector<std::shared_ptr<Capture>>;
  return *captures;
}

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

bool is_legacy_handle(CUstream stream) { return stream == nullptr || stream == CU_STREAM_LEGACY; }

// Whether the legacy stream is out of use for now.
bool blocking_stream_captures(const Context* context) {
  const auto& streams = context->streams;
  return std::any_of(streams.begin(), streams.end(),
                     [](const auto& stream) { return stream->capture != nullptr && stream->blocking(); });
}

Graph* graph_of(void* handle, const char* function, CUresult* result) {
  Graph* const graph = graphs().find(handle);
  *result = CUDA_SUCCESS;
  if (graph != nullptr && graph->alive) return graph;
  *result = misuse(CUDA_ERROR_INVALID_HANDLE, "%s: %p is no graph, or was destroyed", function, handle);
  return nullptr;
}

CUresult capture_info(CUstream handle, const char* function, CUstreamCaptureStatus* status, cuuint64_t* id) {
  CUresult result;
  const Stream* const stream = stream_of(handle, function, &result);
  if (stream == nullptr) return result;
  if (is_legacy(*stream) && blocking_stream_captures(stream->context)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  const Capture* const capture = stream->capture.get();
  *status = capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE
            : capture->spoilt  ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                               : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (capture != nullptr && id != nullptr) *id = capture->id;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult capture_work(Stream* stream, std::function<void()> run) {
  if (stream->capture->spoilt) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (run) stream->capture->work.push_back(std::move(run));
  stream->capture->streams[stream] = false;
  return CUDA_SUCCESS;
}

CUresult capture_record(Stream* stream, Event* event) {
  if (stream->capture->spoilt) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  event->captured = stream->capture;
  event->recorded = nullptr;
  stream->capture->recorded_in[event] = stream;
  return CUDA_SUCCESS;
}

CUresult capture_wait(Stream* stream, Event* event) {
  const std::shared_ptr<Capture> capture = event->captured;
  if (stream->capture != nullptr && stream->capture->spoilt) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (capture == nullptr) {  // capturing, and the event is from outside
    if (event->recorded == nullptr) return CUDA_SUCCESS;
    stream->capture->spoilt = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (is_legacy(*stream)) {
    capture->spoilt = true;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (stream->capture != nullptr && stream->capture != capture) {
    capture->spoilt = stream->capture->spoilt = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  stream->capture = capture;  // joins it, where it has not yet
  capture->streams[capture->recorded_in.at(event)] = true;
  capture->streams[stream] = false;
  return CUDA_SUCCESS;
}

CUresult legacy_while_capturing(Context* context, const char*) {
  if (!blocking_stream_captures(context)) return CUDA_SUCCESS;
  for (const auto& stream : context->streams)
    if (stream->capture != nullptr && stream->blocking()) stream->capture->spoilt = true;
  return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

CUresult asked_while_capturing(Stream* stream, const char* function) {
  if (is_legacy(*stream)) return legacy_while_capturing(stream->context, function);
  if (stream->capture == nullptr) return unsafe_while_capturing(function);
  stream->capture->spoilt = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult unsafe_while_capturing(const char*) {
  if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : captures()) {
    const bool mine = capture->thread == std::this_thread::get_id() && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool forbids_all =
        thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!mine && !forbids_all) continue;
    capture->spoilt = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

}  // namespace emu

using namespace emu;

extern "C" CUresult emu_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return enter("cuThreadExchangeStreamCaptureMode", [&](Lock&) {
    std::swap(*mode, thread_mode);
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  return enter("cuStreamBeginCapture", [&](Lock&) {
    CUresult result;
    Stream* const stream = stream_of(handle, "cuStreamBeginCapture", &result);
    if (stream == nullptr) return result;
    if (is_legacy_handle(handle)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    stream->capture = std::make_shared<Capture>();
    stream->capture->id = driver().next_id();
    stream->capture->mode = mode;
    stream->capture->thread = std::this_thread::get_id();
    stream->capture->origin = stream;
    stream->capture->streams[stream] = false;
    captures().push_back(stream->capture);
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  return enter("cuStreamEndCapture", [&](Lock&) {
    CUresult result;
    Stream* const stream = stream_of(handle, "cuStreamEndCapture", &result);
    if (stream == nullptr) return result;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id())
      return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    bool joined = true;
    for (const auto& [other, is_joined] : capture->streams) {
      joined = joined && (is_joined || other == stream);
      other->capture = nullptr;
    }
    auto& all = captures();
    all.erase(std::find(all.begin(), all.end(), capture));
    *graph = nullptr;
    if (capture->spoilt) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!joined) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    auto made = std::make_shared<Graph>();
    made->work = std::move(capture->work);
    *graph = reinterpret_cast<CUgraph>(graphs().add(std::move(made)));
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return enter("cuStreamIsCapturing",
               [&](Lock&) { return capture_info(stream, "cuStreamIsCapturing", status, nullptr); });
}

extern "C" CUresult emu_cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return enter("cuStreamGetCaptureInfo",
               [&](Lock&) { return capture_info(stream, "cuStreamGetCaptureInfo", status, id); });
}

// The graph and its nodes are not shown.
extern "C" CUresult emu_cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                                  CUgraph* graph, const CUgraphNode** nodes, size_t* count) {
  if (graph != nullptr || nodes != nullptr || count != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return emu_cuStreamGetCaptureInfo(stream, status, id);
}

extern "C" CUresult emu_cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                                  CUgraph* graph, const CUgraphNode** nodes, const void** edges,
                                                  size_t* count) {
  if (edges != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return emu_cuStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, count);
}

extern "C" CUresult emu_cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph handle, unsigned long long) {
  return enter("cuGraphInstantiate", [&](Lock&) {
    CUresult result;
    const Graph* const graph = graph_of(handle, "cuGraphInstantiate", &result);
    if (graph != nullptr) *executable = reinterpret_cast<CUgraphExec>(graphs().add(std::make_shared<Graph>(*graph)));
    return result;
  });
}

extern "C" CUresult emu_cuGraphLaunch(CUgraphExec executable, CUstream handle) {
  return enter("cuGraphLaunch", [&](Lock&) {
    CUresult result;
    const Graph* const graph = graph_of(executable, "cuGraphLaunch", &result);
    if (graph == nullptr) return result;
    Stream* const stream = stream_of(handle, "cuGraphLaunch", &result);
    if (stream == nullptr) return result;
    const auto all = graph->work;
    return submit(
        stream,
        [all] {
          for (const auto& run : all) run();
        },
        "cuGraphLaunch");
  });
}

static CUresult destroy_graph(void* handle, const char* function) {
  return enter(function, [&](Lock&) {
    CUresult result;
    Graph* const graph = graph_of(handle, function, &result);
    if (graph == nullptr) return result;
    graph->alive = false;
    graph->work.clear();
    return CUDA_SUCCESS;
  });
}

extern "C" CUresult emu_cuGraphDestroy(CUgraph graph) { return destroy_graph(graph, "cuGraphDestroy"); }
extern "C" CUresult emu_cuGraphExecDestroy(CUgraphExec graph) { return destroy_graph(graph, "cuGraphExecDestroy"); }

// How much was captured is all that is told of the nodes.
extern "C" CUresult emu_cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  return enter("cuGraphGetNodes", [&](Lock&) {
    CUresult result;
    const Graph* const graph = graph_of(handle, "cuGraphGetNodes", &result);
    if (graph == nullptr) return result;
    if (nodes != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    *count = graph->work.size();
    return CUDA_SUCCESS;
  });
}
