#include "base/status.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "gpurdma.h"

namespace gpurdma {
namespace {

TEST(Status, EveryOneHasItsOwnText) {
  std::set<std::string> texts;
  for (int i = 0; i <= int(Status::transport); ++i) {
    const std::string phrase = text(Status(i));
    EXPECT_NE(phrase, "unknown status");
    EXPECT_TRUE(texts.insert(phrase).second) << phrase;
  }
  EXPECT_STREQ(text(Status(99)), "unknown status");
}

TEST(Status, ValuesAreThoseOfTheBoundary) {
  EXPECT_EQ(int(Status::ok), GPURDMA_OK);
  EXPECT_EQ(int(Status::unsupported), GPURDMA_UNSUPPORTED);
  EXPECT_EQ(int(Status::no_memory), GPURDMA_NO_MEMORY);
  EXPECT_EQ(int(Status::peer_lost), GPURDMA_PEER_LOST);
  EXPECT_EQ(int(Status::deadline), GPURDMA_DEADLINE);
  EXPECT_EQ(int(Status::remote), GPURDMA_REMOTE);
  EXPECT_EQ(int(Status::closed), GPURDMA_CLOSED);
  EXPECT_EQ(int(Status::invalid), GPURDMA_INVALID);
  EXPECT_EQ(int(Status::transport), GPURDMA_TRANSPORT);
}

}  // namespace
}  // namespace gpurdma
