// A plan's order and grouping against oracles that compare every pair of operations.
#include "plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <random>
#include <set>

namespace gpurdma {
namespace {

using Kind = PlanOp::Kind;

bool touch(const Slice& x, const Slice& y) {
  return x.n > 0 && y.n > 0 && x.buf == y.buf && x.at < y.at + y.n && y.at < x.at + x.n;
}

bool reads(const PlanOp& op, const Slice& s) { return touch(op.a, s) || touch(op.b, s); }

bool conflict(const PlanOp& earlier, const PlanOp& later) {
  return reads(later, earlier.dst) || reads(earlier, later.dst) || touch(earlier.dst, later.dst);
}

// order[i][j]: i must end before j.
using Order = std::vector<std::bitset<128>>;

// With what follows by way of others.
Order close(Order order) {
  for (size_t i = order.size(); i-- > 0;) {
    for (size_t j = i + 1; j < order.size(); ++j) {
      if (order[i][j]) order[i] |= order[j];
    }
  }
  return order;
}

void check_order(const Plan& plan) {
  const auto ops = plan.ops();
  const size_t n = ops.size();
  ASSERT_LE(n, 128u);
  Order wanted(n), derived(n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) wanted[i][j] = conflict(ops[i], ops[j]);
  }
  std::vector<uint32_t> waits(n), roots;
  for (uint32_t i = 0; i < n; ++i) {
    std::set<uint32_t> seen;
    for (uint32_t j : plan.successors(i)) {
      ASSERT_TRUE(seen.insert(j).second) << j << " listed twice";
      ASSERT_TRUE(wanted[i][j]) << j << " waits for " << i << " without a reason";
      derived[i][j] = true;
      ++waits[j];
    }
    ASSERT_TRUE(std::is_sorted(plan.successors(i).begin(), plan.successors(i).end()));
  }
  EXPECT_TRUE(close(wanted) == close(derived));
  for (uint32_t i = 0; i < n; ++i) {
    if (waits[i] == 0) roots.push_back(i);
  }
  EXPECT_EQ(waits, std::vector<uint32_t>(plan.waits().begin(), plan.waits().end()));
  EXPECT_EQ(roots, std::vector<uint32_t>(plan.roots().begin(), plan.roots().end()));
}

// By elements: who reads what the recv brought, before it is overwritten.
uint32_t consumer_of(const Plan& plan, uint32_t recv) {
  const auto ops = plan.ops();
  const Slice in = ops[recv].dst;
  std::vector<bool> ours(in.n, true);
  const auto each = [&](const Slice& s, auto f) {
    for (size_t k = 0; k < in.n; ++k) {
      if (s.buf == in.buf && s.n > 0 && s.at <= in.at + k && in.at + k < s.at + s.n) f(k);
    }
  };
  int readings = 0;
  uint32_t reader = Plan::kNone;
  for (uint32_t j = recv + 1; j < ops.size(); ++j) {
    for (const Slice& s : {ops[j].a, ops[j].b}) {
      bool read = false, all = true;
      each(s, [&](size_t k) { read |= ours[k], all &= ours[k]; });
      if (!read) continue;
      ++readings;
      reader = j;
      if (ops[j].kind != Kind::reduce || s.at != in.at || s.n != in.n || !all || touch(ops[j].dst, in)) readings += 2;
    }
    each(ops[j].dst, [&](size_t k) { ours[k] = false; });
  }
  return readings == 1 && in.buf == Buf::scratch ? reader : Plan::kNone;
}

// By elements: the first send of exactly what the reduction writes, all of it as it was written there.
uint32_t sender_of(const Plan& plan, uint32_t reduce) {
  const auto ops = plan.ops();
  const Slice out = ops[reduce].dst;
  for (uint32_t j = reduce + 1; j < ops.size(); ++j) {
    const Slice& a = ops[j].a;
    if (ops[j].kind == Kind::send && a.buf == out.buf && a.at == out.at && a.n == out.n) return j;
    if (touch(ops[j].dst, out)) return Plan::kNone;
  }
  return Plan::kNone;
}

void check_messages(const Plan& plan) {
  std::vector<std::vector<uint32_t>> sends(plan.size()), recvs(plan.size());
  for (uint32_t i = 0; i < plan.ops().size(); ++i) {
    const PlanOp& op = plan.ops()[i];
    if (op.kind == Kind::recv) {
      ASSERT_EQ(op.consumer, consumer_of(plan, i)) << "of " << i;
    } else if (op.kind == Kind::reduce) {
      ASSERT_EQ(op.consumer, sender_of(plan, i)) << "of " << i;
    } else {
      ASSERT_EQ(op.consumer, Plan::kNone);
    }
    if (op.kind != Kind::send && op.kind != Kind::recv) continue;
    auto& list = (op.kind == Kind::send ? sends : recvs)[plan.peers()[op.peer].rank];
    EXPECT_EQ(op.position, list.size());
    list.push_back(i);
  }
  int before = -1;
  for (const Plan::Peer& peer : plan.peers()) {
    EXPECT_GT(peer.rank, before);
    before = peer.rank;
    EXPECT_FALSE(peer.sends.empty() && peer.recvs.empty());
    EXPECT_EQ(sends[peer.rank], std::vector<uint32_t>(peer.sends.begin(), peer.sends.end()));
    EXPECT_EQ(recvs[peer.rank], std::vector<uint32_t>(peer.recvs.begin(), peer.recvs.end()));
    sends[peer.rank].clear();
    recvs[peer.rank].clear();
  }
  for (int rank = 0; rank < plan.size(); ++rank) EXPECT_TRUE(sends[rank].empty() && recvs[rank].empty());
}

// Slices drawn from a few places, so that equal, nested and partly overlapping ones are all common.
class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed) : random_(seed) {}

  Plan record() {
    Plan plan(2, 7);
    const size_t elements = 1 + draw(24);
    plan.scratch(elements);
    const size_t grain = 1 + draw(4);
    const int ops = 1 + draw(60);
    for (int i = 0; i < ops; ++i) {
      const size_t n = draw(5) == 0 ? draw(elements + 1) : std::min(grain, elements);
      const auto slice = [&](Buf buf) {
        const size_t at = draw(2) == 0 ? draw(elements - n + 1) : draw((elements - n) / grain + 1) * grain;
        return Slice{buf, at, n};
      };
      const auto source = [&] { return slice(static_cast<Buf>(draw(3))); };
      const auto target = [&] { return slice(static_cast<Buf>(1 + draw(2))); };
      const int other = (3 + draw(6)) % 7;
      switch (draw(6)) {
        case 0:
          plan.send(other, source());
          break;
        case 1:
          plan.copy(target(), source());
          break;
        case 2:
          plan.recv(target(), other);
          break;
        case 3:
          plan.reduce(target(), source(), source());
          break;
        default:
          const Slice in = slice(Buf::scratch), dst = slice(Buf::output);
          plan.recv(in, other);
          draw(2) == 0 ? plan.reduce(dst, in, source()) : plan.reduce(dst, dst, in);
      }
    }
    plan.seal();
    return plan;
  }

 private:
  size_t draw(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random_); }
  std::mt19937 random_;
};

TEST(Plan, RandomProgramsMatchTheOracles) {
  int consumers = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    const Plan plan = RandomProgram(seed).record();
    check_order(plan);
    check_messages(plan);
    if (testing::Test::HasFailure()) return;
    for (const PlanOp& op : plan.ops()) consumers += op.consumer != Plan::kNone;
  }
  EXPECT_GT(consumers, 300) << "the programs miss the interesting case";
}

TEST(Plan, EmptyPlan) {
  Plan plan(0, 1);
  plan.send(0, {Buf::input, 5, 0});
  plan.copy({Buf::output, 0, 0}, {Buf::input, 0, 0});
  plan.seal();
  EXPECT_TRUE(plan.ops().empty());
  EXPECT_TRUE(plan.peers().empty());
  EXPECT_TRUE(plan.roots().empty());
  EXPECT_EQ(plan.scratch_elements(), 0u);
}

TEST(Plan, ReadersWaitForTheWriterAndTheNextWriterForThem) {
  Plan plan(0, 3);
  plan.recv({Buf::output, 0, 10}, 1);
  plan.send(1, {Buf::output, 0, 5});
  plan.send(2, {Buf::output, 5, 5});
  plan.recv({Buf::output, 4, 2}, 2);
  plan.seal();
  const auto successors = [&](uint32_t op) {
    return std::vector<uint32_t>(plan.successors(op).begin(), plan.successors(op).end());
  };
  EXPECT_EQ(successors(0), (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(successors(1), (std::vector<uint32_t>{3}));
  EXPECT_EQ(successors(2), (std::vector<uint32_t>{3}));
  EXPECT_EQ(plan.waits()[3], 2u);
}

TEST(Plan, SurvivesBeingMoved) {
  Plan first(0, 4);
  first.send(3, {Buf::input, 0, 1});
  first.seal();
  const Plan plan = std::move(first);
  ASSERT_EQ(plan.peers().size(), 1u);
  EXPECT_EQ(plan.peers()[0].rank, 3);
  EXPECT_EQ(plan.peers()[0].sends[0], 0u);
}

}  // namespace
}  // namespace gpurdma
