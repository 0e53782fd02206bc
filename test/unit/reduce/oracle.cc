#include "oracle.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

namespace gpurdma::test {
namespace {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Unsigned128;

template <class T>
T load(const void* from, size_t offset = 0) {
  T value;
  std::memcpy(&value, static_cast<const char*>(from) + offset, sizeof value);
  return value;
}

template <class T>
void store(void* to, T value, size_t offset = 0) {
  // Ten bytes are all that a long double of x87 means.
  const size_t bytes = std::is_same_v<T, long double> && LDBL_MANT_DIG == 64 ? 10 : sizeof value;
  std::memcpy(static_cast<char*>(to) + offset, &value, bytes);
}

// ---- 16-bit floats as doubles, which hold every sum and product of two Float16 exactly ----

struct Format {
  int fraction_bits;
  int bias;
};
constexpr Format kFloat16{10, 15}, kBfloat16{7, 127};

double decode(Format f, uint16_t bits) {
  const int fraction = bits & ((1 << f.fraction_bits) - 1);
  const int exponent = (bits & 0x7fff) >> f.fraction_bits;
  double value;
  if (exponent == 0x7fff >> f.fraction_bits) {
    value = fraction ? NAN : INFINITY;
  } else if (exponent == 0) {
    value = std::ldexp(fraction, 1 - f.bias - f.fraction_bits);
  } else {
    value = std::ldexp(fraction + (1 << f.fraction_bits), exponent - f.bias - f.fraction_bits);
  }
  return bits & 0x8000 ? -value : value;
}

// To nearest, ties to even, as nearbyint does: x in units of its last place is at most 2^11, so scaling is exact.
uint16_t encode(Format f, double x) {
  const int infinity = 0x7fff >> f.fraction_bits << f.fraction_bits;
  const int sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return static_cast<uint16_t>(infinity | 1);
  x = std::fabs(x);
  const int smallest = 1 - f.bias;
  const int exponent = std::isinf(x) || x == 0 ? smallest : std::max(std::ilogb(x), smallest);
  if (std::isinf(x) || exponent > f.bias) return static_cast<uint16_t>(sign | infinity);
  const int units = static_cast<int>(std::nearbyint(std::ldexp(x, f.fraction_bits - exponent)));
  // A carry out of the fraction raises the exponent by itself, up to infinity.
  return static_cast<uint16_t>(sign | (((exponent - smallest) << f.fraction_bits) + units));
}

// ---- Floats: one operation, exact or nearly so in Wide, then rounded to T ----

template <class T, class Wide>
T rounded(Op op, T left, T right) {
  volatile Wide l = left, r = right;
  volatile Wide wide = op == Op::sum ? l + r : op == Op::prod ? l * r : l - r;
  return static_cast<T>(wide);
}
constexpr Op kMinus = Op::bxor;  // any op that rounded() does not know subtracts

template <class T, class Wide>
T real(Op op, T left, T right) {
  if (op == Op::sum || op == Op::prod) return rounded<T, Wide>(op, left, right);
  if (std::isnan(left) || std::isnan(right)) return std::numeric_limits<T>::quiet_NaN();
  if (op == Op::max) return left >= right ? left : right;
  return left <= right ? left : right;
}

template <class T, class Wide>
void complex(Op op, void* out, const void* left, const void* right) {
  const T a = load<T>(left), b = load<T>(left, sizeof(T)), c = load<T>(right), d = load<T>(right, sizeof(T));
  const auto times = [](T x, T y) { return rounded<T, Wide>(Op::prod, x, y); };
  const auto plus = [](T x, T y) { return rounded<T, Wide>(Op::sum, x, y); };
  const auto minus = [](T x, T y) { return rounded<T, Wide>(kMinus, x, y); };
  store<T>(out, op == Op::sum ? plus(a, c) : minus(times(a, c), times(b, d)));
  store<T>(out, op == Op::sum ? plus(b, d) : plus(times(a, d), times(b, c)), sizeof(T));
}

// 53 bits of double are enough to round a float's sum or product once, 113 of __float128 for a double's.
__extension__ typedef __float128 Float128;

template <class Visit>
void with_integer(Type type, Visit visit) {
  switch (type) {
    case Type::int8:
      return visit(int8_t{});
    case Type::int16:
      return visit(int16_t{});
    case Type::int32:
      return visit(int32_t{});
    case Type::int64:
      return visit(int64_t{});
    case Type::uint8:
    case Type::logical8:
    case Type::cxx_bool:
    case Type::byte:
      return visit(uint8_t{});
    case Type::uint16:
    case Type::logical16:
      return visit(uint16_t{});
    case Type::uint32:
    case Type::logical32:
      return visit(uint32_t{});
    default:
      return visit(uint64_t{});
  }
}

Unsigned128 integer(Op op, Int128 left, Int128 right) {
  switch (op) {
    case Op::max:
      return left > right ? left : right;
    case Op::min:
      return left < right ? left : right;
    case Op::sum:
      return left + right;
    case Op::prod:
      return static_cast<Unsigned128>(left) * static_cast<Unsigned128>(right);
    case Op::land:
      return left && right;
    case Op::lor:
      return left || right;
    case Op::lxor:
      return !left != !right;
    case Op::band:
      return left & right;
    case Op::bor:
      return left | right;
    default:
      return left ^ right;
  }
}

// Calls visit(value, index, offset of the index) with zeros of the pair's types.
template <class Visit>
bool with_pair(Type type, Visit visit) {
  switch (type) {
    case Type::loc_float_int:
      visit(0.0f, 0, 4);
      return true;
    case Type::loc_double_int:
      visit(0.0, 0, 8);
      return true;
    case Type::loc_long_int:
      visit(0L, 0, sizeof(long));
      return true;
    case Type::loc_int_int:
      visit(0, 0, 4);
      return true;
    case Type::loc_short_int:
      visit(static_cast<short>(0), 0, 4);
      return true;
    case Type::loc_long_double_int:
      visit(0.0L, 0, sizeof(long double));
      return true;
    case Type::two_float:
      visit(0.0f, 0.0f, 4);
      return true;
    case Type::two_double:
      visit(0.0, 0.0, 8);
      return true;
    default:
      return false;
  }
}

// -1: left's value comes first, 1: right's, 0: neither.
int better(Op op, long double left, long double right) {
  if (std::isnan(left) || std::isnan(right)) return std::isnan(right) - std::isnan(left);
  if (left == right) return 0;
  return (op == Op::maxloc) == (left > right) ? -1 : 1;
}

// Calls visit(zero of the part's type, offset) for each real part of a float type.
template <class Visit>
bool with_parts(Type type, Visit visit) {
  switch (type) {
    case Type::float32:
      visit(0.0f, 0);
      return true;
    case Type::float64:
      visit(0.0, 0);
      return true;
    case Type::long_double:
      visit(0.0L, 0);
      return true;
    case Type::complex32:
      visit(0.0f, 0), visit(0.0f, 4);
      return true;
    case Type::complex64:
      visit(0.0, 0), visit(0.0, 8);
      return true;
    case Type::complex_long_double:
      visit(0.0L, 0), visit(0.0L, sizeof(long double));
      return true;
    default:
      return false;
  }
}

template <class T>
bool same_number(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return a == b && std::signbit(a) == std::signbit(b);
  }
  return a == b;
}

template <class T>
T draw_number(std::mt19937_64& random) {
  using Limits = std::numeric_limits<T>;
  const uint64_t bits = random();
  if constexpr (std::is_floating_point_v<T>) {
    const T special[] = {T(0),
                         -T(0),
                         T(1),
                         T(-1),
                         Limits::min(),
                         -Limits::min(),
                         Limits::denorm_min(),
                         -Limits::denorm_min(),
                         Limits::max(),
                         Limits::lowest(),
                         Limits::epsilon(),
                         1 + Limits::epsilon(),
                         Limits::infinity(),
                         -Limits::infinity(),
                         Limits::quiet_NaN(),
                         -Limits::quiet_NaN()};
    if (bits % 3 == 0) return special[bits / 3 % 16];
    const T number = static_cast<T>(static_cast<int64_t>(random()));
    // Mostly near each other, where rounding is seen; now and then anywhere.
    return std::ldexp(
        number, bits % 3 == 1 ? -static_cast<int>(bits / 3 % 64)
                              : static_cast<int>(bits / 3 % (2 * Limits::max_exponent)) - Limits::max_exponent - 62);
  } else {
    const T special[] = {Limits::min(),
                         static_cast<T>(Limits::min() + 1),
                         Limits::max(),
                         static_cast<T>(Limits::max() - 1),
                         T(0),
                         T(1),
                         static_cast<T>(-1),
                         T(2)};
    return bits % 3 == 0 ? special[bits / 3 % 8] : static_cast<T>(random());
  }
}

}  // namespace

void oracle(Op op, Type type, void* out, const void* left, const void* right) {
  const bool pair = with_pair(type, [&](auto value, auto index, size_t offset) {
    using Index = decltype(index);
    using Value = decltype(value);
    const int order = better(op, load<Value>(left), load<Value>(right));
    const Index l = load<Index>(left, offset), r = load<Index>(right, offset);
    const bool take_right = order > 0 || (order == 0 && r < l);
    store(out, load<Value>(take_right ? right : left));
    store(out, take_right ? r : l, offset);
  });
  if (pair) return;
  const auto narrow = [&](Format f) {
    const double x = decode(f, load<uint16_t>(left)), y = decode(f, load<uint16_t>(right));
    store(out, encode(f, static_cast<float>(real<double, double>(op, x, y))));
  };
  switch (type) {
    case Type::float16:
      return narrow(kFloat16);
    case Type::bfloat16:
      return narrow(kBfloat16);
    case Type::float32:
      return store(out, real<float, double>(op, load<float>(left), load<float>(right)));
    case Type::float64:
      return store(out, real<double, Float128>(op, load<double>(left), load<double>(right)));
    case Type::long_double:
      return store(out, real<long double, long double>(op, load<long double>(left), load<long double>(right)));
    case Type::complex32:
      return complex<float, double>(op, out, left, right);
    case Type::complex64:
      return complex<double, Float128>(op, out, left, right);
    case Type::complex_long_double:
      return complex<long double, long double>(op, out, left, right);
    default:
      break;
  }
  with_integer(type, [&](auto zero) {
    using T = decltype(zero);
    store(out, static_cast<T>(integer(op, load<T>(left), load<T>(right))));
  });
}

bool same(Type type, const void* a, const void* b) {
  bool equal = true;
  const auto compare = [&](auto zero, size_t offset) {
    using T = decltype(zero);
    equal = equal && same_number(load<T>(a, offset), load<T>(b, offset));
  };
  const auto compare_pair = [&](auto value, auto index, size_t offset) {
    compare(value, 0);
    compare(index, offset);
  };
  if (with_pair(type, compare_pair) || with_parts(type, compare)) return equal;
  const auto same_narrow = [&](Format f) {
    return same_number(decode(f, load<uint16_t>(a)), decode(f, load<uint16_t>(b)));
  };
  if (type == Type::float16) return same_narrow(kFloat16);
  if (type == Type::bfloat16) return same_narrow(kBfloat16);
  return std::memcmp(a, b, size_of(type)) == 0;
}

void draw(Type type, std::mt19937_64& random, void* element) {
  for (size_t i = 0; i < size_of(type); ++i) store(element, static_cast<unsigned char>(random()), i);
  const bool pair = with_pair(type, [&](auto value, auto index, size_t offset) {
    store(element, draw_number<decltype(value)>(random));
    store(element, static_cast<decltype(index)>(random() % 5) - 2, offset);
    if (random() % 4) store(element, static_cast<decltype(value)>(random() % 3));  // ties
  });
  const bool parts =
      with_parts(type, [&](auto zero, size_t offset) { store(element, draw_number<decltype(zero)>(random), offset); });
  if (pair || parts) return;
  if (type == Type::float16 || type == Type::bfloat16) {
    const Format f = type == Type::float16 ? kFloat16 : kBfloat16;
    // Random bits reach every corner of so small a type; the rest is near 1, where sums round.
    if (random() % 2) store(element, encode(f, std::ldexp(static_cast<double>(random() % 4096), -11)));
    return;
  }
  with_integer(type, [&](auto zero) { store(element, draw_number<decltype(zero)>(random)); });
}

}  // namespace gpurdma::test
