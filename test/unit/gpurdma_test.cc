#include "gpurdma.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/log.h"
#include "coll/catalogue.h"
#include "test/unit/boundary.h"

namespace gpurdma {
namespace {

class BoundaryTest : public ::testing::Test {
 protected:
  ~BoundaryTest() override { log::configure(log::Level::warn, nullptr); }

  Boundary b;
};

TEST_F(BoundaryTest, BadSettingsMakeNoRuntime) {
  b.settings.algorithm = "magic";
  EXPECT_EQ(gpurdma_runtime_create(&b.settings, &b.host, &b.runtime), GPURDMA_INVALID);
  EXPECT_EQ(b.runtime, nullptr);
  b.settings.algorithm = "auto";
  b.settings.tuning = "allreduce";
  EXPECT_EQ(gpurdma_runtime_create(&b.settings, &b.host, &b.runtime), GPURDMA_INVALID);
  EXPECT_EQ(b.runtime, nullptr);
}

TEST_F(BoundaryTest, NothingIsDestroyedWithoutHarm) {
  gpurdma_comm_destroy(nullptr);
  gpurdma_runtime_destroy(nullptr);
  gpurdma_persistent_free(nullptr);
}

TEST_F(BoundaryTest, BlockingCallsOfOneRankCopy) {
  b.open();
  std::vector<int> in(1000), out(1000, -1);
  std::iota(in.begin(), in.end(), 1);
  EXPECT_EQ(b.sum(in, out), GPURDMA_OK);
  EXPECT_EQ(out, in);
  EXPECT_EQ(gpurdma_allreduce(b.comm, out.data(), out.data(), out.size(), int(Op::sum), int(Type::int32)), GPURDMA_OK);
  EXPECT_EQ(out, in);
  EXPECT_EQ(gpurdma_allreduce(b.comm, nullptr, nullptr, 0, int(Op::sum), int(Type::int32)), GPURDMA_OK);
}

TEST_F(BoundaryTest, AnOpThatATypeDoesNotHaveIsUnsupported) {
  b.open();
  float in[2] = {1, 2}, out[2] = {7, 7};
  int status = -1;
  gpurdma_persistent_t* persistent = nullptr;
  const int op = int(Op::band), type = int(Type::float32);
  EXPECT_EQ(gpurdma_allreduce(b.comm, in, out, 2, op, type), GPURDMA_UNSUPPORTED);
  EXPECT_EQ(gpurdma_iallreduce(b.comm, in, out, 2, op, type, &status), GPURDMA_UNSUPPORTED);
  EXPECT_EQ(gpurdma_allreduce_init(b.comm, in, out, 2, op, type, &status, &persistent), GPURDMA_UNSUPPORTED);
  EXPECT_EQ(persistent, nullptr);
  EXPECT_EQ(status, -1);
  EXPECT_TRUE(out[0] == 7 && out[1] == 7);
}

TEST_F(BoundaryTest, OthersAreToldWhenTheyEnd) {
  b.open();
  std::vector<int> in(100, 3), out(100, -1);
  int status = -1;
  ASSERT_EQ(gpurdma_iallreduce(b.comm, in.data(), out.data(), in.size(), int(Op::sum), int(Type::int32), &status),
            GPURDMA_OK);
  EXPECT_EQ(status, -1);  // never from inside
  for (int i = 0; i < 100 && status == -1; ++i) gpurdma_progress(b.runtime);
  EXPECT_EQ(status, GPURDMA_OK);
  EXPECT_EQ(out, in);

  gpurdma_persistent_t* persistent = nullptr;
  ASSERT_EQ(gpurdma_allreduce_init(b.comm, in.data(), out.data(), in.size(), int(Op::sum), int(Type::int32), &status,
                                   &persistent),
            GPURDMA_OK);
  for (int start = 0; start < 3; ++start) {
    std::fill(in.begin(), in.end(), start);
    status = -1;
    ASSERT_EQ(gpurdma_persistent_start(persistent), GPURDMA_OK);
    for (int i = 0; i < 100 && status == -1; ++i) gpurdma_progress(b.runtime);
    EXPECT_EQ(status, GPURDMA_OK);
    EXPECT_EQ(out, in);
  }
  gpurdma_persistent_free(persistent);
}

TEST_F(BoundaryTest, WhatIsForcedOnACommunicatorRuns) {
  b.open();
  std::vector<int> in(10, 3), out(10);
  for (const Algorithm& algorithm : catalogue()) {
    EXPECT_EQ(gpurdma_comm_force(b.comm, algorithm.name, 8, 5, 3), GPURDMA_OK);
    EXPECT_EQ(b.sum(in, out), GPURDMA_OK);
    EXPECT_NE(Boundary::log().find(std::string("by ") + algorithm.name + ", pieces of 2 elements, depth 5, radix 3"),
              std::string::npos)
        << Boundary::log();
  }
  Boundary::log().clear();
  EXPECT_EQ(gpurdma_comm_force(b.comm, "magic", 0, 0, 0), GPURDMA_INVALID);
  EXPECT_EQ(gpurdma_comm_force(b.comm, "auto", 0, -1, 0), GPURDMA_INVALID);
  EXPECT_EQ(gpurdma_comm_force(b.comm, nullptr, 0, 0, 0), GPURDMA_OK);
  EXPECT_EQ(b.sum(in, out), GPURDMA_OK);
  EXPECT_EQ(Boundary::log().find("depth 5"), std::string::npos);
}

TEST_F(BoundaryTest, ATuningFilesRowsAreInEffect) {
  b.settings.tuning = "allreduce ranks 1 bytes 0-40 ring piece 12 depth 7 radix 4\n";
  b.settings.depth = 2;
  b.open();
  std::vector<int> in(10, 3), out(10);
  EXPECT_EQ(b.sum(in, out), GPURDMA_OK);
  EXPECT_NE(Boundary::log().find("by ring, pieces of 3 elements, depth 2, radix 4"), std::string::npos)
      << Boundary::log();
}

}  // namespace
}  // namespace gpurdma
