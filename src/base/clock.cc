#include "base/clock.h"

namespace gpurdma::clock {
namespace {

struct Origin {
  uint64_t ticks = clock::ticks();
  uint64_t nanoseconds = clock::nanoseconds();
};
const Origin origin;  // when this code was loaded

}  // namespace

double seconds(uint64_t difference) {
  const uint64_t elapsed = nanoseconds() - origin.nanoseconds;
  const uint64_t counted = ticks() - origin.ticks;
  if (counted == 0) return 0;
  return double(difference) * (double(elapsed) / double(counted)) * 1e-9;
}

}  // namespace gpurdma::clock
