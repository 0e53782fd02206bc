// The host oracle: what MPI_Allreduce must answer, computed one element at a time from every rank's input.
//
// Rules it holds the product to: integers wrap, unsigned types compare as unsigned, MAXLOC and MINLOC take the lower
// index of equal values, a NaN operand makes the result NaN. Floating sums and products may be formed in any order, so
// they are compared with a wider result and a bound on rounding; where some order could overflow or underflow, only
// what holds for every order is asked. Pure functions.
#pragma once
#include <limits>

#include "check.h"

namespace oracle {

using check::Random;

enum class Op { max, min, sum, prod, land, band, lor, bor, lxor, bxor, maxloc, minloc };

// How to fill, judge and compare arrays of one element type.
struct Elements {
  size_t bytes;
  // Draws one rank's input; element i of every rank may be drawn from the same small set.
  void (*fill)(Random& random, void* data, size_t count, Op op, int ranks);
  // The first element of out that is not in_0 op in_1 op ..., or count.
  size_t (*wrong)(Op op, const std::vector<std::vector<unsigned char>>& in, size_t count, const void* out);
  // The first element that has other bits in a than in b, or count. All NaN count as one; padding does not count.
  size_t (*differs)(const void* a, const void* b, size_t count);
  std::string (*show)(const void* data, size_t index);
};

// ---- integers, bytes and logicals ----

template <class T>
struct Integer {
  using Value = T;
  static T draw(Random& random, size_t index, Op, int) {
    const T edges[] = {0, 1, T(-1), std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), T(2)};
    return random.below(4) == 0 || index % 37 == 5 ? edges[random.below(6)] : T(random.next());
  }
  static bool right(Op op, const std::vector<T>& x, T out) {
    T all = x[0];
    for (size_t r = 1; r < x.size(); ++r) all = join(op, all, x[r]);
    return all == out;
  }
  static bool same(T a, T b) { return a == b; }
  static std::string show(T x) { return std::to_string(x); }

  static T join(Op op, T a, T b) {
    switch (op) {
      case Op::max:
        return a > b ? a : b;
      case Op::min:
        return a < b ? a : b;
      case Op::sum:
        return T(uint64_t(a) + uint64_t(b));
      case Op::prod:
        return T(uint64_t(a) * uint64_t(b));
      case Op::land:
        return a && b;
      case Op::lor:
        return a || b;
      case Op::lxor:
        return !a != !b;
      case Op::band:
        return T(a & b);
      case Op::bor:
        return T(a | b);
      case Op::bxor:
        return T(a ^ b);
      default:
        abort();
    }
  }
};

template <class T>
struct Logical : Integer<T> {
  static T draw(Random& random, size_t, Op, int) { return T(random.below(2)); }
};

// ---- real numbers ----

#ifdef __SIZEOF_FLOAT128__
using Quad = __float128;
#else
using Quad = long double;
#endif

// Bits of the mantissa, and the exponents as in <cfloat>. Wide: what sums and products are checked in.
template <class T>
struct Format;
template <>
struct Format<float> {
  using Wide = long double;
  static constexpr int digits = 24, max_exponent = 128, min_exponent = -125;
};
template <>
struct Format<double> {
  using Wide = long double;
  static constexpr int digits = 53, max_exponent = 1024, min_exponent = -1021;
};
template <>
struct Format<long double> {
  using Wide = Quad;
  static constexpr int digits = __LDBL_MANT_DIG__, max_exponent = __LDBL_MAX_EXP__, min_exponent = __LDBL_MIN_EXP__;
};
template <class T>
T power(int exponent) {  // 2^exponent, exact
  T value = 1;
  for (; exponent > 0; --exponent) value *= 2;
  for (; exponent < 0; ++exponent) value /= 2;
  return value;
}

template <class T>
struct Limit {
  static inline const T rounding = power<T>(-Format<T>::digits);
  static inline const T smallest = power<T>(Format<T>::min_exponent - 1);
  static inline const T largest = (2 - 2 * rounding) * power<T>(Format<T>::max_exponent - 1);
  static inline const T infinity = largest * 2;
  static inline const T nan = infinity - infinity;
};

template <class T>
bool is_nan(T x) {
  return x != x;
}
template <class T>
T size_of(T x) {
  return x < 0 ? -x : x;
}
template <class T>
bool is_infinite(T x) {
  return size_of(x) > Limit<T>::largest;
}

// A finite number of moderate size; the product of one from each rank stays within range.
template <class T>
T draw_moderate(Random& random, int ranks) {
  const int spread = std::min(20, std::max(1, 100 / ranks));
  const int exponent = int(random.below(2 * spread + 1)) - spread;
  T fraction = T(random.next() >> 1) / T(uint64_t(1) << 63);
  if (Format<T>::digits > 63) fraction += T(random.next() >> 1) / T(uint64_t(1) << 63) * power<T>(-63);
  const T value = (1 + fraction) * power<T>(exponent);
  return random.below(2) ? value : -value;
}

// What the ranks' numbers allow to say about their sum or product, in any order.
template <class T>
struct Facts {
  using W = typename Format<T>::Wide;
  bool nan = false, plus_infinity = false, minus_infinity = false, zero = false, negative = false;
  W sum = 0, sum_of_sizes = 0, product = 1, above_one = 1, below_one = 1;

  explicit Facts(const std::vector<T>& x) {
    for (T value : x) {
      if (is_nan(value)) {
        nan = true;
        continue;
      }
      if (value < 0) negative = !negative;
      if (is_infinite(value)) {
        (value > 0 ? plus_infinity : minus_infinity) = true;
        continue;
      }
      if (value == 0) {
        zero = true;
        continue;
      }
      const W size = size_of(W(value));
      sum += value, sum_of_sizes += size, product *= value;
      (size > 1 ? above_one : below_one) *= size;
    }
  }
  bool infinite() const { return plus_infinity || minus_infinity; }
};

template <class T>
bool right_sum(const std::vector<T>& x, T out) {
  const Facts<T> f(x);
  if (f.nan || (f.plus_infinity && f.minus_infinity)) return is_nan(out);
  if (f.sum_of_sizes > Limit<T>::largest) return true;
  if (f.infinite()) return is_infinite(out) && (out > 0) == f.plus_infinity;
  return size_of(out - f.sum) <= 2 * x.size() * f.sum_of_sizes * Limit<T>::rounding;
}

template <class T>
bool right_product(const std::vector<T>& x, T out) {
  const Facts<T> f(x);
  if (f.nan || (f.infinite() && f.zero)) return is_nan(out);
  if (f.zero) return out == 0 || !(f.above_one <= Limit<T>::largest);
  if (f.infinite()) return f.below_one < Limit<T>::smallest || (is_infinite(out) && (out < 0) == f.negative);
  if (!(f.above_one <= Limit<T>::largest) || f.below_one < Limit<T>::smallest) return true;
  return size_of(out - f.product) <= 2 * x.size() * size_of(f.product) * Limit<T>::rounding;
}

template <class T>
struct Real {
  using Value = T;
  static T draw(Random& random, size_t index, Op, int ranks) {
    using L = Limit<T>;
    const T edges[] = {0,
                       -T(0),
                       L::nan,
                       L::infinity,
                       -L::infinity,
                       L::largest,
                       -L::largest,
                       L::smallest,
                       L::smallest * L::rounding * 2,
                       1 + L::rounding * 2};
    if (index % 37 == 5) return edges[random.below(2)];
    return random.below(16) == 0 ? edges[random.below(10)] : draw_moderate<T>(random, ranks);
  }
  static bool right(Op op, const std::vector<T>& x, T out) {
    if (op == Op::sum) return right_sum(x, out);
    if (op == Op::prod) return right_product(x, out);
    T best = x[0];
    for (T value : x) {
      if (is_nan(value)) return is_nan(out);
      if (op == Op::max ? value > best : value < best) best = value;
    }
    return out == best;
  }
  static bool same(T a, T b) { return (is_nan(a) && is_nan(b)) || (a == b && (a != 0 || (1 / a > 0) == (1 / b > 0))); }
  static std::string show(T x) {
    char line[64];
    snprintf(line, sizeof line, "%.21Lg", (long double)x);
    return is_nan(x) ? "nan" : line;
  }
};

// ---- complex numbers: sums part by part; products of finite numbers only ----

template <class T>
struct Complex {
  struct Value {
    T re, im;
  };
  static Value draw(Random& random, size_t index, Op op, int ranks) {
    if (op == Op::prod && random.below(16))
      return {draw_moderate<T>(random, ranks * 2), draw_moderate<T>(random, ranks * 2)};
    return {Real<T>::draw(random, index, op, ranks), Real<T>::draw(random, index, op, ranks)};
  }
  static bool right(Op op, const std::vector<Value>& x, Value out) {
    if (op == Op::sum) {
      std::vector<T> re, im;
      for (Value value : x) re.push_back(value.re), im.push_back(value.im);
      return right_sum(re, out.re) && right_sum(im, out.im);
    }
    using W = typename Format<T>::Wide;
    W re = 1, im = 0, sizes = 1, above_one = 1, below_one = 1;
    for (Value z : x) {
      if (!(size_of(z.re) <= Limit<T>::largest) || !(size_of(z.im) <= Limit<T>::largest)) return true;
      const W next = re * z.re - im * z.im, size = size_of(W(z.re)) + size_of(W(z.im));
      im = re * z.im + im * z.re, re = next, sizes *= size;
      (size > 1 ? above_one : below_one) *= size;
    }
    if (!(above_one <= Limit<T>::largest) || below_one < Limit<T>::smallest / Limit<T>::rounding) return true;
    const W bound = 8 * x.size() * sizes * Limit<T>::rounding;
    return size_of(out.re - re) <= bound && size_of(out.im - im) <= bound;
  }
  static bool same(Value a, Value b) { return Real<T>::same(a.re, b.re) && Real<T>::same(a.im, b.im); }
  static std::string show(Value x) { return Real<T>::show(x.re) + "+" + Real<T>::show(x.im) + "i"; }
};

// ---- value and index pairs ----

template <class T, class Index, class Draw>
struct Pair {
  struct Value {
    T value;
    Index index;
  };
  static bool nan(T x) { return x != x; }
  static Value draw(Random& random, size_t at, Op op, int ranks) {
    const bool edge = random.below(8) == 0;
    return {edge ? Draw::draw(random, at, op, ranks) : T(random.below(3)), Index(random.below(100))};
  }
  static bool right(Op op, const std::vector<Value>& x, Value out) {
    Value best = x[0];
    bool any_nan = false, found = false;
    for (Value v : x) {
      any_nan = any_nan || nan(v.value);
      found = found || (nan(v.value) && v.index == out.index);
      const bool better = op == Op::maxloc ? v.value > best.value : v.value < best.value;
      if (better || (v.value == best.value && v.index < best.index)) best = v;
    }
    if (any_nan) return nan(out.value) && found;
    return out.value == best.value && out.index == best.index;
  }
  static bool same(Value a, Value b) { return Draw::same(a.value, b.value) && a.index == b.index; }
  static std::string show(Value x) { return "(" + Draw::show(x.value) + ", " + std::to_string(x.index) + ")"; }
};

// ---- arrays of one of the above ----

template <class E>
struct Array {
  using V = typename E::Value;
  static V at(const void* data, size_t index) {
    V value;
    memcpy(&value, (const unsigned char*)data + index * sizeof(V), sizeof value);
    return value;
  }
  static void fill(Random& random, void* data, size_t count, Op op, int ranks) {
    for (size_t i = 0; i < count; ++i) {
      const V value = E::draw(random, i, op, ranks);
      memcpy((unsigned char*)data + i * sizeof(V), &value, sizeof value);
    }
  }
  static size_t wrong(Op op, const std::vector<std::vector<unsigned char>>& in, size_t count, const void* out) {
    std::vector<V> x(in.size());
    for (size_t i = 0; i < count; ++i) {
      for (size_t r = 0; r < in.size(); ++r) x[r] = at(in[r].data(), i);
      if (!E::right(op, x, at(out, i))) return i;
    }
    return count;
  }
  static size_t differs(const void* a, const void* b, size_t count) {
    if (memcmp(a, b, count * sizeof(V)) == 0) return count;
    for (size_t i = 0; i < count; ++i)
      if (!E::same(at(a, i), at(b, i))) return i;
    return count;
  }
  static std::string show(const void* data, size_t index) { return E::show(at(data, index)); }
};

template <class E>
Elements elements() {
  return {sizeof(typename E::Value), Array<E>::fill, Array<E>::wrong, Array<E>::differs, Array<E>::show};
}

}  // namespace oracle
