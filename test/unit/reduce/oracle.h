// What each op must give, worked out another way than the product does: integers in 128 bits, floats in a wider format
// that is rounded once. Slow, and shares no code with src/reduce.
#pragma once
#include <cstdint>
#include <random>

#include "reduce/types.h"

namespace gpurdma::test {

// One element: *out = *left op *right. Gaps inside the element are left alone.
void oracle(Op op, Type type, void* out, const void* left, const void* right);

// Same bits, gaps inside the element ignored; any NaN equals any other.
bool same(Type type, const void* a, const void* b);

// One element: an extreme value of the type, or a random one. Gaps are random too.
void draw(Type type, std::mt19937_64& random, void* element);

}  // namespace gpurdma::test
