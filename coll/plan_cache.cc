#include "coll/plan_cache.h"

#include <cassert>
#include <memory>

#include "coll/layout.h"

namespace gpurdma {
namespace {

bool same(const PlanKey& x, const PlanKey& y) {
  return x.call.count == y.call.count && x.algorithm == y.algorithm && x.rank == y.rank && x.size == y.size &&
         x.call.in_place == y.call.in_place && x.call.root == y.call.root && x.tuning.piece == y.tuning.piece &&
         x.tuning.depth == y.tuning.depth && x.tuning.radix == y.tuning.radix && x.layout == y.layout;
}

uint64_t hash_of(const PlanKey& key) {
  uint64_t hash = reinterpret_cast<uintptr_t>(key.algorithm);
  const auto mix = [&hash](uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };
  mix(key.call.count);
  mix(uint64_t{static_cast<uint32_t>(key.rank)} << 32 | static_cast<uint32_t>(key.size));
  mix(key.tuning.piece);
  mix(uint64_t{static_cast<uint32_t>(key.tuning.depth)} << 32 | static_cast<uint32_t>(key.call.root) << 1 |
      key.call.in_place);
  mix(reinterpret_cast<uintptr_t>(key.layout) ^ static_cast<uint32_t>(key.tuning.radix));
  return hash;
}

}  // namespace

struct PlanCache::Entry : Plan {
  Entry(const PlanKey& k, uint64_t h) : Plan(k.rank, k.size), key(k), hash(h) {
    if (k.layout != nullptr) layout = k.layout->shared_from_this();
  }

  PlanKey key;
  std::shared_ptr<const Layout> layout;
  uint64_t hash;
  uint32_t uses = 0;
  Entry* chain = nullptr;
  Entry *newer = nullptr, *older = nullptr;
};

PlanCache::~PlanCache() {
  while (newest_ != nullptr) {
    remove(newest_);
  }
}

const Plan* PlanCache::acquire(const PlanKey& key) {
  Entry* entry = newest_;
  if (entry == nullptr || !same(entry->key, key)) {
    const uint64_t hash = hash_of(key);
    entry = buckets_.empty() ? nullptr : buckets_[hash & (buckets_.size() - 1)];
    while (entry != nullptr && !(entry->hash == hash && same(entry->key, key))) entry = entry->chain;
    if (entry != nullptr) {
      unlink(entry);
      push_front(entry);
    } else {
      entry = build(key, hash);
    }
  }
  ++entry->uses;
  return entry;
}

void PlanCache::release(const Plan* plan) {
  Entry* entry = static_cast<Entry*>(const_cast<Plan*>(plan));
  assert(entry->uses > 0);
  --entry->uses;
  if (entry->uses == 0 && entry != newest_ && too_much()) remove(entry);
}

PlanCache::Entry* PlanCache::build(const PlanKey& key, uint64_t hash) {
  auto made = std::make_unique<Entry>(key, hash);
  key.algorithm->build(*made, Group(key.rank, key.size, key.layout), key.call, key.tuning);
  made->seal();
  if (plans_ == buckets_.size()) grow();

  Entry* entry = made.release();
  Entry*& bucket = buckets_[hash & (buckets_.size() - 1)];
  entry->chain = bucket;
  bucket = entry;
  push_front(entry);
  ++plans_;
  operations_ += entry->ops().size();
  trim();
  return entry;
}

void PlanCache::grow() {
  std::vector<Entry*> buckets(buckets_.empty() ? 64 : 2 * buckets_.size());
  for (Entry* entry = newest_; entry != nullptr; entry = entry->older) {
    Entry*& bucket = buckets[entry->hash & (buckets.size() - 1)];
    entry->chain = bucket;
    bucket = entry;
  }
  buckets_ = std::move(buckets);
}

void PlanCache::trim() {
  for (Entry* entry = oldest_; too_much() && entry != newest_;) {
    Entry* const next = entry->newer;
    if (entry->uses == 0) remove(entry);
    entry = next;
  }
}

void PlanCache::unlink(Entry* entry) {
  (entry->newer != nullptr ? entry->newer->older : newest_) = entry->older;
  (entry->older != nullptr ? entry->older->newer : oldest_) = entry->newer;
}

void PlanCache::push_front(Entry* entry) {
  entry->newer = nullptr;
  entry->older = newest_;
  (newest_ != nullptr ? newest_->newer : oldest_) = entry;
  newest_ = entry;
}

void PlanCache::remove(Entry* entry) {
  unlink(entry);
  Entry** link = &buckets_[entry->hash & (buckets_.size() - 1)];
  while (*link != entry) link = &(*link)->chain;
  *link = entry->chain;
  --plans_;
  operations_ -= entry->ops().size();
  delete entry;
}

}  // namespace gpurdma
