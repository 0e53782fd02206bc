#include "staging.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "base/log.h"
#include "guard.h"
#include "runtime.h"

namespace gpurdma {

// ---- stand-ins ----

void* Staging::take(size_t bytes) {
  constexpr size_t kAlignment = 64;
  const size_t whole = (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  if (gpus_ && whole <= most_pinned_ - pinned_) {
    if (void* block = gpus_->take_pinned(bytes)) {
      pinned_ += whole;
      return block;
    }
  }
  void* block = std::aligned_alloc(kAlignment, whole);
  if (!block) return nullptr;
  try {
    pageable_.insert(block);
  } catch (const std::bad_alloc&) {
    std::free(block);
    return nullptr;
  }
  return block;
}

void Staging::give(void* block, size_t bytes) {
  if (pageable_.erase(block) != 0) return std::free(block);
  constexpr size_t kAlignment = 64;
  pinned_ -= (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  gpus_->give_pinned(block, bytes);
}

// ---- copies ----

Staging::Job& Staging::new_job(size_t* slot) {
  if (free_.empty()) {
    ended_.reserve(jobs_.size() + 1);  // so that nothing is allocated when a job ends
    free_.reserve(jobs_.size() + 1);
    jobs_.emplace_back();
    free_.push_back(jobs_.size() - 1);
  }
  *slot = free_.back();
  free_.pop_back();
  return jobs_[*slot];
}

bool Staging::add(Job& job, const gpurdma_rows_t& r) {
  const GpuId from = gpus_->place(r.src), to = gpus_->place(r.dst);
  if (from == kUnknown || to == kUnknown) return false;
  if (from == kHost && to == kHost) {
    GPURDMA_LOG(error, "memory at %p was on a GPU when the call began, and is no more", r.src);
    return false;
  }
  job.rows.push_back({from == kHost ? to : from, {r.dst, r.src, r.width, r.rows, r.dst_pitch, r.src_pitch}});
  return true;
}

Status Staging::copy(const gpurdma_rows_t* rows, size_t n, bool entry, void (*done)(void*, int), void* cookie) {
  if (!gpus_) return Status::unsupported;
  size_t slot;
  Job& job = new_job(&slot);
  job.ended = {done, cookie, Status::ok};
  job.open = 1;  // held until all is asked for, so that it cannot end meanwhile
  bool good = true;
  try {
    job.rows.reserve(n);
    for (size_t i = 0; i < n && good; ++i) good = add(job, rows[i]);
  } catch (const std::bad_alloc&) {
    job.rows.clear();
    free_.push_back(slot);
    throw;
  }
  if (!good) {
    job.rows.clear();
    free_.push_back(slot);
    return Status::invalid;
  }
  ++active_;
  if (entry) enter(slot);
  worked(slot, Status::ok);
  gpus_->flush();
  return Status::ok;
}

// Lets the GPUs of its rows tell when they may be worked on.
void Staging::enter(size_t slot) {
  Job& job = jobs_[slot];
  for (size_t i = 0; i < job.rows.size(); ++i) {
    const GpuId gpu = job.rows[i].gpu;
    const bool seen =
        std::any_of(job.rows.begin(), job.rows.begin() + long(i), [gpu](const Row& row) { return row.gpu == gpu; });
    if (seen || job.ended.status != Status::ok) continue;
    if (!gpus_->enter(gpu, this, slot, &job.ended.status) && job.ended.status == Status::ok) ++job.open;
  }
}

void Staging::ask(size_t slot) {
  Job& job = jobs_[slot];
  std::vector<Row> rows;
  rows.swap(job.rows);
  for (const Row& row : rows) {
    if (job.ended.status != Status::ok) return;
    job.ended.status = gpus_->copy(row.gpu, row.copy, this, slot);
    if (job.ended.status == Status::ok) ++job.open;
  }
}

void Staging::worked(GpuToken slot, Status status) {
  Job& job = jobs_[slot];
  if (job.ended.status == Status::ok) job.ended.status = status;
  if (--job.open != 0) return;
  if (!job.rows.empty() && job.ended.status == Status::ok) {
    ask(slot);
    if (job.open != 0) return gpus_->flush();
  }
  job.rows.clear();
  ended_.push_back(slot);
}

bool Staging::take_ended(Ended* ended) {
  if (ended_.empty()) return false;
  const size_t slot = ended_.front();
  ended_.erase(ended_.begin());
  *ended = jobs_[slot].ended;
  free_.push_back(slot);
  --active_;
  return true;
}

}  // namespace gpurdma

using namespace gpurdma;
using QuietHold = std::lock_guard<Engine>;

extern "C" {

int gpurdma_on_device(gpurdma_runtime_t* runtime, const void* address) {
  if (!runtime->gpus || !address) return 0;
  const QuietHold hold(runtime->engine);
  return runtime->staging.on_device(address);
}

void* gpurdma_stand_in_take(gpurdma_runtime_t* runtime, size_t bytes) {
  const QuietHold hold(runtime->engine);
  return runtime->staging.take(bytes);
}

void gpurdma_stand_in_give(gpurdma_runtime_t* runtime, void* block, size_t bytes) {
  if (!block) return;
  const QuietHold hold(runtime->engine);
  runtime->staging.give(block, bytes);
}

int gpurdma_copy(gpurdma_runtime_t* runtime, const gpurdma_rows_t* copies, size_t n, int entry,
                 void (*done)(void* cookie, int status), void* cookie) {
  return guarded([&] {
    const QuietHold hold(runtime->engine);
    const Status status = runtime->staging.copy(copies, n, entry != 0, done, cookie);
    if (status == Status::ok) runtime->ask_for_progress(2);
    return int(status);
  });
}

int gpurdma_gpu_present(const gpurdma_settings_t* settings) {
  return gpu_present(GpuSettings::Presence(settings->gpu));
}

}  // extern "C"
