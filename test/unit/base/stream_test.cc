#include "base/stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpurdma {
namespace {

TEST(Stream, CopiesAtAnyPlaceAndLength) {
  std::vector<char> from(600), into(600);
  for (size_t i = 0; i < from.size(); ++i) from[i] = char(1 + i % 100);
  for (size_t to = 0; to < 70; to += 3)
    for (size_t at = 0; at < 70; at += 7)
      for (const size_t bytes : {0, 1, 15, 63, 64, 65, 127, 128, 200, 400}) {
        std::fill(into.begin(), into.end(), 0);
        stream_copy(into.data() + to, from.data() + at, bytes);
        stream_fence();
        for (size_t i = 0; i < into.size(); ++i)
          ASSERT_EQ(into[i], i >= to && i < to + bytes ? from[at + i - to] : 0) << to << " " << at << " " << bytes;
      }
}

}  // namespace
}  // namespace gpurdma
