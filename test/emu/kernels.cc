#include "emu/kernels.h"

#include <string>
#include <utility>

#include "device/reduce_kernels.h"
#include "emu/module.h"

namespace gpurdma {

void misaligned_access(const void* address, size_t bytes) { emu::misaligned_access(address, bytes); }

}  // namespace gpurdma

namespace emu {

using namespace gpurdma;

namespace {

// Which kernels there are: those of src/device/kernels.cu, by ranges of the enumerations.
constexpr bool is_between(Type type, Type first, Type last) { return type >= first && type <= last; }

constexpr bool exists(Op op, Type type) {
  const bool integer = is_between(type, Type::int8, Type::uint64);
  const bool without_sign = is_between(type, Type::uint8, Type::uint64);
  const bool real = is_between(type, Type::float16, Type::float64);
  switch (op) {
    case Op::max:
    case Op::min:
      return integer || real;
    case Op::sum:
      return without_sign || real;
    case Op::prod:
      return without_sign || real || is_between(type, Type::complex32, Type::complex64);
    case Op::maxloc:
    case Op::minloc:
      return is_between(type, Type::loc_float_int, Type::loc_short_int) ||
             is_between(type, Type::two_float, Type::two_double);
    default:
      return without_sign;
  }
}

constexpr int kCells = kOps * kTypes;
constexpr Op op_of(int cell) { return Op(cell / kTypes); }
constexpr Type type_of(int cell) { return Type(cell % kTypes); }

template <int kCell>
constexpr Kernel kernel_of() {
  if constexpr (exists(op_of(kCell), type_of(kCell)))
    return reduce_thread<op_of(kCell), type_of(kCell)>;
  else
    return nullptr;
}

template <int... kCell>
Kernel kernel_at(int cell, std::integer_sequence<int, kCell...>) {
  static constexpr Kernel kernels[] = {kernel_of<kCell>()...};
  return kernels[cell];
}

}  // namespace

Kernel find_kernel(const char* name, size_t* element) {
  for (int cell = 0; cell < kCells; ++cell) {
    const Kernel kernel = kernel_at(cell, std::make_integer_sequence<int, kCells>());
    if (kernel == nullptr) continue;
    if (name != std::string("gpurdma_") + name_of(op_of(cell)) + "_" + name_of(type_of(cell))) continue;
    *element = size_of(type_of(cell));
    return kernel;
  }
  return nullptr;
}

}  // namespace emu
