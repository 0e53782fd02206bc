#include "test/sim/fake_gpus.h"

#include <cstring>

#include "test/sim/element.h"

namespace gpurdma::sim {
namespace {

bool is_away(const void* address) { return (reinterpret_cast<uintptr_t>(address) & kAway) != 0; }

}  // namespace

FakeGpus::FakeGpus(Network& network, int rank, const Behaviour& behaviour, uint64_t seed)
    : network_(network), rank_(rank), behaviour_(behaviour), random_(mix(seed + uint64_t(rank))), seed_(seed) {}

// ---- memory ----

void* FakeGpus::adopt(GpuId gpu, void* memory, size_t bytes) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(memory) | kAway;
  blocks_[at] = {nullptr, bytes, gpu, false};
  return reinterpret_cast<void*>(at);
}

void FakeGpus::disown(void* address) { blocks_.erase(reinterpret_cast<uintptr_t>(address)); }

void* FakeGpus::make(GpuId gpu, size_t bytes) {
  Block block{std::make_unique<char[]>(bytes + 256), bytes, gpu, true};
  uintptr_t at = (reinterpret_cast<uintptr_t>(block.memory.get()) + 255) & ~uintptr_t{255};
  std::memset(reinterpret_cast<void*>(at), 0x77, bytes);
  if (gpu != kHost) at |= kAway;
  blocks_[at] = std::move(block);
  ++held_;
  return reinterpret_cast<void*>(at);
}

void FakeGpus::drop(void* address, GpuId gpu, size_t bytes) {
  const auto found = blocks_.find(reinterpret_cast<uintptr_t>(address));
  if (found == blocks_.end() || found->second.gpu != gpu || !found->second.ours || found->second.bytes != bytes)
    return network_.complain("memory was given back that had not been taken so");
  blocks_.erase(found);
  --held_;
}

void* FakeGpus::take_pinned(size_t bytes) {
  if (bytes == 0 || random_.percent(behaviour_.short_memory)) return nullptr;
  return make(kHost, bytes);
}

void FakeGpus::give_pinned(void* block, size_t bytes) { drop(block, kHost, bytes); }

void* FakeGpus::take(GpuId gpu, size_t bytes) {
  if (random_.percent(behaviour_.short_memory)) return nullptr;
  return make(gpu, bytes);
}

void FakeGpus::give(GpuId gpu, void* block, size_t bytes) { drop(block, gpu, bytes); }

const FakeGpus::Block* FakeGpus::find(const void* address, size_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto after = blocks_.upper_bound(at);
  if (after == blocks_.begin()) return nullptr;
  --after;
  return at + bytes <= after->first + after->second.bytes ? &after->second : nullptr;
}

GpuId FakeGpus::place(const void* address) {
  const Block* block = find(address, 0);
  return block ? block->gpu : kHost;
}

// Where the memory really is, for work on that gpu.
void* FakeGpus::usable(GpuId gpu, const void* address, size_t bytes, bool any_host) {
  const Block* block = find(address, bytes);
  if (is_away(address) ? !block || (block->gpu != gpu && !any_host) : !block && !any_host)
    network_.complain("a GPU was given memory that it cannot use");
  return real_address(address);
}

// ---- work ----

Status FakeGpus::later(GpuInbox* inbox, GpuToken token, std::function<void()> work) {
  if (random_.percent(behaviour_.errors)) return Status::gpu;
  const Status end = random_.percent(behaviour_.errors) ? Status::gpu : Status::ok;
  ++open_;
  kept_back_.push_back([=] {
    network_.later(rank_, 1 + random_.below(behaviour_.longest_work), Network::Where::outside, [=] {
      if (end == Status::ok) work();
      ended_.push_back({inbox, token, end});
    });
  });
  return Status::ok;
}

bool FakeGpus::enter(GpuId, GpuInbox* inbox, GpuToken token, Status* status) {
  *status = Status::ok;
  if (!random_.percent(behaviour_.busy_stream)) return true;
  *status = later(inbox, token, [] {});
  return false;
}

bool FakeGpus::reduces(GpuId, Op op, Type type) {
  return mix(seed_ ^ (uint64_t(op) << 32 | uint64_t(type))) % 100 < behaviour_.kernels;
}

Status FakeGpus::copy(GpuId gpu, const GpuCopy& copy, GpuInbox* inbox, GpuToken token) {
  if (!is_away(copy.dst) && !is_away(copy.src)) network_.complain("a copy from host to host was asked of a GPU");
  if (copy.rows != 1) network_.complain("the engine copies no rows");
  void* const dst = usable(gpu, copy.dst, copy.width, true);
  const void* const src = usable(gpu, copy.src, copy.width, true);
  return later(inbox, token, [=] { std::memcpy(dst, src, copy.width); });
}

Status FakeGpus::reduce(GpuId gpu, Op op, Type type, void* dst, const void* left, const void* right, size_t count,
                        GpuInbox* inbox, GpuToken token) {
  if (!reduces(gpu, op, type)) network_.complain("a reduction was asked for that the GPU has no kernel for");
  const Element& element = elements()[size_t(type)];
  const size_t bytes = count * element.bytes;
  void* const d = usable(gpu, dst, bytes, false);
  const void* const l = usable(gpu, left, bytes, false);
  const void* const r = usable(gpu, right, bytes, false);
  return later(inbox, token, [=, &element] { element.reduce(d, l, r, count); });
}

void FakeGpus::flush() {
  std::vector<std::function<void()>> all;
  all.swap(kept_back_);
  for (const auto& start : all) start();
}

int FakeGpus::progress() {
  std::vector<Ended> all;
  all.swap(ended_);
  for (const Ended& e : all) {
    --open_;
    e.inbox->worked(e.token, e.status);
  }
  return int(all.size());
}

}  // namespace gpurdma::sim
