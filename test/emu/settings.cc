#include "emu/settings.h"

#include <cstdlib>
#include <sstream>

namespace emu {

std::string environment(const char* name, const char* otherwise) {
  const char* value = getenv(name);
  return value == nullptr ? otherwise : value;
}

size_t bytes_of(const std::string& text) {
  char* end = nullptr;
  const size_t number = strtoull(text.c_str(), &end, 0);
  switch (*end) {
    case 'k':
    case 'K':
      return number << 10;
    case 'm':
    case 'M':
      return number << 20;
    case 'g':
    case 'G':
      return number << 30;
    default:
      return number;
  }
}

static bool is_on(const char* name, const char* otherwise) { return environment(name, otherwise) != "0"; }

Settings settings_of_environment() {
  Settings settings;
  settings.devices = atoi(environment("GPURDMA_EMU_DEVICES", "1").c_str());
  settings.memory = bytes_of(environment("GPURDMA_EMU_MEMORY", "8g"));
  settings.seed = strtoull(environment("GPURDMA_EMU_SEED", "1").c_str(), nullptr, 0);
  settings.delay_us = unsigned(strtoul(environment("GPURDMA_EMU_DELAY", "20").c_str(), nullptr, 0));
  settings.strict = is_on("GPURDMA_EMU_STRICT", "1");
  settings.reachable = is_on("GPURDMA_EMU_REACHABLE", "0");
  settings.leaks = is_on("GPURDMA_EMU_LEAKS", "0");
  settings.counts = is_on("GPURDMA_EMU_COUNTS", "0");
  settings.trace = is_on("GPURDMA_EMU_TRACE", "0");
  settings.refuses_images = is_on("GPURDMA_EMU_REFUSE_IMAGES", "0");
  std::istringstream attributes(environment("GPURDMA_EMU_ATTRIBUTES", ""));
  for (std::string item; std::getline(attributes, item, ',');) {
    const size_t equals = item.find('=');
    if (equals != std::string::npos) settings.attributes[atoi(item.c_str())] = atoi(item.c_str() + equals + 1);
  }
  return settings;
}

std::vector<int> visible_devices(int devices) {
  std::vector<int> visible;
  const char* list = getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) {
    for (int device = 0; device < devices; ++device) visible.push_back(device);
    return visible;
  }
  std::istringstream items(list);
  for (std::string item; std::getline(items, item, ',');) {
    char* end = nullptr;
    const long device = strtol(item.c_str(), &end, 10);
    if (end == item.c_str() || device < 0 || device >= devices) break;  // the real driver stops there too
    visible.push_back(int(device));
  }
  return visible;
}

}  // namespace emu
