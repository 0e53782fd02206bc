// The oracle for 16-bit floats: numbers of `Digits` significant bits (11: IEEE half, 8: bfloat16), as doubles.
#pragma once
#include <math.h>

#include "oracle.h"

namespace oracle {

template <int Digits>
struct Sixteen {
  struct Value {
    uint16_t bits;
  };
  static constexpr int kFraction = Digits - 1, kBias = (1 << (14 - kFraction)) - 1;
  static constexpr int kHighest = 2 * kBias + 1;  // the exponent of infinity and NaN

  static Value make(bool negative, int exponent, int fraction) {
    return {uint16_t(negative << 15 | exponent << kFraction | fraction)};
  }
  static double number(Value x) {
    const int exponent = x.bits >> kFraction & kHighest, fraction = x.bits & ((1 << kFraction) - 1);
    const double sign = x.bits & 0x8000 ? -1 : 1;
    if (exponent == kHighest) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(fraction, 1 - kBias - kFraction);
    return sign * ldexp((1 << kFraction) + fraction, exponent - kBias - kFraction);
  }
  // The nearest one to x, of two the even one.
  static Value nearest(double x) {
    if (isnan(x)) return make(false, kHighest, 1);
    int exponent;
    frexp(x, &exponent);
    const int unit = std::max(exponent - Digits, 1 - kBias - kFraction);
    const double rounded = ldexp(nearbyint(ldexp(x, -unit)), unit), size = fabs(rounded);
    if (size >= ldexp(1, kBias + 1)) return make(signbit(x), kHighest, 0);
    if (size < ldexp(1, 1 - kBias)) return make(signbit(x), 0, (int)ldexp(size, kBias - 1 + kFraction));
    frexp(size, &exponent);
    return make(signbit(x), exponent - 1 + kBias, (int)ldexp(size, Digits - exponent) - (1 << kFraction));
  }

  static Value draw(Random& random, size_t index, Op, int) {
    const Value edges[] = {make(false, 0, 0),        make(true, 0, 0),
                           make(false, kHighest, 3), make(false, kHighest, 0),
                           make(true, kHighest, 0),  make(false, kHighest - 1, (1 << kFraction) - 1),
                           make(true, 0, 1),         make(false, 1, 0)};
    if (index % 37 == 5) return edges[random.below(2)];
    if (random.below(16) == 0) return edges[random.below(8)];
    return make(random.below(2), kBias - 2 + (int)random.below(4), (int)random.below(1 << kFraction));
  }
  static bool right(Op op, const std::vector<Value>& values, Value result) {
    const double out = number(result), largest = ldexp(2, kBias), smallest = ldexp(1, 1 - kBias);
    const double rounding = ldexp(1, -Digits);
    double sum = 0, sizes = 0, product = 1, above_one = 1, below_one = 1, best = number(values[0]);
    bool zero = false;
    for (Value value : values) {
      const double x = number(value);
      sum += x, sizes += fabs(x), product *= x;
      zero = zero || x == 0;
      if (isfinite(x) && x != 0) (fabs(x) > 1 ? above_one : below_one) *= fabs(x);
      if (isnan(best) || isnan(x)) {
        best = NAN;
      } else if (op == Op::max ? x > best : x < best) {
        best = x;
      }
    }
    if (op == Op::max || op == Op::min) return isnan(best) ? isnan(out) : out == best;
    if (op == Op::sum) {
      if (!isfinite(sum)) return isnan(sum) ? isnan(out) : out == sum;
      return sizes >= largest || fabs(out - sum) <= 2 * values.size() * rounding * sizes;
    }
    if (isnan(product)) return isnan(out);
    if (above_one >= largest || (!zero && below_one < smallest)) return true;  // some orders overflow or underflow
    if (isinf(product)) return out == product;
    return fabs(out - product) <= 2 * values.size() * rounding * fabs(product);
  }
  static bool same(Value a, Value b) { return a.bits == b.bits || (isnan(number(a)) && isnan(number(b))); }
  static std::string show(Value x) {
    char line[64];
    snprintf(line, sizeof line, "%.9g", number(x));
    return isnan(number(x)) ? "nan" : line;
  }
};

}  // namespace oracle
