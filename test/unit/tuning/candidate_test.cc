#include "contrib/tuning/candidate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "test/unit/tuning/reckoner.h"

namespace gpurdma::tuning {
namespace {

TEST(Candidate, IsWrittenAsInARow) {
  EXPECT_EQ(to_text(candidate("ring", 4096, 3)), "ring  piece 4K  depth 3");
  EXPECT_EQ(to_text(candidate("doubling", 5, 8, 4)), "doubling  piece 5  depth 8  radix 4");
}

TEST(Candidate, TheSamePlansAreTheSame) {
  const Job job{4};
  const auto print = [&](const Candidate& c, size_t bytes = 1 << 20) { return fingerprint(job, bytes, c); };
  EXPECT_EQ(print(candidate("ring")), print(candidate("ring")));
  EXPECT_EQ(print(candidate("ring")), print(candidate("ring", 32 << 10, 8, 5)));  // it has no radix
  EXPECT_NE(print(candidate("ring")), print(candidate("ring", 16 << 10)));
  EXPECT_NE(print(candidate("ring")), print(candidate("ring", 32 << 10, 4)));
  EXPECT_NE(print(candidate("ring")), print(candidate("doubling")));
  EXPECT_EQ(print(candidate("ring"), 64), print(candidate("ring", 64 << 10), 64));  // one piece in any case
  EXPECT_EQ(distinct(job, 64, with_pieces(job, 64, candidate("ring"))).size(), 1u);
}

TEST(Candidate, AllThatCanRunAreThere) {
  const Job job{6};
  std::set<std::string> names;
  for (const Candidate& c : all_algorithms(job, 1 << 20)) names.insert(c.algorithm->name);
  for (const Algorithm& algorithm : catalogue()) {
    if (!algorithm.takes(job.ranks) || names.count(algorithm.name)) continue;
    // Left out only where another one gives the same plans.
    const uint64_t print = fingerprint(job, 1 << 20, candidate(algorithm.name));
    const std::vector<Candidate> all = all_algorithms(job, 1 << 20);
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Candidate& c) {
      return fingerprint(job, 1 << 20, c) == print;
    })) << algorithm.name;
  }
  EXPECT_TRUE(names.count("doubling") && names.count("ring"));
}

TEST(Candidate, PiecesAndDepthsKeepTheRest) {
  const Job job{4};
  const Candidate ring = candidate("ring", 32 << 10, 4);
  const std::vector<Candidate> pieces = with_pieces(job, 16 << 20, ring), depths = with_depths(job, 16 << 20, ring);
  EXPECT_TRUE(pieces.front() == ring && depths.front() == ring);
  EXPECT_GT(pieces.size(), 4u);
  EXPECT_GT(depths.size(), 3u);
  for (const Candidate& c : pieces) EXPECT_TRUE(c.algorithm == ring.algorithm && c.depth == 4 && c.radix == 2);
  for (const Candidate& c : depths) EXPECT_TRUE(c.algorithm == ring.algorithm && c.piece == 32 << 10);
  for (const Candidate& c : with_pieces(job, 1 << 30, candidate("ring", 1 << 20))) EXPECT_GE(c.piece, 128u << 10);
}

TEST(Candidate, TheLayoutMatters) {
  const uint32_t two_nodes[] = {0, 0, 1, 1};
  const Job flat{4}, job{4, std::make_shared<const Layout>(Span<const uint32_t>(two_nodes, 4))};
  EXPECT_EQ(flat.nodes(), 1);
  EXPECT_EQ(job.nodes(), 2);
  for (const Algorithm& algorithm : catalogue()) {
    if (!algorithm.uses.layout) continue;
    EXPECT_NE(fingerprint(flat, 1 << 20, candidate(algorithm.name)),
              fingerprint(job, 1 << 20, candidate(algorithm.name)))
        << algorithm.name;
  }
}

TEST(Candidate, WhatATableChooses) {
  TuningRow row;
  row.ranks = {4, 4};
  row.algorithm = candidate("ring").algorithm;
  row.piece = 4096;
  row.depth = 3;
  const std::vector<TuningRow> rows = before_builtin({row});
  EXPECT_TRUE(chosen({rows.data(), rows.size()}, Job{4}, 1 << 20) == candidate("ring", 4096, 3));
}

}  // namespace
}  // namespace gpurdma::tuning
