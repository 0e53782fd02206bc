// What a collective costs as a whole, seen from the plans of all its ranks.
#pragma once
#include <vector>

#include "plan/plan.h"

namespace gpurdma {

// The longest chain of messages in which each is sent only after the one before was received and worked on: the steps
// of the algorithm. plans: sealed, of ranks 0, 1, ... in order. -1: the plans do not match, some recv waits forever.
int longest_chain(const std::vector<Plan>& plans);

// What one rank sends.
struct Sent {
  size_t messages, elements;
};
Sent sent_by(const Plan& plan);

}  // namespace gpurdma
