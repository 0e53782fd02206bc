#include "device/kernels.h"

#include <cstdio>

namespace gpurdma {
namespace {

Type without_sign(Type type) {
  switch (type) {
    case Type::int8:
    case Type::logical8:
    case Type::cxx_bool:
    case Type::byte:
      return Type::uint8;
    case Type::int16:
    case Type::logical16:
      return Type::uint16;
    case Type::int32:
    case Type::logical32:
      return Type::uint32;
    case Type::int64:
    case Type::logical64:
      return Type::uint64;
    default:
      return type;
  }
}

}  // namespace

bool kernel_for(Op op, Type type, Kernel* kernel) {
  if (!defined(op, type)) return false;
  if (type == Type::long_double || type == Type::complex_long_double || type == Type::loc_long_double_int) return false;
  if (op == Op::sum && type == Type::complex32)
    *kernel = {op, Type::float32, 2};
  else if (op == Op::sum && type == Type::complex64)
    *kernel = {op, Type::float64, 2};
  else if (op == Op::max || op == Op::min)
    *kernel = {op, type, 1};
  else
    *kernel = {op, without_sign(type), 1};
  return true;
}

void kernel_name(const Kernel& kernel, char (&name)[kKernelName]) {
  std::snprintf(name, sizeof name, "gpurdma_%s_%s", name_of(kernel.op), name_of(kernel.type));
}

}  // namespace gpurdma
