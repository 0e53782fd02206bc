// Datatypes for messages of integers, and where in a buffer they put each: with gaps, with bounds above and below the
// buffer's address, in disorder, interleaved.
#pragma once
#include "check.h"

namespace layouts {

// An element holds `offsets.size()` integers. Messages are counted in triples of integers, so that all layouts can
// stand for one another.
struct Layout {
  const char* what;
  std::vector<int> offsets;
  int lower, extent;
  MPI_Datatype type = MPI_DATATYPE_NULL;  // of all but the first one to be made and freed
  size_t most = SIZE_MAX;                 // elements, since more would overlap

  size_t elements(size_t triples) const { return triples * 3 / offsets.size(); }
};

inline std::vector<Layout>& all() {
  static std::vector<Layout> list = {
      {"integers", {0}, 0, 4, MPI_INT},
      {"triples", {0, 4, 8}, 0, 12},
      {"triples with gaps", {0, 8, 20}, 0, 28},
      {"triples above the address", {40, 44, 52}, 40, 16},
      {"triples below the address", {-20, -8, -4}, -20, 20},
      {"triples in disorder", {16, 0, 8}, -4, 24},
      {"interleaved triples", {0, 400, 800}, 0, 4, MPI_DATATYPE_NULL, 100},
  };
  return list;
}

inline void commit() {
  for (Layout& l : all()) {
    if (l.type != MPI_DATATYPE_NULL) continue;
    MPI_Datatype plain;
    std::vector<MPI_Aint> offsets(l.offsets.begin(), l.offsets.end());
    MPI_Type_create_hindexed_block((int)offsets.size(), 1, offsets.data(), MPI_INT, &plain);
    MPI_Type_create_resized(plain, l.lower, l.extent, &l.type);
    MPI_Type_commit(&l.type);
    MPI_Type_free(&plain);
  }
}

inline void release() {
  for (Layout& l : all())
    if (l.type != MPI_INT) MPI_Type_free(&l.type);
}

}  // namespace layouts
