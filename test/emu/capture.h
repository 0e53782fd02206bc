// Stream capture: what a program would have done is noted as a graph instead, and what would disturb that is refused
// and spoils the capture, as in the real driver. A graph keeps its work in the order in which it was captured.
#pragma once
#include <cuda.h>

#include <functional>

namespace emu {

struct Context;
struct Event;
struct Stream;

// Work, an event recorded, a wait for an event, where a capture is involved.
CUresult capture_work(Stream* stream, std::function<void()> run);
CUresult capture_record(Stream* stream, Event* event);
CUresult capture_wait(Stream* stream, Event* event);

// The legacy stream is used: while a blocking stream of the context captures, that is refused, and spoils the capture.
CUresult legacy_while_capturing(Context* context, const char* function);
// Something is asked of a stream (query, synchronize) that a capturing one cannot answer.
CUresult asked_while_capturing(Stream* stream, const char* function);

}  // namespace emu
