// Our host reductions against MPI_Reduce_local, which runs Open MPI's own functions, its vector ones included.
//
//   mpi_reduce_local [repeats]
//
// One process. Each repeat times both, in alternating order, on fresh operands (where a branch on the data has been
// there before, the CPU has learned it), and gives one ratio ours / Open MPI's: below 1 we are faster. Printed is
// the median ratio with its quartiles. Buffers start 16 bytes past a cache line, as large blocks from malloc do.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "reduce/host.h"

namespace {

using gpurdma::Op;
using gpurdma::Reduce;
using gpurdma::Type;

struct MpiType {
  Type type;
  MPI_Datatype mpi;
};
struct MpiOp {
  Op op;
  MPI_Op mpi;
};

// Whole numbers below 100 in every part of the elements, so that sums and products stay finite.
void fill(Type type, char* data, size_t bytes, std::mt19937& random) {
  const size_t element = gpurdma::size_of(type);
  const auto number = [&](size_t at, auto zero) {
    zero = static_cast<decltype(zero)>(random() % 100);
    std::memcpy(data + at, &zero, sizeof zero);
  };
  for (size_t at = 0; at + element <= bytes; at += element) {
    switch (type) {
      case Type::float32:
        number(at, 0.0f);
        break;
      case Type::float64:
        number(at, 0.0);
        break;
      case Type::long_double:
        number(at, 0.0L);
        break;
      case Type::complex32:
        number(at, 0.0f), number(at + 4, 0.0f);
        break;
      case Type::complex64:
        number(at, 0.0), number(at + 8, 0.0);
        break;
      case Type::loc_float_int:
        number(at, 0.0f), number(at + 4, 0);
        break;
      case Type::loc_double_int:
        number(at, 0.0), number(at + 8, 0);
        break;
      case Type::loc_long_double_int:
        number(at, 0.0L), number(at + sizeof(long double), 0);
        break;
      default:
        for (size_t i = 0; i < element; ++i) number(at + i, static_cast<unsigned char>(0));
    }
  }
}

class Comparison {
 public:
  Comparison(MpiOp op, MpiType type, size_t bytes, int repeats)
      : op_(op), type_(type), repeats_(repeats), count_(bytes / gpurdma::size_of(type.type)) {
    // Several small operands in a row, so that one time is well above the clock's own cost.
    batch_ = std::max<size_t>(1, std::min<size_t>(4, (32 << 10) / bytes));
    stride_ = (bytes + 4095) / 4096 * 4096 + 1088;  // keeps operands apart modulo 4 KiB, which loads are matched by
    memory_.resize((1 + batch_) * stride_ + 256);
    fresh_.resize(bytes + kSpare);
    fill(type.type, fresh_.data(), fresh_.size(), random_);
  }

  // Ratios ours / Open MPI's, sorted.
  std::vector<double> run() {
    std::vector<double> ratios;
    for (int i = -2; i < repeats_; ++i) {  // two to warm up
      double ours, theirs;
      if (i % 2) {
        ours = time_ours(), theirs = time_theirs();
      } else {
        theirs = time_theirs(), ours = time_ours();
      }
      if (i >= 0) ratios.push_back(ours / theirs), ours_.push_back(ours);
    }
    std::sort(ratios.begin(), ratios.end());
    std::sort(ours_.begin(), ours_.end());
    return ratios;
  }
  double gigabytes_per_second() const {
    return 3e-9 * static_cast<double>(count_ * gpurdma::size_of(type_.type)) / ours_[ours_.size() / 2];
  }

 private:
  char* in() { return at(0); }
  char* at(size_t i) {
    const size_t to_line = -reinterpret_cast<uintptr_t>(memory_.data()) % 64;
    return memory_.data() + to_line + 16 + i * stride_;
  }

  template <class Call>
  double time(Call call) {
    for (size_t i = 0; i <= batch_; ++i) {
      const size_t from = random_() % (kSpare / 32) * 32;  // a whole number of elements of any type
      std::memcpy(at(i), fresh_.data() + from, count_ * gpurdma::size_of(type_.type));
    }
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 1; i <= batch_; ++i) call(at(i));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
           static_cast<double>(batch_);
  }
  double time_ours() {
    return time([&](void* inout) { gpurdma::host_reduce(op_.op, type_.type)(inout, in(), inout, count_); });
  }
  double time_theirs() {
    return time([&](void* inout) { MPI_Reduce_local(in(), inout, static_cast<int>(count_), type_.mpi, op_.mpi); });
  }

  static constexpr size_t kSpare = 64 << 10;
  MpiOp op_;
  MpiType type_;
  int repeats_;
  std::mt19937 random_{1};
  size_t count_, batch_, stride_;
  std::vector<char> memory_, fresh_;
  std::vector<double> ours_;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 41;
  const MpiType types[] = {
      {Type::int8, MPI_INT8_T},
      {Type::int16, MPI_INT16_T},
      {Type::int32, MPI_INT32_T},
      {Type::int64, MPI_INT64_T},
      {Type::uint8, MPI_UINT8_T},
      {Type::uint16, MPI_UINT16_T},
      {Type::uint32, MPI_UINT32_T},
      {Type::uint64, MPI_UINT64_T},
      {Type::float32, MPI_FLOAT},
      {Type::float64, MPI_DOUBLE},
      {Type::long_double, MPI_LONG_DOUBLE},
      {Type::complex32, MPI_C_FLOAT_COMPLEX},
      {Type::complex64, MPI_C_DOUBLE_COMPLEX},
      {Type::cxx_bool, MPI_C_BOOL},
      {Type::byte, MPI_BYTE},
      {Type::loc_float_int, MPI_FLOAT_INT},
      {Type::loc_double_int, MPI_DOUBLE_INT},
      {Type::loc_long_int, MPI_LONG_INT},
      {Type::loc_int_int, MPI_2INT},
      {Type::loc_short_int, MPI_SHORT_INT},
      {Type::loc_long_double_int, MPI_LONG_DOUBLE_INT},
  };
  const MpiOp ops[] = {{Op::max, MPI_MAX},   {Op::min, MPI_MIN},   {Op::sum, MPI_SUM},       {Op::prod, MPI_PROD},
                       {Op::land, MPI_LAND}, {Op::band, MPI_BAND}, {Op::lor, MPI_LOR},       {Op::bor, MPI_BOR},
                       {Op::lxor, MPI_LXOR}, {Op::bxor, MPI_BXOR}, {Op::maxloc, MPI_MAXLOC}, {Op::minloc, MPI_MINLOC}};
  std::printf("# ratio = our time / MPI_Reduce_local's: median (quartiles) of %d; GB/s = ours, 3 streams\n", repeats);
  std::printf("%-7s %-20s", "op", "type");
  const size_t sizes[] = {4 << 10, 256 << 10, 16 << 20};
  for (size_t bytes : sizes) std::printf(" %13zu KiB ratio   GB/s", bytes >> 10);
  std::printf("\n");
  for (const MpiOp& op : ops) {
    for (const MpiType& type : types) {
      if (!gpurdma::defined(op.op, type.type)) continue;
      std::printf("%-7s %-20s", name_of(op.op), name_of(type.type));
      for (size_t bytes : sizes) {
        Comparison comparison(op, type, bytes, bytes > (1 << 20) ? std::min(repeats, 9) : repeats);
        const std::vector<double> ratios = comparison.run();
        std::printf("  %5.2f (%5.2f to %5.2f) %6.1f", ratios[ratios.size() / 2], ratios[ratios.size() / 4],
                    ratios[3 * ratios.size() / 4], comparison.gigabytes_per_second());
      }
      std::printf("\n");
      std::fflush(stdout);
    }
  }
  MPI_Finalize();
  return 0;
}
