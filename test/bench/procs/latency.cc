// How long an allreduce takes between processes of this machine, without MPI: for profiling the product by itself.
//   latency [ranks [algorithm [piece [depth [bytes]]]]]        0: the product's choice; all sizes
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "procs/procs.h"
#include "reduce/types.h"

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  gpurdma_settings_t settings;
  gpurdma_settings_default(&settings);
  settings.algorithm = argc > 2 ? argv[2] : "auto";
  settings.piece = argc > 3 ? size_t(std::atol(argv[3])) : 0;
  settings.depth = argc > 4 ? std::atoi(argv[4]) : 0;
  const size_t only = argc > 5 ? size_t(std::atol(argv[5])) : 0;  // ten times as long, for a profile
  const size_t first = only ? only : 4, last = only ? only : size_t(64) << 20;
  return procs::run(
      ranks, 300,
      [&](procs::Rank& self) {
        self.open(settings);
        using Clock = std::chrono::steady_clock;
        for (size_t bytes = first; bytes <= last; bytes *= 4) {
          const size_t count = bytes / sizeof(float);
          const int calls = (bytes < 65536 ? 2000 : bytes < size_t(4) << 20 ? 100 : 10) * (only ? 10 : 1);
          std::vector<float> in(count, float(self.rank + 1)), out(count);
          std::vector<double> us;
          for (int block = 0; block < 9; ++block) {
            const auto begin = Clock::now();
            for (int i = 0; i < calls; ++i) {
              const int status = gpurdma_allreduce(self.comm, in.data(), out.data(), count, int(gpurdma::Op::sum),
                                                   int(gpurdma::Type::float32));
              if (status != GPURDMA_OK) return 1;
            }
            us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / calls);
          }
          std::sort(us.begin(), us.end());
          const float expected = float(self.size * (self.size + 1) / 2);
          if (std::any_of(out.begin(), out.end(), [&](float x) { return x != expected; })) return 2;
          if (self.rank == 0) std::printf("%10zu bytes %10.2f us\n", bytes, us[us.size() / 2]);
          std::fflush(stdout);
        }
        self.barrier();
        self.close();
        return 0;
      },
      true);
}
