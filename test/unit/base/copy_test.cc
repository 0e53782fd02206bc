#include "base/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace gpurdma {
namespace {

void check(void (*copy)(void*, const void*, size_t)) {
  std::vector<char> from(6000), into(6000);
  for (size_t i = 0; i < from.size(); ++i) from[i] = char(1 + i % 100);
  for (size_t to = 0; to < 70; to += 3) {
    for (size_t at = 0; at < 70; at += 7) {
      for (const size_t bytes : {0, 1, 15, 63, 64, 65, 127, 128, 200, 511, 513, 2048, 2049, 5000}) {
        std::fill(into.begin(), into.end(), 0);
        copy(into.data() + to, from.data() + at, bytes);
        for (size_t i = 0; i < into.size(); ++i)
          ASSERT_EQ(into[i], i >= to && i < to + bytes ? from[at + i - to] : 0) << to << " " << at << " " << bytes;
      }
    }
  }
}

TEST(Copy, PastTheCaches) {
  check([](void* to, const void* from, size_t bytes) {
    stream_copy(to, from, bytes);
    stream_fence();
  });
}

TEST(Copy, ForAPeer) { check(copy_for_peer); }

}  // namespace
}  // namespace gpurdma
