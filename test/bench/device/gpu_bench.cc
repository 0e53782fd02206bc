// gpu_bench: the reductions of one GPU, without MPI.
//
//   gpu_bench --check            every op on every type that has a kernel, against the oracle of the unit tests
//   gpu_bench [--mib 64,256]     bytes read and written per second by SUM, and by the device's own copies beside it
//
// Prints as it goes. Exit status: 0, 1 something was wrong, 77 there is no GPU.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "device/gpus.h"
#include "test/bench/device/driver.h"
#include "test/unit/reduce/oracle.h"

using namespace gpurdma;
using bench::Driver;

namespace {

Driver driver;

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Work that is asked for, and waited for.
class Worker final : private GpuInbox {
 public:
  explicit Worker(Gpus& gpus) : gpus_(gpus) {}
  void reduce(GpuId gpu, Op op, Type type, void* dst, const void* left, const void* right, size_t count) {
    accept(gpus_.reduce(gpu, op, type, dst, left, right, count, this, 1));
  }
  bool enter(GpuId gpu) {
    Status status = Status::ok;
    const bool ready = gpus_.enter(gpu, this, 1, &status);
    if (!ready) accept(status);
    wait();
    return status == Status::ok && works_;
  }
  void wait() {
    gpus_.flush();
    while (pending_ > 0) gpus_.progress();
  }
  bool works() const { return works_; }

 private:
  void accept(Status status) {
    if (status == Status::ok)
      ++pending_;
    else
      works_ = false;
  }
  void worked(GpuToken, Status status) override {
    --pending_;
    works_ = works_ && status == Status::ok;
  }

  Gpus& gpus_;
  int pending_ = 0;
  bool works_ = true;
};

// ---- --check ----

constexpr size_t kMost = 70001, kRoom = (kMost + 16) * 32;

struct Buffers {
  char *left = driver.device_memory(kRoom), *right = driver.device_memory(kRoom), *out = driver.device_memory(kRoom);
  ~Buffers() {
    for (char* memory : {left, right, out}) Driver::must(driver.free_device(Driver::at(memory)));
  }
};

// One reduction, with each operand as many elements behind the start as `shift` says. The first wrong element, or
// count.
size_t wrong_at(Worker& worker, GpuId gpu, const Buffers& buffers, Op op, Type type, size_t count,
                const size_t shift[3], std::mt19937_64& random) {
  const size_t element = size_of(type), bytes = count * element;
  std::vector<char> left(bytes), right(bytes), out(bytes), expected(element);
  for (size_t i = 0; i < count; ++i) {
    test::draw(type, random, &left[i * element]);
    test::draw(type, random, &right[i * element]);
  }
  char *l = buffers.left + shift[0] * element, *r = buffers.right + shift[1] * element,
       *o = buffers.out + shift[2] * element;
  Driver::must(driver.up(Driver::at(l), left.data(), bytes));
  Driver::must(driver.up(Driver::at(r), right.data(), bytes));
  worker.reduce(gpu, op, type, o, l, r, count);
  worker.wait();
  Driver::must(driver.down(out.data(), Driver::at(o), bytes));
  for (size_t i = 0; i < count; ++i) {
    test::oracle(op, type, expected.data(), &left[i * element], &right[i * element]);
    if (!test::same(type, expected.data(), &out[i * element])) return i;
  }
  return count;
}

int check(Gpus& gpus, GpuId gpu) {
  const Buffers buffers;
  Worker worker(gpus);
  if (!worker.enter(gpu)) return std::printf("FAIL the GPU could not be entered\n"), 1;
  std::mt19937_64 random(1);
  int checked = 0, wrong = 0, without = 0;
  for (int t = 0; t < kTypes; ++t)
    for (int o = 0; o < kOps; ++o) {
      const Op op = Op(o);
      const Type type = Type(t);
      if (!defined(op, type)) continue;
      if (!gpus.reduces(gpu, op, type)) {
        ++without;
        continue;
      }
      const size_t shifts[][3] = {{0, 0, 0}, {1, 1, 1}, {1, 0, 3}};
      for (const auto& shift : shifts)
        for (const size_t count : {size_t(1), size_t(1000), kMost}) {
          const size_t at = wrong_at(worker, gpu, buffers, op, type, count, shift, random);
          ++checked;
          if (at == count && worker.works()) continue;
          ++wrong;
          std::printf("FAIL %s of %s, %zu elements, shifted by %zu, %zu, %zu: element %zu\n", name_of(op),
                      name_of(type), count, shift[0], shift[1], shift[2], at);
        }
    }
  if (checked == 0) std::printf("FAIL there are no kernels for this GPU\n");
  std::printf("%s %d reductions on the GPU, %d wrong; %d pairs of op and type have no kernel\n",
              wrong || !checked ? "FAIL" : "ok", checked, wrong, without);
  return wrong || !checked ? 1 : 0;
}

// ---- speed ----

// The best of several times; `work` does it `repeat` times.
template <class Work>
double best_us(int repeat, Work work) {
  double best = 0;
  for (int round = 0; round < 7; ++round) {
    const double start = now_us();
    work(repeat);
    const double us = (now_us() - start) / repeat;
    if (round > 0 && (best == 0 || us < best)) best = us;  // the first one warms up
  }
  return best;
}

int measure(Gpus& gpus, GpuId gpu, size_t bytes) {
  char *left = driver.device_memory(bytes), *right = driver.device_memory(bytes), *out = driver.device_memory(bytes);
  Worker worker(gpus);
  if (!worker.enter(gpu)) return std::printf("FAIL the GPU could not be entered\n"), 1;
  CUstream stream;
  Driver::must(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
  constexpr int kRepeat = 8;
  const auto copy = [&] {
    return 2 * double(bytes) / best_us(kRepeat, [&](int repeat) {
             for (int i = 0; i < repeat; ++i)
               Driver::must(driver.within_async(Driver::at(out), Driver::at(left), bytes, stream));
             Driver::must(driver.synchronize(stream));
           });
  };
  for (const Type type : {Type::float32, Type::bfloat16, Type::int32, Type::float16, Type::float64}) {
    if (!gpus.reduces(gpu, Op::sum, type)) {
      std::printf("FAIL no kernel for the sum of %s\n", name_of(type));
      continue;
    }
    const double copied = copy();  // beside each, since the clock may change
    const double reduced = 3 * double(bytes) / best_us(kRepeat, [&](int repeat) {
                             for (int i = 0; i < repeat; ++i)
                               worker.reduce(gpu, Op::sum, type, out, left, right, bytes / size_of(type));
                             worker.wait();
                           });
    std::printf("sum  %-10s %5zu MiB   kernel %8.1f GB/s   copy %8.1f GB/s   %3.0f %%\n", name_of(type), bytes >> 20,
                reduced / 1e3, copied / 1e3, 100 * reduced / copied);
    std::fflush(stdout);
  }
  Driver::must(driver.stream_destroy(stream));
  for (char* memory : {left, right, out}) Driver::must(driver.free_device(Driver::at(memory)));
  return worker.works() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const option = argc > 1 ? argv[1] : "--mib";
  const bool checks = !std::strcmp(option, "--check"), measures = !std::strcmp(option, "--mib");
  if (!checks && !measures) return std::fprintf(stderr, "gpu_bench --check | --mib 64,256\n"), 2;
  if (const char* why_not = driver.open()) return std::printf("SKIP %s\n", why_not), 77;
  char name[256] = "";
  int version = 0;
  Driver::must(driver.device_name(name, sizeof name, driver.device));
  Driver::must(driver.version(&version));
  std::printf("%s, driver for CUDA %d.%d\n", name, version / 1000, version % 1000 / 10);

  int failed = 0;
  {
    GpuSettings settings;
    settings.presence = GpuSettings::Presence::yes;
    const std::unique_ptr<Gpus> gpus = open_gpus(settings);
    if (!gpus) return std::printf("SKIP this build has no CUDA\n"), 77;
    char* const probe = driver.device_memory(256);
    const GpuId gpu = gpus->place(probe);
    Driver::must(driver.free_device(Driver::at(probe)));
    if (gpu == kHost) return std::printf("FAIL device memory is taken for host memory\n"), 1;
    if (checks) failed = check(*gpus, gpu);
    const char* sizes = argc > 2 ? argv[2] : "64,256";
    while (measures && sizes) {
      failed += measure(*gpus, gpu, std::strtoul(sizes, nullptr, 10) << 20);
      sizes = std::strchr(sizes, ',');
      if (sizes) ++sizes;
    }
  }
  driver.close();
  return failed ? 1 : 0;
}
