// The library's functions, by name; the table is made by exports.awk.
#pragma once
#include <cstddef>

namespace emu {

struct Export {
  const char* name;
  int version;  // of CUDA that brought it, as 12000
  void (*function)();
};

extern const Export kExports[];  // by name, as strcmp orders them
extern const size_t kExportCount;

}  // namespace emu
