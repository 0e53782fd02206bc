// What the environment asks of the emulated driver; emu.h says what each variable means.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace emu {

struct Settings {
  int devices = 1;
  size_t memory = 0;
  uint64_t seed = 1;
  unsigned delay_us = 0;
  bool strict = true;
  bool reachable = false;
  bool leaks = false;
  bool counts = false;
  bool trace = false;
  bool refuses_images = false;
  std::map<int, int> attributes;  // CUdevice_attribute: what it is instead
};

Settings settings_of_environment();

// Which of the machine's devices the program sees, as CUDA_VISIBLE_DEVICES says.
std::vector<int> visible_devices(int devices);

// "4096", "64k", "16m", "2g".
size_t bytes_of(const std::string& text);

std::string environment(const char* name, const char* otherwise);

}  // namespace emu
