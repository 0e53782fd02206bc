#include "plan/print.h"

#include <gtest/gtest.h>

#include "plan/chain.h"

namespace gpurdma {
namespace {

TEST(Print, Program) {
  Plan plan(0, 3);
  const Slice in = plan.scratch(5);
  plan.send(2, {Buf::input, 0, 5});
  plan.recv(in, 1);
  plan.reduce({Buf::output, 0, 5}, {Buf::input, 0, 5}, in);
  plan.copy({Buf::output, 9, 1}, {Buf::output, 0, 1});
  plan.seal();
  EXPECT_EQ(to_text(plan),
            "     0  send    input[0..4] to 2, message 0\n"
            "     1  recv    scratch[0..4] from 1, message 0, read by 2\n"
            "     2  reduce  output[0..4] = input[0..4] op scratch[0..4]   after 1\n"
            "     3  copy    output[9] = output[0]                         after 2\n");
}

std::vector<Plan> relay(bool broken) {  // 0 -> 1 -> 2
  std::vector<Plan> plans;
  for (int rank = 0; rank < 3; ++rank) plans.emplace_back(rank, 3);
  plans[0].send(1, {Buf::input, 0, 4});
  plans[1].recv({Buf::output, 0, 4}, broken ? 2 : 0);
  plans[1].send(2, {Buf::output, 0, 4});
  plans[2].recv({Buf::output, 0, 4}, 1);
  for (Plan& plan : plans) plan.seal();
  return plans;
}

TEST(Chain, CountsMessagesThatWaitForEachOther) {
  EXPECT_EQ(longest_chain(relay(false)), 2);
  EXPECT_EQ(longest_chain(relay(true)), -1);
  EXPECT_EQ(sent_by(relay(false)[1]).elements, 4u);
  EXPECT_EQ(sent_by(relay(false)[2]).messages, 0u);
}

}  // namespace
}  // namespace gpurdma
