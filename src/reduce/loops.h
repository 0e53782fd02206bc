// The host's reduction loops and the table of them, for the instruction set that the including file is compiled for.
//
// Included once by each host_<set>.cc, and by nothing else. Internal linkage throughout, for the reason that
// arithmetic.h gives. The loops are plain: the compiler vectorizes them.
#pragma once
#include <cstring>

#include "reduce/arithmetic.h"
#include "reduce/tables.h"

namespace gpurdma {
namespace {

// Runs body(i) for each i in [0, count). One loop serves dst == left, dst == right and three separate buffers: no
// element depends on another, and to say so is all that the compiler needs. Each compiler has its own words for the
// promise.
template <class Body>
inline void for_each_element(size_t count, Body body) {
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed"  // long double does not vectorize, which is no surprise
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (size_t i = 0; i < count; ++i) body(i);
}

// Long loops first bring dst to the start of a cache line: stores that cross lines cost up to half the speed.
template <Reduce kLoop, size_t kElement>
void on_lines(void* dst, const void* left, const void* right, size_t count) {
  constexpr size_t line = 64, long_loop = 4096;
  const size_t to_line = -reinterpret_cast<uintptr_t>(dst) % line;
  if (to_line != 0 && count >= long_loop / kElement) {
    const size_t head = to_line / kElement;
    kLoop(dst, left, right, head);
    dst = static_cast<char*>(dst) + head * kElement;
    left = static_cast<const char*>(left) + head * kElement;
    right = static_cast<const char*>(right) + head * kElement;
    count -= head;
  }
  kLoop(dst, left, right, count);
}

template <class Function, class T>
[[gnu::noinline]] void plain_loop(void* dst, const void* left, const void* right, size_t count) {
  T* const d = static_cast<T*>(dst);
  const T* const l = static_cast<const T*>(left);
  const T* const r = static_cast<const T*>(right);
  for_each_element(count, [=](size_t i) { d[i] = Function{}(l[i], r[i]); });
}

template <class Function, class T>
constexpr Reduce loop = on_lines<plain_loop<Function, T>, sizeof(T)>;

// Both parts of a complex sum are real sums.
template <class Real>
void complex_sum(void* dst, const void* left, const void* right, size_t count) {
  loop<Sum, Real>(dst, left, right, 2 * count);
}

// For ops that take one operand as it is, on types that do not vectorize: moving bytes is cheaper than moving a long
// double through the x87 stack, and the gaps of the element that is taken come along. The choice is a mask and not a
// condition, of which the compiler would make a branch that the CPU guesses wrong half the time.
template <class Function, class T>
void choosing_loop(void* dst, const void* left, const void* right, size_t count) {
  T* const d = static_cast<T*>(dst);
  const T* const l = static_cast<const T*>(left);
  const T* const r = static_cast<const T*>(right);
  for (size_t i = 0; i < count; ++i) {
    const uintptr_t left_at = reinterpret_cast<uintptr_t>(l + i), right_at = reinterpret_cast<uintptr_t>(r + i);
    const uintptr_t mask = -static_cast<uintptr_t>(Function::takes_right(l[i], r[i]));
    unsigned char copy[sizeof(T)];  // in registers: what is taken may be d[i] itself
    std::memcpy(copy, reinterpret_cast<const void*>(left_at ^ ((left_at ^ right_at) & mask)), sizeof(T));
    std::memcpy(d + i, copy, sizeof(T));
  }
}

// The T that starts at the address where `word` was read from.
template <class T, class Word>
constexpr T first_of(Word word) {
  if constexpr (sizeof(T) == sizeof(Word)) {
    return bits_as<T>(word);
  } else {
    constexpr int unused = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 8 * (sizeof(Word) - sizeof(T)) : 0;
    return static_cast<T>(word >> unused);
  }
}

// A pair with its gaps is two words of the same size: read so, the compiler vectorizes what it cannot as a struct.
template <class Function, class Value, class Index, class Word>
[[gnu::noinline]] void pair_loop(void* dst, const void* left, const void* right, size_t count) {
  using Pair = Located<Value, Index>;
  static_assert(sizeof(Pair) == 2 * sizeof(Word), "two words");
  Word* const d = static_cast<Word*>(dst);
  const Word* const l = static_cast<const Word*>(left);
  const Word* const r = static_cast<const Word*>(right);
  for_each_element(count, [=](size_t i) {
    const Word lv = l[2 * i], li = l[2 * i + 1], rv = r[2 * i], ri = r[2 * i + 1];
    const bool right_wins = Function::takes_right(Pair{first_of<Value>(lv), first_of<Index>(li)},
                                                  Pair{first_of<Value>(rv), first_of<Index>(ri)});
    d[2 * i] = right_wins ? rv : lv;
    d[2 * i + 1] = right_wins ? ri : li;
  });
}

constexpr void set(ReduceTable& table, Op op, Type type, Reduce reduce) {
  table.at[static_cast<int>(op)][static_cast<int>(type)] = reduce;
}

template <class Unsigned>
constexpr void set_bitwise(ReduceTable& table, Type type) {
  set(table, Op::band, type, loop<BitAnd, Unsigned>);
  set(table, Op::bor, type, loop<BitOr, Unsigned>);
  set(table, Op::bxor, type, loop<BitXor, Unsigned>);
}

template <class Unsigned>
constexpr void set_logical(ReduceTable& table, Type type) {
  set(table, Op::land, type, loop<LogicalAnd, Unsigned>);
  set(table, Op::lor, type, loop<LogicalOr, Unsigned>);
  set(table, Op::lxor, type, loop<LogicalXor, Unsigned>);
}

// AVX2 stands in for AVX-512 where the wider loop is not to be had. Complex products: AVX-512 brings fused
// multiply-adds that no flag takes away, and g++ 12 forms them there in spite of -ffp-contract=off (vfmaddsub, from its
// pattern for complex products); with AVX2 alone there are none to form. Products of bytes: g++ 12's shuffles make
// AVX-512 half again as slow (214 ns against 139 ns for 4 KiB in the first-level cache of a Sapphire Rapids Xeon).
template <class T>
constexpr void set_product(ReduceTable& table, Type type, bool with_avx512) {
#ifdef __AVX512F__
  if (!with_avx512) return;
#else
  (void)with_avx512;
#endif
  set(table, Op::prod, type, loop<Product, T>);
}

// Only comparisons know the sign; the rest is the same code for both.
template <class T>
constexpr void set_integer(ReduceTable& table, Type type) {
  using Unsigned = std::make_unsigned_t<T>;
  set(table, Op::max, type, loop<Max, T>);
  set(table, Op::min, type, loop<Min, T>);
  set(table, Op::sum, type, loop<Sum, Unsigned>);
  set_product<Unsigned>(table, type, sizeof(T) > 1);
  set_logical<Unsigned>(table, type);
  set_bitwise<Unsigned>(table, type);
}

template <class T>
constexpr void set_real(ReduceTable& table, Type type) {
  if constexpr (std::is_same<T, long double>::value) {
    set(table, Op::max, type, choosing_loop<Max, T>);
    set(table, Op::min, type, choosing_loop<Min, T>);
  } else {
    set(table, Op::max, type, loop<Max, T>);
    set(table, Op::min, type, loop<Min, T>);
  }
  set(table, Op::sum, type, loop<Sum, T>);
  set(table, Op::prod, type, loop<Product, T>);
}

template <class Real>
constexpr void set_complex(ReduceTable& table, Type type) {
  set(table, Op::sum, type, complex_sum<Real>);
  set_product<Complex<Real>>(table, type, false);
}

template <class Value, class Index>
constexpr void set_located(ReduceTable& table, Type type) {
  using Pair = Located<Value, Index>;
  if constexpr (std::is_same<Value, long double>::value) {
    set(table, Op::maxloc, type, choosing_loop<MaxLocation, Pair>);
    set(table, Op::minloc, type, choosing_loop<MinLocation, Pair>);
  } else {
    using Word = std::conditional_t<sizeof(Pair) == 8, uint32_t, uint64_t>;
    set(table, Op::maxloc, type, on_lines<pair_loop<MaxLocation, Value, Index, Word>, sizeof(Pair)>);
    set(table, Op::minloc, type, on_lines<pair_loop<MinLocation, Value, Index, Word>, sizeof(Pair)>);
  }
}

constexpr ReduceTable make_table() {
  ReduceTable table{};
  set_integer<int8_t>(table, Type::int8);
  set_integer<int16_t>(table, Type::int16);
  set_integer<int32_t>(table, Type::int32);
  set_integer<int64_t>(table, Type::int64);
  set_integer<uint8_t>(table, Type::uint8);
  set_integer<uint16_t>(table, Type::uint16);
  set_integer<uint32_t>(table, Type::uint32);
  set_integer<uint64_t>(table, Type::uint64);
  set_real<Float16>(table, Type::float16);
  set_real<Bfloat16>(table, Type::bfloat16);
  set_real<float>(table, Type::float32);
  set_real<double>(table, Type::float64);
  set_real<long double>(table, Type::long_double);
  set_complex<float>(table, Type::complex32);
  set_complex<double>(table, Type::complex64);
  set_complex<long double>(table, Type::complex_long_double);
  set_logical<uint8_t>(table, Type::logical8);
  set_logical<uint16_t>(table, Type::logical16);
  set_logical<uint32_t>(table, Type::logical32);
  set_logical<uint64_t>(table, Type::logical64);
  set_logical<uint8_t>(table, Type::cxx_bool);
  set_bitwise<uint8_t>(table, Type::byte);
  set_located<float, int>(table, Type::loc_float_int);
  set_located<double, int>(table, Type::loc_double_int);
  set_located<long, int>(table, Type::loc_long_int);
  set_located<int, int>(table, Type::loc_int_int);
  set_located<short, int>(table, Type::loc_short_int);
  set_located<long double, int>(table, Type::loc_long_double_int);
  set_located<float, float>(table, Type::two_float);
  set_located<double, double>(table, Type::two_double);
  return table;
}

}  // namespace
}  // namespace gpurdma
