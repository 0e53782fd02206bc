// Prints a plan for people.
#pragma once
#include <string>

#include "plan/plan.h"

namespace gpurdma {

// "input[0..166]": both ends are included. "output[5]": one element.
std::string to_text(const Slice& slice);

// One rank's sealed program, a line for each operation, and what each waits for:
//     3  reduce  output[0..166] = scratch[0..166] op input[0..166]      after 1 2
// A recv that ends with "read by 3" need not be written to memory (PlanOp::consumer).
std::string to_text(const Plan& plan);

}  // namespace gpurdma
