// The one source of arithmetic: what each op does to two elements, on the host and in device kernels.
//
// The rules, alike everywhere:
// - Integers wrap. Unsigned types compare as unsigned.
// - Logical results are 0 or 1; any nonzero operand is true.
// - MAX and MIN: a NaN operand makes the result NaN; of equal operands, +0 and -0 included, the left one is the result.
// - MAXLOC and MINLOC: a NaN is taken before any number; of equal values, or two NaN, the lower index is taken.
// - 16-bit floats: both operands become float, the op is done in float, the result is rounded once, to nearest even.
// - A complex product is (ac - bd, ad + bc), each step rounded, with no special care for infinities.
//
// Everything here is constexpr, which nvcc (--expt-relaxed-constexpr) and clang accept in device code, so no qualifier
// macro is needed. Everything has internal linkage, because the same code is compiled for several instruction sets and
// the linker must never merge a copy built for AVX into code that runs on any CPU.
#pragma once
#include <cstdint>
#include <type_traits>

namespace gpurdma {
namespace {

struct Float16 {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};
template <class Real>
struct Complex {
  Real real, imaginary;
};
// MPI's value and index pairs, in C layout.
template <class Value, class Index>
struct Located {
  Value value;
  Index index;
};

// A union rather than memcpy or std::bit_cast: C++17 has no constexpr way that g++ 8 knows, and all our compilers
// define reading the other member as reinterpreting the bits.
template <class To, class From>
constexpr To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  union {
    From from;
    To to;
  } both{from};
  return both.to;
}

// ---- 16-bit floats: exact to float, rounded once from float ----

// condition ? yes : no, with masks: compilers do not vectorize a float computation that they moved behind a condition.
constexpr int32_t choose(bool condition, int32_t yes, int32_t no) {
  const int32_t mask = -static_cast<int32_t>(condition);
  return (yes & mask) | (no & ~mask);
}

constexpr float to_float(Float16 x) {
  const int32_t exponent = x.bits & 0x7c00;
  const int32_t magnitude = x.bits & 0x7fff;
  const int32_t rebias = (127 - 15) << 23;
  const int32_t normal = (magnitude << 13) + rebias + choose(exponent == 0x7c00, rebias, 0);
  // Through an int, so that a thread that flushes subnormal floats to zero still sees ours.
  const int32_t subnormal = bits_as<int32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000) << 16;
  return bits_as<float>(static_cast<uint32_t>(choose(exponent == 0, subnormal, normal)) | sign);
}

constexpr float to_float(Bfloat16 x) { return bits_as<float>(static_cast<uint32_t>(x.bits) << 16); }

template <class Narrow>
constexpr Narrow round_to(float x);

template <>
constexpr Float16 round_to<Float16>(float x) {
  const uint32_t bits = bits_as<uint32_t>(x);
  const int32_t magnitude = static_cast<int32_t>(bits & 0x7fffffff);
  const int32_t rebias = (127 - 15) << 23;
  const int32_t normal = (magnitude - rebias + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Adding 0.5 makes the float addition itself round to a multiple of 2^-24, the smallest subnormal.
  const int32_t subnormal = bits_as<int32_t>(bits_as<float>(magnitude) + 0.5f) - bits_as<int32_t>(0.5f);
  int32_t result = choose(magnitude < 0x38800000, subnormal, normal);  // 2^-14
  result = choose(magnitude >= 0x477ff000, 0x7c00, result);            // 65,520 and more round to infinity
  result = choose(magnitude > 0x7f800000, 0x7e00, result);             // NaN
  return {static_cast<uint16_t>(result | static_cast<int32_t>(bits >> 16 & 0x8000))};
}

template <>
constexpr Bfloat16 round_to<Bfloat16>(float x) {
  const uint32_t bits = bits_as<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return {static_cast<uint16_t>(x != x ? (bits >> 16 | 0x40) : rounded)};
}

template <class T>
constexpr bool is_narrow = std::is_same<T, Float16>::value || std::is_same<T, Bfloat16>::value;

// The unsigned type in which T's arithmetic wraps. At least unsigned int: what is narrower is promoted to int, where
// the product of two 16-bit numbers overflows.
template <class T>
using Wrapping = decltype(std::make_unsigned_t<T>{} + 0u);

// ---- The ops. Each takes the operand of the lower rank first ----

struct Sum {
  template <class T>
  constexpr T operator()(T left, T right) const {
    if constexpr (is_narrow<T>) {
      return round_to<T>(to_float(left) + to_float(right));
    } else if constexpr (std::is_integral<T>::value) {
      return static_cast<T>(static_cast<Wrapping<T>>(left) + static_cast<Wrapping<T>>(right));
    } else {
      return left + right;
    }
  }
  template <class Real>
  constexpr Complex<Real> operator()(Complex<Real> left, Complex<Real> right) const {
    return {left.real + right.real, left.imaginary + right.imaginary};
  }
};

struct Product {
  template <class T>
  constexpr T operator()(T left, T right) const {
    if constexpr (is_narrow<T>) {
      return round_to<T>(to_float(left) * to_float(right));
    } else if constexpr (std::is_integral<T>::value) {
      return static_cast<T>(static_cast<Wrapping<T>>(left) * static_cast<Wrapping<T>>(right));
    } else {
      return left * right;
    }
  }
  template <class Real>
  constexpr Complex<Real> operator()(Complex<Real> left, Complex<Real> right) const {
    return {left.real * right.real - left.imaginary * right.imaginary,
            left.real * right.imaginary + left.imaginary * right.real};
  }
};

// A comparison with NaN is false and keeps the left operand, so only a NaN on the right needs a second look. The last
// two lines of each op say the same as takes_right, in the form that becomes three vector instructions: max, compare,
// blend.
struct Max {
  template <class T>
  static constexpr bool takes_right(T left, T right) {
    return (right > left) | (right != right);
  }
  template <class T>
  constexpr T operator()(T left, T right) const {
    if constexpr (is_narrow<T>) {
      return takes_right(to_float(left), to_float(right)) ? right : left;
    } else {
      const T larger = right > left ? right : left;
      return right != right ? right : larger;
    }
  }
};

struct Min {
  template <class T>
  static constexpr bool takes_right(T left, T right) {
    return (right < left) | (right != right);
  }
  template <class T>
  constexpr T operator()(T left, T right) const {
    if constexpr (is_narrow<T>) {
      return takes_right(to_float(left), to_float(right)) ? right : left;
    } else {
      const T smaller = right < left ? right : left;
      return right != right ? right : smaller;
    }
  }
};

struct LogicalAnd {
  template <class T>
  constexpr T operator()(T left, T right) const {
    return static_cast<T>((left != 0) & (right != 0));
  }
};

struct LogicalOr {
  template <class T>
  constexpr T operator()(T left, T right) const {
    return static_cast<T>((left != 0) | (right != 0));
  }
};

struct LogicalXor {
  template <class T>
  constexpr T operator()(T left, T right) const {
    return static_cast<T>((left != 0) ^ (right != 0));
  }
};

struct BitAnd {
  template <class T>
  constexpr T operator()(T left, T right) const {
    return static_cast<T>(left & right);
  }
};

struct BitOr {
  template <class T>
  constexpr T operator()(T left, T right) const {
    return static_cast<T>(left | right);
  }
};

struct BitXor {
  template <class T>
  constexpr T operator()(T left, T right) const {
    return static_cast<T>(left ^ right);
  }
};

// Whether MAXLOC or MINLOC takes the right pair; `beats` says that right's value compares as better than left's.
// No short circuits: the outcome is unpredictable, and a mispredicted branch costs more than the whole comparison.
template <class Pair>
constexpr bool right_wins(bool beats, Pair left, Pair right) {
  const bool left_nan = left.value != left.value;
  const bool right_nan = right.value != right.value;
  const bool tie = (left.value == right.value) | (left_nan & right_nan);
  return beats | (right_nan & !left_nan) | (tie & (right.index < left.index));
}

struct MaxLocation {
  template <class Pair>
  static constexpr bool takes_right(Pair left, Pair right) {
    return right_wins(right.value > left.value, left, right);
  }
  template <class Pair>
  constexpr Pair operator()(Pair left, Pair right) const {
    return takes_right(left, right) ? right : left;
  }
};

struct MinLocation {
  template <class Pair>
  static constexpr bool takes_right(Pair left, Pair right) {
    return right_wins(right.value < left.value, left, right);
  }
  template <class Pair>
  constexpr Pair operator()(Pair left, Pair right) const {
    return takes_right(left, right) ? right : left;
  }
};

}  // namespace
}  // namespace gpurdma
