#include "engine/number.h"

#include <gtest/gtest.h>

namespace gpurdma {
namespace {

TEST(Number, KeepsWhatItIsMadeOf) {
  const Number call = Number::call(CallClass::nonblocking, 123456789);
  EXPECT_EQ(call.call_class(), CallClass::nonblocking);
  EXPECT_EQ(call.index(), 123456789u);
  const Number start = Number::start((1u << 30) - 1, UINT32_MAX);
  EXPECT_EQ(start.call_class(), CallClass::persistent);
  EXPECT_EQ(start.persistent_id(), (1u << 30) - 1);
  EXPECT_EQ(start.persistent_start(), UINT32_MAX);
}

TEST(Number, ClassesNeverMeet) {
  EXPECT_NE(Number::call(CallClass::blocking, 0).bits(), Number::call(CallClass::nonblocking, 0).bits());
  EXPECT_NE(Number::call(CallClass::blocking, 0).bits(), Number::start(0, 0).bits());
  EXPECT_NE(Number::start(1, 0).bits(), Number::start(0, 1).bits());
  EXPECT_EQ(Number(Number::start(7, 9).bits()).persistent_start(), 9u);
}

TEST(Number, CallsBeginAgain) {
  EXPECT_EQ(Number::call(CallClass::blocking, Number::kWrap + 5).bits(), Number::call(CallClass::blocking, 5).bits());
  EXPECT_EQ(Number::call(CallClass::nonblocking, Number::kWrap).call_class(), CallClass::nonblocking);
}

}  // namespace
}  // namespace gpurdma
