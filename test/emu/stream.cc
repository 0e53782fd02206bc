#include "emu/stream.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <thread>

#include "emu/capture.h"
#include "emu/context.h"
#include "emu/counts.h"
#include "emu/event.h"

namespace emu {

namespace {

Handles<Stream>& streams() {
  static auto* const streams = new Handles<Stream>;
  return *streams;
}

// Mostly short, sometimes four times as long, so that work of several streams changes its order.
unsigned random_delay() {
  Driver& state = driver();
  const uint64_t number = state.random();
  const unsigned most = state.settings.delay_us * ((number >> 40) % 8 == 0 ? 4 : 1);
  return most == 0 ? 0 : unsigned(number % (most + 1));
}

void sleep_us(unsigned us) {
  const timespec time = {time_t(us / 1000000), long(us % 1000000) * 1000};
  nanosleep(&time, nullptr);
}

void work_on(const std::shared_ptr<Stream>& stream) {
  Driver& state = driver();
  Lock lock(state.mutex);
  for (;;) {
    stream->wake.wait(lock, [&] { return !stream->queue.empty() || !stream->alive; });
    if (stream->queue.empty()) return;
    const std::shared_ptr<Work> work = stream->queue.front();
    for (const auto& earlier : work->after) state.changed.wait(lock, [&] { return earlier->done; });
    if (work->run) {
      lock.unlock();
      if (work->delay_us != 0) sleep_us(work->delay_us);
      work->run();
      lock.lock();
    }
    work->done = true;
    work->run = nullptr;
    work->after.clear();
    stream->queue.pop_front();
    state.changed.notify_all();
  }
}

// The program's signals are for the program's threads.
void start(Stream* stream) {
  stream->started = true;
  sigset_t all, before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(work_on, streams().all().at(stream)).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Stream* stream_of_thread(Context* context) {
  thread_local std::map<Context*, std::pair<uint64_t, Stream*>> mine;
  auto& [id, stream] = mine[context];
  if (stream == nullptr || id != context->id) {
    id = context->id;
    context->streams.push_back(make_stream(context, CU_STREAM_DEFAULT, 0));
    stream = context->streams.back().get();
    stream->id = 0;  // the program did not make it
  }
  return stream;
}

}  // namespace

std::shared_ptr<Stream> make_stream(Context* context, unsigned flags, int priority) {
  auto stream = std::make_shared<Stream>();
  stream->context = context;
  stream->flags = flags;
  stream->priority = priority;
  streams().add(stream);
  return stream;
}

bool is_legacy(const Stream& stream) { return stream.context->legacy.get() == &stream; }

Stream* stream_of(CUstream handle, const char* function, CUresult* result) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    Context* const context = need_context(function, result);
    if (context == nullptr) return nullptr;
    return handle == CU_STREAM_PER_THREAD ? stream_of_thread(context) : context->legacy.get();
  }
  Stream* const stream = streams().find(handle);
  if (stream == nullptr || !stream->alive) {
    *result = misuse(CUDA_ERROR_INVALID_HANDLE, "%s: %p is no stream, or was destroyed", function, (void*)handle);
    return nullptr;
  }
  *result = CUDA_SUCCESS;
  return stream;
}

CUresult submit(Stream* stream, std::function<void()> run, const char* function,
                std::vector<std::shared_ptr<Work>> after, std::shared_ptr<Work>* work) {
  Context* const context = stream->context;
  const bool legacy = is_legacy(*stream);
  if (legacy) {
    const CUresult result = legacy_while_capturing(context, function);
    if (result != CUDA_SUCCESS) return result;
  }
  if (stream->capture != nullptr) return capture_work(stream, std::move(run));
  auto added = std::make_shared<Work>();
  added->delay_us = run ? random_delay() : 0;
  added->run = std::move(run);
  added->after = std::move(after);
  if (legacy) {
    for (const auto& other : context->streams)
      if (other->blocking() && !other->idle()) added->after.push_back(other->last);
  } else if (stream->blocking() && !context->legacy->idle()) {
    added->after.push_back(context->legacy->last);
  }
  stream->queue.push_back(added);
  stream->last = added;
  if (!stream->started) start(stream);
  stream->wake.notify_one();
  if (work != nullptr) *work = std::move(added);
  return CUDA_SUCCESS;
}

void wait_for(const std::shared_ptr<Work>& work, Lock& lock) {
  if (work == nullptr || work->done) return;
  count_wait();
  driver().changed.wait(lock, [&] { return work->done; });
}

void wait_for_stream(Stream* stream, Lock& lock) {
  std::vector<std::shared_ptr<Work>> all = {stream->last};
  if (is_legacy(*stream))
    for (const auto& other : stream->context->streams)
      if (other->blocking()) all.push_back(other->last);
  for (const auto& work : all) wait_for(work, lock);
}

void wait_for_context(Context* context, Lock& lock) {
  std::vector<std::shared_ptr<Work>> all;
  if (context->legacy != nullptr) all.push_back(context->legacy->last);
  for (const auto& stream : context->streams) all.push_back(stream->last);
  for (const auto& work : all) wait_for(work, lock);
}

bool is_idle(const Stream& stream) {
  if (!stream.idle()) return false;
  if (!is_legacy(stream)) return true;
  const auto& others = stream.context->streams;
  return std::all_of(others.begin(), others.end(),
                     [](const auto& other) { return !other->blocking() || other->idle(); });
}

void end_streams(Context* context) {
  for (const auto& stream : context->streams) {
    stream->alive = false;
    stream->wake.notify_one();
  }
  context->streams.clear();
  if (context->legacy != nullptr) {
    context->legacy->alive = false;
    context->legacy->wake.notify_one();
  }
  end_events(context);
}

void forget_ended_streams(Context* context) {
  auto& streams = context->streams;
  const auto ended = [](const auto& stream) { return !stream->alive && stream->idle(); };
  streams.erase(std::remove_if(streams.begin(), streams.end(), ended), streams.end());
}

std::vector<const Stream*> living_streams() {
  std::vector<const Stream*> living;
  for (const auto& [handle, stream] : streams().all())
    if (stream->alive && stream->id != 0) living.push_back(stream.get());
  return living;
}

}  // namespace emu
