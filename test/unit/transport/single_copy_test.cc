#include "transport/single_copy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace gpurdma {
namespace {

TEST(SingleCopy, OffersEndOnceAndForThePeerAlone) {
  SingleCopy copies;
  const uint32_t a = copies.enter(1, 100), b = copies.enter(2, 200), c = copies.enter(1, 300);
  EXPECT_EQ(copies.leave(b, 1), kNoToken) << "it was offered to another";
  EXPECT_EQ(copies.leave(a, 1), 100u);
  EXPECT_EQ(copies.leave(a, 1), kNoToken);
  EXPECT_EQ(copies.leave(77, 1), kNoToken);
  EXPECT_EQ(copies.leave_any(1), 300u);
  EXPECT_EQ(copies.leave_any(1), kNoToken);
  EXPECT_EQ(copies.leave(c, 1), kNoToken);
  EXPECT_EQ(copies.leave(b, 2), 200u);
  const uint32_t again = copies.enter(3, 400);
  EXPECT_LE(again, 2u) << "names are used again";
  EXPECT_EQ(copies.leave(again, 3), 400u);
}

TEST(SingleCopy, OffersOfPeersAreKeptApartFromThoseOfUcx) {
  SingleCopy copies;
  alignas(8) char of_ucx[8];
  EXPECT_EQ(SingleCopy::taking(of_ucx), nullptr);
  void* const first = copies.keep(4, {1234, 5});
  void* const second = copies.keep(6, {5678, 7});
  ASSERT_NE(SingleCopy::taking(first), nullptr);
  EXPECT_EQ(SingleCopy::taking(first)->peer, 4u);
  EXPECT_EQ(SingleCopy::taking(first)->offer.address, 1234u);
  EXPECT_EQ(SingleCopy::taking(second)->offer.id, 7u);
  copies.drop(SingleCopy::taking(first));
  EXPECT_EQ(copies.keep(8, {1, 2}), first) << "memory is used again";
}

TEST(SingleCopy, ReadsAndSaysWhatWentWrong) {
  std::vector<int> from(100000, 42), into(100000);
  EXPECT_EQ(SingleCopy::read(uint32_t(getpid()), reinterpret_cast<uint64_t>(from.data()), into.data(), 400000), 0);
  EXPECT_EQ(into, from);
  EXPECT_EQ(SingleCopy::read(uint32_t(getpid()), 8, into.data(), 8), EFAULT);
  EXPECT_EQ(SingleCopy::read(0x7FFFFFFF, reinterpret_cast<uint64_t>(from.data()), into.data(), 8), ESRCH);
  EXPECT_EQ(SingleCopy::read(uint32_t(getpid()), 8, into.data(), 0), 0);
}

}  // namespace
}  // namespace gpurdma
