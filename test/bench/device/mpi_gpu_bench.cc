// mpi_gpu_bench: MPI_Allreduce of device memory, and beside it what the machine allows.
//
//   mpirun --mca coll gpurdma -n 2 mpi_gpu_bench [--mib 256] [--rounds 5]
//
// For floats, sum, as the slowest rank sees it: the time of the call on device memory; of the call on pinned host
// memory; and of copying the operand down and up, all ranks at once, both directions at once. A large operand passes
// through a pipeline in which all three overlap, so that the slower of the last two is the least time it can take; a
// small one is copied down, reduced and copied up, one behind the other. Results are checked. Exit status as gpu_bench.
#include <algorithm>
#include <string>

#include "test/bench/device/driver.h"
#include "test/bench/mpi/measure.h"
#include "test/mpi/check.h"

namespace {

bench::Driver driver;
using bench::Driver;

struct Operands {
  size_t bytes;
  char *device_in, *device_out, *pinned_in, *pinned_out;

  explicit Operands(size_t size)
      : bytes(size),
        device_in(driver.device_memory(size)),
        device_out(driver.device_memory(size)),
        pinned_in(driver.pinned_memory(size)),
        pinned_out(driver.pinned_memory(size)) {
    for (size_t i = 0; i < bytes / 4; ++i) ((float*)pinned_in)[i] = float(check::rank + 1 + i % 7);
    Driver::must(driver.up(Driver::at(device_in), pinned_in, bytes));
  }
  ~Operands() {
    for (char* memory : {device_in, device_out}) Driver::must(driver.free_device(Driver::at(memory)));
    for (char* memory : {pinned_in, pinned_out}) Driver::must(driver.free_pinned(memory));
  }

  void check_result(const char* what) {
    for (size_t i = 0; i < bytes / 4; ++i) {
      const float sum = float(check::size * (check::size + 1) / 2 + check::size * (i % 7));
      if (!check::expect(((float*)pinned_out)[i] == sum, "%s of %zu bytes: element %zu is %g, not %g", what, bytes, i,
                         ((float*)pinned_out)[i], sum))
        return;
    }
  }
};

double slowest(double mine) {
  double most = 0;
  MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Bcast(&most, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return most;
}

// Down and up at once.
double overlapping_copies_us(const Operands& o, int calls) {
  CUstream down, up;
  Driver::must(driver.stream_create(&down, CU_STREAM_NON_BLOCKING));
  Driver::must(driver.stream_create(&up, CU_STREAM_NON_BLOCKING));
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) {
    Driver::must(driver.down_async(o.pinned_out, Driver::at(o.device_in), o.bytes, down));
    Driver::must(driver.up_async(Driver::at(o.device_out), o.pinned_in, o.bytes, up));
  }
  Driver::must(driver.synchronize(down));
  Driver::must(driver.synchronize(up));
  const double us = slowest((MPI_Wtime() - start) * 1e6 / calls);
  Driver::must(driver.stream_destroy(down));
  Driver::must(driver.stream_destroy(up));
  return us;
}

// Down, then up, and each waited for.
double two_copies_us(const Operands& o, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) {
    Driver::must(driver.down(o.pinned_out, Driver::at(o.device_in), o.bytes));
    Driver::must(driver.up(Driver::at(o.device_out), o.pinned_in, o.bytes));
  }
  return slowest((MPI_Wtime() - start) * 1e6 / calls);
}

void measure(size_t bytes, int rounds) {
  Operands o(bytes);
  const int count = int(bytes / 4), calls = bytes >= size_t(1) << 20 ? 1 : 200;
  const bool large = bytes >= size_t(1) << 20;
  std::vector<double> device, host, copies;
  for (int round = 0; round < rounds + 1; ++round) {
    device.push_back(bench::block_us({MPI_FLOAT, MPI_SUM, count, o.device_in, o.device_out}, MPI_COMM_WORLD, calls));
    if (round == 0) {
      Driver::must(driver.down(o.pinned_out, Driver::at(o.device_out), bytes));
      o.check_result("MPI_Allreduce of device memory");
    }
    host.push_back(bench::block_us({MPI_FLOAT, MPI_SUM, count, o.pinned_in, o.pinned_out}, MPI_COMM_WORLD, calls));
    if (round == 0) o.check_result("MPI_Allreduce of pinned memory");
    copies.push_back(large ? overlapping_copies_us(o, calls) : two_copies_us(o, calls));
    if (round == 0) device.clear(), host.clear(), copies.clear();  // it warms up
  }
  const double d = bench::median(device), h = bench::median(host), c = bench::median(copies);
  const double allowed = large ? std::max(h, c) : h + c;
  if (check::rank == 0)
    printf(
        "allreduce %9zu B  %d ranks   device %10.1f us   host %10.1f us   copies %10.1f us   allowed %10.1f us   %4.0f "
        "%%\n",
        bytes, check::size, d, h, c, allowed, 100 * allowed / d);
  fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  check::program = "mpi_gpu_bench";
  check::arguments.assign(argv + 1, argv + argc);
  check::start();
  if (const char* why_not = driver.open()) {
    if (check::rank == 0) printf("SKIP %s\n", why_not);
    MPI_Finalize();
    return 77;
  }
  const size_t largest = size_t(check::number("--mib", 256)) << 20;
  const int rounds = int(check::number("--rounds", 5));
  for (const size_t bytes : {size_t(8), size_t(4096), size_t(65536), size_t(1) << 20, size_t(16) << 20})
    if (bytes < largest) measure(bytes, rounds);
  measure(largest, rounds);
  const int status = check::finish();
  driver.close();
  return status;
}
