// PlanCache: sealed plans, kept for the next call that wants the same one.
//
// A plan depends on its key and on nothing else, so one cache serves all communicators of the process. A plan keeps its
// layout alive, so that no other layout can have its address. The cache is bounded:
// when it holds too many plans or operations, the plan that has not been used for longest goes, but neither one that is
// in use nor the latest. Not thread-safe: the engine's lock protects it. Memory that runs out is a std::bad_alloc.
#pragma once
#include <cstdint>
#include <vector>

#include "coll/catalogue.h"

namespace gpurdma {

struct PlanKey {
  const Algorithm* algorithm;
  int rank, size;
  Call call;
  Tuning tuning;
  const Layout* layout = nullptr;  // of Layouts (or any shared one); only where the algorithm uses it
};

class PlanCache {
 public:
  explicit PlanCache(size_t most_operations = 256 * 1024, size_t most_plans = 1024)
      : most_operations_(most_operations), most_plans_(most_plans) {}
  ~PlanCache();
  PlanCache(const PlanCache&) = delete;

  // The plan of that key, built if need be. It stays until as many releases as acquires were made.
  //   Cost of a hit: a few ns when it is the key of the acquire before, about 20 ns otherwise; allocates nothing.
  const Plan* acquire(const PlanKey& key);
  void release(const Plan* plan);

  size_t plans() const { return plans_; }
  size_t operations() const { return operations_; }

 private:
  struct Entry;
  Entry* build(const PlanKey& key, uint64_t hash);
  void grow();
  bool too_much() const { return operations_ > most_operations_ || plans_ > most_plans_; }
  void trim();
  void unlink(Entry* entry);
  void push_front(Entry* entry);
  void remove(Entry* entry);

  const size_t most_operations_, most_plans_;
  size_t operations_ = 0, plans_ = 0;
  std::vector<Entry*> buckets_;                  // hash chains; a power of two of them
  Entry *newest_ = nullptr, *oldest_ = nullptr;  // list in order of last use
};

}  // namespace gpurdma
