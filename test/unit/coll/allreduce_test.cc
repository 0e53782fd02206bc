// Every allreduce of the catalogue, among every number of ranks: the right sum, the same operands in the same order on
// all ranks, and the number of bytes that the algorithm's comment states.
#include <gtest/gtest.h>

#include <string>

#include "coll/catalogue.h"
#include "coll/layout.h"
#include "coll/node_spec.h"
#include "plan/blocks.h"
#include "plan/chain.h"
#include "test/unit/coll/interpreter.h"

namespace gpurdma {
namespace {

using test::Element;
using test::Interpreter;
using test::Memory;

std::vector<const Algorithm*> allreduces() {
  std::vector<const Algorithm*> found;
  for (const Algorithm& algorithm : catalogue()) {
    if (algorithm.collective == Collective::allreduce) found.push_back(&algorithm);
  }
  return found;
}

// layout: nullptr, or of as many places.
std::vector<Plan> plans_of(const Algorithm& algorithm, int ranks, size_t count, bool in_place, Tuning tuning,
                           const Layout* layout = nullptr) {
  std::vector<Plan> plans;
  for (int rank = 0; rank < ranks; ++rank) {
    plans.emplace_back(rank, ranks);
    algorithm.build(plans.back(), Group(rank, ranks, layout), {count, in_place, 0}, tuning);
    plans.back().seal();
  }
  return plans;
}

Layout layout_of(const char* words, int ranks) {
  NodeSpec spec;
  EXPECT_TRUE(NodeSpec::parse(words, &spec)) << words;
  const std::vector<uint32_t> nodes = spec.nodes(ranks);
  return Layout({nodes.data(), nodes.size()});
}

uint64_t contribution(int rank, size_t i) { return test::mix((i + 1) * 131 + rank) >> 8; }

// How the operands of a result lie: from rank 0 to the last one; around a ring, from any rank on; in any order, but the
// same everywhere.
enum class Order { ranks, ring, any };

std::string check(const std::vector<Plan>& plans, size_t count, bool in_place, Order order) {
  const int ranks = static_cast<int>(plans.size());
  std::vector<Memory> memory(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    auto& own = in_place ? memory[rank].output : memory[rank].input;
    for (size_t i = 0; i < count; ++i) own.push_back({contribution(rank, i), test::mix(rank + 1), rank, rank});
    memory[rank].output.resize(count);
    memory[rank].scratch.resize(plans[rank].scratch_elements());
  }
  if (!Interpreter(plans, memory).run()) return "some rank waits forever, or a message was left over";
  for (size_t i = 0; i < count; ++i) {
    uint64_t sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += contribution(rank, i);
    for (int rank = 0; rank < ranks; ++rank) {
      const Element& result = memory[rank].output[i];
      if (result.sum != sum) return "wrong sum of element " + std::to_string(i) + " on rank " + std::to_string(rank);
      if (result.history != memory[0].output[i].history) {
        return "element " + std::to_string(i) + " was reduced otherwise on rank " + std::to_string(rank);
      }
      if (order != Order::any && (result.first < 0 || (order == Order::ranks && result.first != 0))) {
        return "element " + std::to_string(i) + " was not reduced in the order of ranks";
      }
    }
  }
  return "";
}

// No message is longer than a piece, and every recv that feeds a reduce can be reduced straight from the message.
std::string check_messages(const Plan& plan, size_t piece) {
  for (const PlanOp& op : plan.ops()) {
    if (op.kind == PlanOp::Kind::send && op.a.n > piece) return "a message longer than a piece";
    const bool feeds_reduce = op.kind == PlanOp::Kind::recv && op.dst.buf == Buf::scratch;
    if (feeds_reduce && op.consumer == Plan::kNone) return "a recv into scratch without a consumer";
  }
  return "";
}

Order order_of(const Algorithm& algorithm) { return algorithm.limits.commutative ? Order::ring : Order::ranks; }

std::vector<int> radices_of(const Algorithm& algorithm) {
  return algorithm.uses.radix ? std::vector<int>{2, 3, 8} : std::vector<int>{2};
}

TEST(Allreduce, EveryAlgorithmRanksCountPieceDepthRadix) {
  for (const Algorithm* algorithm : allreduces()) {
    for (int ranks = 1; ranks <= 17; ++ranks) {
      if (!algorithm->takes(ranks)) continue;
      const size_t p = ranks;
      for (size_t count : {size_t{0}, size_t{1}, p - 1, p, p + 1, size_t{31}, size_t{97}, size_t{211}}) {
        for (Tuning tuning : {Tuning{1, 1}, Tuning{1, 3}, Tuning{2, 1}, Tuning{5, 2}, Tuning{64, 4}, Tuning{9999, 1}}) {
          for (int radix : radices_of(*algorithm)) {
            tuning.radix = radix;
            for (bool in_place : {false, true}) {
              SCOPED_TRACE(std::string(algorithm->name) + " ranks " + std::to_string(ranks) + " count " +
                           std::to_string(count) + " piece " + std::to_string(tuning.piece) + " depth " +
                           std::to_string(tuning.depth) + " radix " + std::to_string(radix) +
                           (in_place ? " in place" : ""));
              const std::vector<Plan> plans = plans_of(*algorithm, ranks, count, in_place, tuning);
              ASSERT_EQ(check(plans, count, in_place, order_of(*algorithm)), "");
              for (const Plan& plan : plans) ASSERT_EQ(check_messages(plan, tuning.piece), "");
            }
          }
        }
      }
    }
  }
}

TEST(Allreduce, EveryAlgorithmOnEveryLayout) {
  for (const Algorithm* algorithm : allreduces()) {
    if (!algorithm->uses.layout) continue;
    for (int ranks = 1; ranks <= 17; ++ranks) {
      for (const char* words :
           {"1", "2", "3", "4", "5", "8", "3,1", "1,2,3", "4,4,1", "1,15", "%2", "%3", "%4", "%5"}) {
        const Layout nodes = layout_of(words, ranks);
        const Layout* layout = nodes.nodes() > 1 ? &nodes : nullptr;
        for (size_t count : {size_t{0}, size_t{1}, size_t(ranks + 1), size_t{61}}) {
          for (Tuning tuning : {Tuning{1, 1, 2}, Tuning{3, 2, 3}, Tuning{9999, 1, 4}, Tuning{7, 9, 8}}) {
            for (bool in_place : {false, true}) {
              SCOPED_TRACE(std::string(algorithm->name) + " ranks " + std::to_string(ranks) + " nodes " + words +
                           " count " + std::to_string(count) + " piece " + std::to_string(tuning.piece) + " depth " +
                           std::to_string(tuning.depth) + " radix " + std::to_string(tuning.radix) +
                           (in_place ? " in place" : ""));
              const std::vector<Plan> plans = plans_of(*algorithm, ranks, count, in_place, tuning, layout);
              ASSERT_EQ(check(plans, count, in_place, Order::any), "");
              for (const Plan& plan : plans) ASSERT_EQ(check_messages(plan, tuning.piece), "");
            }
          }
        }
      }
    }
  }
}

TEST(Allreduce, EveryAlgorithmAmongManyRanks) {
  for (const Algorithm* algorithm : allreduces()) {
    for (int ranks : {32, 61, 127}) {
      if (!algorithm->takes(ranks)) continue;
      SCOPED_TRACE(std::string(algorithm->name) + " ranks " + std::to_string(ranks));
      EXPECT_EQ(check(plans_of(*algorithm, ranks, 1009, false, {20, 2, 5}), 1009, false, order_of(*algorithm)), "");
      if (!algorithm->uses.layout) continue;
      const Layout layout = layout_of("8,7", ranks);
      EXPECT_EQ(check(plans_of(*algorithm, ranks, 1009, false, {20, 2, 5}, &layout), 1009, false, Order::any), "");
    }
  }
}

// Steps and bytes are those that the algorithm's comment derives and its row in the catalogue states.
TEST(Allreduce, EveryAlgorithmCostsWhatItStates) {
  const size_t count = 5040;
  for (const Algorithm* algorithm : allreduces()) {
    for (int nodes = 1; nodes <= (algorithm->uses.layout ? 9 : 1); ++nodes) {
      for (int places = 1; places * nodes <= 36; ++places) {
        for (int radix : radices_of(*algorithm)) {
          const int ranks = nodes * places;
          if (ranks == 1 || !algorithm->takes(ranks)) continue;
          SCOPED_TRACE(std::string(algorithm->name) + " nodes " + std::to_string(nodes) + " places " +
                       std::to_string(places) + " radix " + std::to_string(radix));
          const Layout layout = layout_of(std::to_string(places).c_str(), ranks);
          const std::vector<Plan> plans =
              plans_of(*algorithm, ranks, count, false, {count, 1, radix}, nodes > 1 ? &layout : nullptr);
          const Cost cost = algorithm->cost({ranks, nodes, radix}, count);
          EXPECT_EQ(longest_chain(plans), cost.messages);
          size_t busiest = 0;
          for (const Plan& plan : plans) busiest = std::max(busiest, sent_by(plan).elements);
          EXPECT_NEAR(static_cast<double>(busiest), cost.bytes, 4.0 * ranks);  // blocks are not all of one size
        }
      }
    }
  }
}

// The same steps run among any list of ranks.
TEST(Allreduce, EveryAlgorithmInAGroup) {
  const int members[] = {6, 1, 4};
  for (const Algorithm* algorithm : allreduces()) {
    std::vector<Plan> plans;
    for (int rank = 0; rank < 8; ++rank) plans.emplace_back(rank, 8);
    for (int place = 0; place < 3; ++place) {
      algorithm->build(plans[members[place]], Group(place, {members, 3}), {10, true, 0}, {4, 2});
    }
    for (int place = 0; place < 2; ++place) {
      algorithm->build(plans[3 + 2 * place], Group(place, 2, 3, 2), {10, true, 0}, {4, 2});  // ranks 3 and 5
    }
    std::vector<Memory> memory(8);
    for (int rank = 0; rank < 8; ++rank) {
      plans[rank].seal();
      memory[rank].output.assign(10, Element{uint64_t{1} << rank, 0, 0, 0});
      memory[rank].scratch.resize(plans[rank].scratch_elements());
    }
    ASSERT_TRUE(Interpreter(plans, memory).run());
    for (int rank : {6, 1, 4}) EXPECT_EQ(memory[rank].output[9].sum, (1u << 6) + (1u << 1) + (1u << 4));
    for (int rank : {3, 5}) EXPECT_EQ(memory[rank].output[9].sum, (1u << 3) + (1u << 5));
    for (int rank : {0, 2, 7}) EXPECT_EQ(memory[rank].output[9].sum, 1u << rank);
  }
}

size_t sent_by_ring(int rank, int ranks, size_t count, size_t chunk) {
  size_t sent = 0;
  for_pieces(0, count, chunk, [&](size_t, size_t n) {
    const Blocks blocks(0, n, ranks);
    sent += 2 * n - blocks.size((rank + 1) % ranks) - blocks.size((rank + 2) % ranks);
  });
  return sent;
}

TEST(Allreduce, RingSendsWhatItsCommentStates) {
  const Algorithm& ring = *find_algorithm(Collective::allreduce, "ring");
  for (int ranks = 2; ranks <= 17; ++ranks) {
    for (size_t count : {size_t{5}, size_t{1000}}) {
      const std::vector<Plan> plans = plans_of(ring, ranks, count, false, {count, 1});  // one chunk, one piece
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(sent_by(plans[rank]).elements, sent_by_ring(rank, ranks, count, count));
        if (count < 17) continue;
        EXPECT_EQ(sent_by(plans[rank]).messages, 2u * (ranks - 1));
      }
    }
  }
  const std::vector<Plan> chunked = plans_of(ring, 3, 1000, false, {20, 4});  // blocks of 334 in windows of 80
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(sent_by(chunked[rank]).elements, sent_by_ring(rank, 3, 1000, 240));
}

TEST(Allreduce, DoublingSendsWhatItsCommentStates) {
  const Algorithm& doubling = *find_algorithm(Collective::allreduce, "doubling");
  const size_t count = 100;
  for (int ranks = 2; ranks <= 33; ++ranks) {
    int q = 1, steps = 0;
    for (; 2 * q <= ranks; q *= 2) ++steps;
    const std::vector<Plan> plans = plans_of(doubling, ranks, count, false, {count, 1});
    for (int rank = 0; rank < ranks; ++rank) {
      const bool pair = rank < 2 * (ranks - q), even = rank % 2 == 0;
      EXPECT_EQ(sent_by(plans[rank]).elements, count * (!pair ? steps : even ? 1 : steps + 1));
    }
  }
}

// With alternating slots a step's recv waits at most for a reduce of two steps before.
TEST(Allreduce, DoublingReceivesAhead) {
  const Plan plan = std::move(plans_of(*find_algorithm(Collective::allreduce, "doubling"), 16, 4, false, {4, 1})[5]);
  std::vector<uint32_t> recvs;
  for (uint32_t i = 0; i < plan.ops().size(); ++i) {
    if (plan.ops()[i].kind == PlanOp::Kind::recv) recvs.push_back(i);
    EXPECT_NE(plan.ops()[i].kind, PlanOp::Kind::copy);
  }
  ASSERT_EQ(recvs.size(), 4u);
  EXPECT_EQ(plan.waits()[recvs[1]], 0u);
  const auto freed_by = plan.successors(recvs[0] + 1);
  EXPECT_NE(std::find(freed_by.begin(), freed_by.end(), recvs[2]), freed_by.end());
}

// One rank of a node alone talks to other nodes, and no more often than recursive multiplying among the nodes does.
TEST(Allreduce, LeadersAloneTalkBetweenNodes) {
  const Layout layout = layout_of("%3", 12);
  const std::vector<Plan> plans =
      plans_of(*find_algorithm(Collective::allreduce, "leaders"), 12, 10, false, {10, 1, 3}, &layout);
  for (const Plan& plan : plans) {
    size_t out = 0;
    for (const Plan::Peer& peer : plan.peers()) {
      if (peer.rank % 3 != plan.rank() % 3) out += peer.sends.size();
    }
    EXPECT_EQ(out, plan.rank() < 3 ? 2u : 0u);
  }
}

// Every byte crosses between nodes as seldom as can be: 2 (N - 1) / N times the vector per node, however many ranks.
TEST(Allreduce, HierarchicalSendsLeastBetweenNodes) {
  for (const char* words : {"4", "3", "%4", "%3"}) {
    const Layout layout = layout_of(words, 12);
    const size_t count = 1200, nodes = layout.nodes();
    const std::vector<Plan> plans =
        plans_of(*find_algorithm(Collective::allreduce, "hierarchical"), 12, count, false, {25, 2}, &layout);
    size_t out = 0;
    for (const Plan& plan : plans) {
      for (const Plan::Peer& peer : plan.peers()) {
        if (layout.node_of(peer.rank) != layout.node_of(plan.rank())) out += peer.elements_sent;
      }
    }
    EXPECT_EQ(out, 2 * (nodes - 1) * count) << words;
  }
}

// What is reduced is sent in the same pieces, so that the engine can do both in one pass: from step to step, and from
// level to level. A last chunk that is short is cut as it comes.
TEST(Allreduce, PiecesStayTheSameFromStepToStep) {
  const Layout layout = layout_of("2", 8);
  for (const Algorithm* algorithm : allreduces()) {
    for (size_t count : {size_t{6400}, size_t{6463}}) {
      for (const Plan& plan : plans_of(*algorithm, 8, count, false, {100, 4, 4}, &layout)) {
        for (uint32_t i = 0; i < plan.ops().size(); ++i) {
          const PlanOp& op = plan.ops()[i];
          if (op.kind != PlanOp::Kind::reduce || op.dst.buf != Buf::output || op.dst.at >= 6400) continue;
          for (uint32_t next : plan.successors(i)) {
            const PlanOp& after = plan.ops()[next];
            if (after.kind != PlanOp::Kind::send) continue;
            EXPECT_EQ(after.a.at, op.dst.at) << algorithm->name;
            EXPECT_EQ(after.a.n, op.dst.n) << algorithm->name;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace gpurdma
