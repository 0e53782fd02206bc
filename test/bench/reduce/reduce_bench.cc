// Host reductions, GB/s of the three streams they move (two reads, one write), beside what memcpy moves (two streams).
//
// A name reads op/type/set/bytes of one operand. Run with --benchmark_filter to see a part.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "reduce/host.h"

namespace gpurdma {
namespace {

constexpr size_t kSizes[] = {8, 1024, 32 << 10, 1 << 20, 64 << 20};

// Page-aligned memory that every page of has been written.
class Buffer {
 public:
  explicit Buffer(size_t bytes) : data_(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)) {
    std::memset(data_, 0, bytes);
  }
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void* data() const { return data_; }

 private:
  void* data_;
};

void reduce(benchmark::State& state, Reduce function, size_t element, size_t bytes) {
  const Buffer left(bytes), right(bytes), out(bytes);
  const size_t count = bytes < element ? 1 : bytes / element;
  for (auto _ : state) {
    function(out.data(), left.data(), right.data(), count);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * 3 * count * element));
}

void copy(benchmark::State& state, size_t bytes) {
  const Buffer from(bytes), to(bytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * 2 * bytes));
}

// Before main() looks for benchmarks.
[[maybe_unused]] const bool registered = [] {
  const struct {
    Op op;
    Type type;
  } rows[] = {
      {Op::sum, Type::float32},
      {Op::sum, Type::float64},
      {Op::sum, Type::int8},
      {Op::sum, Type::int32},
      {Op::sum, Type::complex64},
      {Op::prod, Type::complex64},
      {Op::max, Type::float32},
      {Op::max, Type::float64},
      {Op::max, Type::int8},
      {Op::max, Type::int32},
      {Op::sum, Type::float16},
      {Op::sum, Type::bfloat16},
      {Op::maxloc, Type::loc_double_int},
  };
  const InstructionSet* sets;
  const size_t set_count = instruction_sets(&sets);
  for (size_t bytes : kSizes) {
    benchmark::RegisterBenchmark(("memcpy/" + std::to_string(bytes)).c_str(), copy, bytes);
    for (const auto& row : rows) {
      for (size_t i = 0; i < set_count; ++i) {
        const std::string name = std::string("reduce/") + name_of(row.op) + "/" + name_of(row.type) + "/" +
                                 sets[i].name + "/" + std::to_string(bytes);
        benchmark::RegisterBenchmark(name.c_str(), reduce, sets[i].reduce(row.op, row.type), size_of(row.type), bytes);
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace gpurdma
