#include "coll/plan_cache.h"

#include <gtest/gtest.h>

#include <random>

#include "coll/layout.h"

namespace gpurdma {
namespace {

PlanKey key(size_t count, const char* algorithm = "ring") {
  return {find_algorithm(Collective::allreduce, algorithm), 1, 4, {count, false, 0}, {1000, 2}};
}

TEST(PlanCache, SameKeySamePlan) {
  PlanCache cache;
  const Plan* plan = cache.acquire(key(100));
  EXPECT_EQ(plan->rank(), 1);
  EXPECT_EQ(plan->size(), 4);
  EXPECT_EQ(cache.acquire(key(100)), plan);
  const Plan* other = cache.acquire(key(101));
  EXPECT_NE(other, plan);
  EXPECT_EQ(cache.acquire(key(100)), plan);
  EXPECT_EQ(cache.plans(), 2u);
  EXPECT_EQ(cache.operations(), plan->ops().size() + other->ops().size());
  for (int i = 0; i < 3; ++i) cache.release(plan);
  cache.release(other);
}

TEST(PlanCache, EveryPartOfTheKeyCounts) {
  PlanCache cache;
  std::vector<PlanKey> keys(10, key(100));
  keys[1].algorithm = find_algorithm(Collective::allreduce, "doubling");
  keys[2].rank = 2;
  keys[3].size = 5;
  keys[4].call.count = 99;
  keys[5].call.in_place = true;
  keys[6].call.root = 1;
  keys[7].tuning.piece = 999;
  keys[8].tuning.depth = 3;
  keys[9].tuning.radix = 3;
  for (const PlanKey& k : keys) cache.release(cache.acquire(k));
  EXPECT_EQ(cache.plans(), keys.size());
}

std::shared_ptr<const Layout> nodes_of_two(Layouts& layouts, bool interleaved) {
  const uint32_t nodes[] = {1, interleaved ? 2u : 1u, 2, interleaved ? 1u : 2u};
  return layouts.intern({nodes, 4});
}

TEST(PlanCache, LayoutsAreToldApartAndKeptAlive) {
  Layouts layouts;
  PlanCache cache;
  PlanKey k = key(100);
  const Plan* alone = cache.acquire(k);
  std::shared_ptr<const Layout> layout = nodes_of_two(layouts, false);
  k.layout = layout.get();
  const Plan* plan = cache.acquire(k);
  EXPECT_NE(plan, alone);
  k.layout = nullptr;
  layout.reset();
  EXPECT_EQ(layouts.size(), 1u) << "the plan keeps it";
  layout = nodes_of_two(layouts, true);
  k.layout = layout.get();
  EXPECT_NE(cache.acquire(k), plan);
  layout = nodes_of_two(layouts, false);
  k.layout = layout.get();
  EXPECT_EQ(cache.acquire(k), plan) << "the next communicator of the same layout finds the plan";
}

TEST(PlanCache, TheLeastRecentlyUsedGoes) {
  PlanCache cache(SIZE_MAX, 2);
  cache.release(cache.acquire(key(1)));
  const Plan* second = cache.acquire(key(2));
  cache.release(second);
  cache.release(cache.acquire(key(1)));
  const Plan* first = cache.acquire(key(1));
  cache.release(first);
  cache.release(cache.acquire(key(3)));  // 2 goes
  EXPECT_EQ(cache.plans(), 2u);
  EXPECT_EQ(cache.acquire(key(1)), first);
  cache.release(first);
}

TEST(PlanCache, PlansInUseAndTheLatestStay) {
  PlanCache cache(1, 1);  // every plan is too large
  const Plan* first = cache.acquire(key(1));
  const Plan* second = cache.acquire(key(2));
  EXPECT_EQ(cache.plans(), 2u);
  EXPECT_FALSE(first->ops().empty());
  cache.release(second);
  EXPECT_EQ(cache.plans(), 2u) << "the latest stays";
  cache.release(first);
  EXPECT_EQ(cache.plans(), 1u);
  EXPECT_EQ(cache.acquire(key(2)), second);
  cache.release(second);
}

TEST(PlanCache, StaysWithinItsBoundUnderRandomUse) {
  std::mt19937 random(1);
  PlanCache cache(600, 20);
  std::vector<std::pair<const Plan*, size_t>> in_use;
  for (int i = 0; i < 20000; ++i) {
    if (in_use.size() < 5 && random() % 2 == 0) {
      const size_t count = 1 + random() % 60;
      const PlanKey k = key(count, random() % 2 == 0 ? "ring" : "doubling");
      in_use.push_back({cache.acquire(k), count});
    } else if (!in_use.empty()) {
      const size_t which = random() % in_use.size();
      cache.release(in_use[which].first);
      in_use.erase(in_use.begin() + which);
    }
    size_t used = 0;
    for (const auto& [plan, count] : in_use) {
      used += plan->ops().size();
      ASSERT_FALSE(plan->ops().empty());
    }
    ASSERT_LE(cache.plans(), 20u);
    ASSERT_LE(cache.operations(), 600u + used + 100);
  }
  for (const auto& [plan, count] : in_use) cache.release(plan);
}

}  // namespace
}  // namespace gpurdma
