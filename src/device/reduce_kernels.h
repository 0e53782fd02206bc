// What one thread of a reduction kernel does: one source for nvcc, and for the host, where tests run it.
//
// The threads of a task stride through it together. Where all three operands lie on 16-byte boundaries, or equally far
// behind them, each thread moves 16 bytes at a time, with several loads under way before the first one is needed, since
// the speed is that of memory; otherwise it moves an element at a time. The arithmetic is that of the host
// (reduce/arithmetic.h). Internal linkage, for the reason given there.
#pragma once
#include "device/kernel_args.h"
#include "reduce/arithmetic.h"
#include "reduce/types.h"

#ifdef __CUDACC__
#define GPURDMA_ON_GPU __device__
#else
#define GPURDMA_ON_GPU
#endif

namespace gpurdma {

#ifndef __CUDACC__
// Called for an access that a GPU would refuse; whoever runs kernels on the host says what then happens.
void misaligned_access(const void* address, size_t bytes);
#endif

namespace {

// ---- The function of each Op, the element of each Type ----

template <Op>
struct FunctionOf;
template <>
struct FunctionOf<Op::max> {
  using type = Max;
};
template <>
struct FunctionOf<Op::min> {
  using type = Min;
};
template <>
struct FunctionOf<Op::sum> {
  using type = Sum;
};
template <>
struct FunctionOf<Op::prod> {
  using type = Product;
};
template <>
struct FunctionOf<Op::land> {
  using type = LogicalAnd;
};
template <>
struct FunctionOf<Op::band> {
  using type = BitAnd;
};
template <>
struct FunctionOf<Op::lor> {
  using type = LogicalOr;
};
template <>
struct FunctionOf<Op::bor> {
  using type = BitOr;
};
template <>
struct FunctionOf<Op::lxor> {
  using type = LogicalXor;
};
template <>
struct FunctionOf<Op::bxor> {
  using type = BitXor;
};
template <>
struct FunctionOf<Op::maxloc> {
  using type = MaxLocation;
};
template <>
struct FunctionOf<Op::minloc> {
  using type = MinLocation;
};

template <Type>
struct ElementOf;
template <>
struct ElementOf<Type::int8> {
  using type = int8_t;
};
template <>
struct ElementOf<Type::int16> {
  using type = int16_t;
};
template <>
struct ElementOf<Type::int32> {
  using type = int32_t;
};
template <>
struct ElementOf<Type::int64> {
  using type = int64_t;
};
template <>
struct ElementOf<Type::uint8> {
  using type = uint8_t;
};
template <>
struct ElementOf<Type::uint16> {
  using type = uint16_t;
};
template <>
struct ElementOf<Type::uint32> {
  using type = uint32_t;
};
template <>
struct ElementOf<Type::uint64> {
  using type = uint64_t;
};
template <>
struct ElementOf<Type::float16> {
  using type = Float16;
};
template <>
struct ElementOf<Type::bfloat16> {
  using type = Bfloat16;
};
template <>
struct ElementOf<Type::float32> {
  using type = float;
};
template <>
struct ElementOf<Type::float64> {
  using type = double;
};
template <>
struct ElementOf<Type::complex32> {
  using type = Complex<float>;
};
template <>
struct ElementOf<Type::complex64> {
  using type = Complex<double>;
};
template <>
struct ElementOf<Type::loc_float_int> {
  using type = Located<float, int>;
};
template <>
struct ElementOf<Type::loc_double_int> {
  using type = Located<double, int>;
};
template <>
struct ElementOf<Type::loc_long_int> {
  using type = Located<long, int>;
};
template <>
struct ElementOf<Type::loc_int_int> {
  using type = Located<int, int>;
};
template <>
struct ElementOf<Type::loc_short_int> {
  using type = Located<short, int>;
};
template <>
struct ElementOf<Type::two_float> {
  using type = Located<float, float>;
};
template <>
struct ElementOf<Type::two_double> {
  using type = Located<double, double>;
};

template <class T>
struct IsLocated : std::false_type {};
template <class Value, class Index>
struct IsLocated<Located<Value, Index>> : std::true_type {};

// ---- What is moved at once ----

template <size_t kBytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using type = uint8_t;
};
template <>
struct UnsignedOf<2> {
  using type = uint16_t;
};
template <>
struct UnsignedOf<4> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<8> {
  using type = uint64_t;
};

// 16 bytes, which one instruction moves.
struct alignas(16) Wide {
  uint32_t part[4];
};
// One element, as its alignment allows it to be moved.
template <class T>
struct Single {
  using Part = typename UnsignedOf<alignof(T)>::type;
  Part part[sizeof(T) / sizeof(Part)];
};

template <class Unit>
GPURDMA_ON_GPU inline Unit load(const Unit* from) {
#ifndef __CUDACC__
  if (reinterpret_cast<uintptr_t>(from) % alignof(Unit) != 0) misaligned_access(from, sizeof(Unit));
#endif
  return *from;
}

template <class Unit>
GPURDMA_ON_GPU inline void store(Unit* to, const Unit& unit) {
#ifndef __CUDACC__
  if (reinterpret_cast<uintptr_t>(to) % alignof(Unit) != 0) misaligned_access(to, sizeof(Unit));
#endif
  *to = unit;
}

template <class T, size_t kCount>
struct Elements {
  T at[kCount];
};

// The elements in two units, reduced. Pairs are taken as they are, with the bytes in their gaps, as on the host.
template <class Function, class T, class Unit>
GPURDMA_ON_GPU inline Unit combine(const Unit& left, const Unit& right) {
  constexpr size_t count = sizeof(Unit) / sizeof(T);
  const auto l = bits_as<Elements<T, count>>(left);
  const auto r = bits_as<Elements<T, count>>(right);
  if constexpr (IsLocated<T>::value) {
    constexpr size_t parts = sizeof(Unit) / sizeof(left.part[0]);
    Unit result;
    for (size_t i = 0; i < count; ++i) {
      const bool takes_right = Function::takes_right(l.at[i], r.at[i]);
      for (size_t p = i * parts / count; p < (i + 1) * parts / count; ++p)
        result.part[p] = takes_right ? right.part[p] : left.part[p];
    }
    return result;
  } else {
    Elements<T, count> result{};
    for (size_t i = 0; i < count; ++i) result.at[i] = Function{}(l.at[i], r.at[i]);
    return bits_as<Unit>(result);
  }
}

// Units number `thread`, `thread` + `threads`, ... of count, which are those before number `gap` and those that come
// `skipped` later.
template <class Function, class T, class Unit>
GPURDMA_ON_GPU inline void reduce_units(const ReduceTask& units, uint64_t gap, uint64_t skipped, uint64_t thread,
                                        uint64_t threads) {
  constexpr int kUnderWay = 4;
  Unit* const d = static_cast<Unit*>(units.dst);
  const Unit* const l = static_cast<const Unit*>(units.left);
  const Unit* const r = static_cast<const Unit*>(units.right);
  const auto at = [=](uint64_t i) { return i < gap ? i : i + skipped; };
  uint64_t i = thread;
  for (; i + (kUnderWay - 1) * threads < units.count; i += kUnderWay * threads) {
    Unit lefts[kUnderWay], rights[kUnderWay];
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int k = 0; k < kUnderWay; ++k) {
      lefts[k] = load(l + at(i + k * threads));
      rights[k] = load(r + at(i + k * threads));
    }
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int k = 0; k < kUnderWay; ++k) store(d + at(i + k * threads), combine<Function, T>(lefts[k], rights[k]));
  }
  for (; i < units.count; i += threads) store(d + at(i), combine<Function, T>(load(l + at(i)), load(r + at(i))));
}

// All that thread number `thread` of `threads` does of a task.
template <Op kOp, Type kType>
GPURDMA_ON_GPU inline void reduce_thread(const ReduceTask& task, uint64_t thread, uint64_t threads) {
  using T = typename ElementOf<kType>::type;
  using Function = typename FunctionOf<kOp>::type;
  constexpr uint64_t wide = sizeof(Wide), size = sizeof(T), none = ~uint64_t(0);
  const uint64_t d = reinterpret_cast<uintptr_t>(task.dst) % wide;
  const uint64_t l = reinterpret_cast<uintptr_t>(task.left) % wide;
  const uint64_t r = reinterpret_cast<uintptr_t>(task.right) % wide;
  // Of the elements some come before the first boundary, some are moved 16 bytes at a time, and some remain.
  uint64_t head = task.count, moved = 0;
  if (d == l && d == r && d % size == 0 && task.count > (wide - d) % wide / size) {
    head = (wide - d) % wide / size;
    moved = (task.count - head) / (wide / size) * (wide / size);
    const ReduceTask body{static_cast<char*>(task.dst) + head * size, static_cast<const char*>(task.left) + head * size,
                          static_cast<const char*>(task.right) + head * size, moved / (wide / size)};
    reduce_units<Function, T, Wide>(body, none, 0, thread, threads);
  }
  const ReduceTask rest{task.dst, task.left, task.right, task.count - moved};
  reduce_units<Function, T, Single<T>>(rest, head, moved, thread, threads);
}

}  // namespace
}  // namespace gpurdma
