#include "reduce/types.h"

namespace gpurdma {
namespace {

// What decides which ops a type has (MPI 4.0, section 6.9.2 "Predefined Reduction Operations").
enum class Kind : uint8_t { integer, real, complex, logical, byte, located };

struct Entry {
  Type type;
  const char* name;
  size_t bytes;
  Kind kind;
};

// MPI's pairs in C layout, gaps included.
template <class Value, class Index>
struct Pair {
  Value value;
  Index index;
};

constexpr Entry kTable[] = {
    {Type::int8, "int8", 1, Kind::integer},
    {Type::int16, "int16", 2, Kind::integer},
    {Type::int32, "int32", 4, Kind::integer},
    {Type::int64, "int64", 8, Kind::integer},
    {Type::uint8, "uint8", 1, Kind::integer},
    {Type::uint16, "uint16", 2, Kind::integer},
    {Type::uint32, "uint32", 4, Kind::integer},
    {Type::uint64, "uint64", 8, Kind::integer},
    {Type::float16, "float16", 2, Kind::real},
    {Type::bfloat16, "bfloat16", 2, Kind::real},
    {Type::float32, "float32", 4, Kind::real},
    {Type::float64, "float64", 8, Kind::real},
    {Type::long_double, "long_double", sizeof(long double), Kind::real},
    {Type::complex32, "complex32", 8, Kind::complex},
    {Type::complex64, "complex64", 16, Kind::complex},
    {Type::complex_long_double, "complex_long_double", 2 * sizeof(long double), Kind::complex},
    {Type::logical8, "logical8", 1, Kind::logical},
    {Type::logical16, "logical16", 2, Kind::logical},
    {Type::logical32, "logical32", 4, Kind::logical},
    {Type::logical64, "logical64", 8, Kind::logical},
    {Type::cxx_bool, "cxx_bool", sizeof(bool), Kind::logical},
    {Type::byte, "byte", 1, Kind::byte},
    {Type::loc_float_int, "loc_float_int", sizeof(Pair<float, int>), Kind::located},
    {Type::loc_double_int, "loc_double_int", sizeof(Pair<double, int>), Kind::located},
    {Type::loc_long_int, "loc_long_int", sizeof(Pair<long, int>), Kind::located},
    {Type::loc_int_int, "loc_int_int", sizeof(Pair<int, int>), Kind::located},
    {Type::loc_short_int, "loc_short_int", sizeof(Pair<short, int>), Kind::located},
    {Type::loc_long_double_int, "loc_long_double_int", sizeof(Pair<long double, int>), Kind::located},
    {Type::two_float, "two_float", sizeof(Pair<float, float>), Kind::located},
    {Type::two_double, "two_double", sizeof(Pair<double, double>), Kind::located},
};

constexpr const char* kOpNames[] = {"max", "min", "sum",  "prod", "land",   "band",
                                    "lor", "bor", "lxor", "bxor", "maxloc", "minloc"};

constexpr bool rows_follow_the_enum() {
  for (int i = 0; i < kTypes; ++i) {
    if (static_cast<int>(kTable[i].type) != i) return false;
  }
  return true;
}
static_assert(sizeof(kTable) / sizeof(kTable[0]) == kTypes && rows_follow_the_enum(),
              "one row for each Type, in order");
static_assert(static_cast<int>(Type::two_double) + 1 == kTypes, "kTypes counts the types");
static_assert(sizeof(kOpNames) / sizeof(kOpNames[0]) == kOps && static_cast<int>(Op::minloc) + 1 == kOps,
              "one name for each Op");

constexpr const Entry& entry(Type type) { return kTable[static_cast<int>(type)]; }

}  // namespace

size_t size_of(Type type) { return entry(type).bytes; }

const char* name_of(Op op) { return kOpNames[static_cast<int>(op)]; }

const char* name_of(Type type) { return entry(type).name; }

bool defined(Op op, Type type) {
  const Kind kind = entry(type).kind;
  switch (op) {
    case Op::max:
    case Op::min:
      return kind == Kind::integer || kind == Kind::real;
    case Op::sum:
    case Op::prod:
      return kind == Kind::integer || kind == Kind::real || kind == Kind::complex;
    case Op::land:
    case Op::lor:
    case Op::lxor:
      return kind == Kind::integer || kind == Kind::logical;
    case Op::band:
    case Op::bor:
    case Op::bxor:
      return kind == Kind::integer || kind == Kind::byte;
    case Op::maxloc:
    case Op::minloc:
      return kind == Kind::located;
  }
  return false;
}

}  // namespace gpurdma
