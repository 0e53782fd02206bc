#include "emu/failures.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "emu/driver.h"
#include "emu/emu.h"
#include "emu/settings.h"

namespace emu {

namespace {

struct Failure {
  std::string function;  // "*": any
  long nth = 1;
  bool and_later = false;
  CUresult error = CUDA_ERROR_UNKNOWN;
  long calls = 0;
};

// NAME[:N[+]][:ERROR]
Failure failure_of(const std::string& text) {
  Failure failure;
  std::istringstream parts(text);
  std::string nth, error;
  std::getline(parts, failure.function, ':');
  if (std::getline(parts, nth, ':') && !nth.empty()) {
    failure.nth = atol(nth.c_str());
    failure.and_later = nth.back() == '+';
  }
  if (std::getline(parts, error)) failure.error = error_named(error);
  return failure;
}

std::vector<Failure> failures_of(const std::string& list) {
  std::vector<Failure> failures;
  std::istringstream items(list);
  for (std::string item; std::getline(items, item, ',');) failures.push_back(failure_of(item));
  return failures;
}

std::vector<Failure> failures_of_environment() {
  const std::string rank = environment("GPURDMA_EMU_FAIL_RANK", "");
  if (!rank.empty() && rank != environment("OMPI_COMM_WORLD_RANK", "")) return {};
  return failures_of(environment("GPURDMA_EMU_FAIL", ""));
}

std::vector<Failure>& failures() {
  static auto* const failures = new std::vector<Failure>(failures_of_environment());
  return *failures;
}

}  // namespace

CUresult failure_of_call(const char* function) {
  CUresult result = CUDA_SUCCESS;
  for (Failure& failure : failures()) {
    if (failure.function != "*" && failure.function != function) continue;
    const long call = ++failure.calls;
    if (call == failure.nth || (failure.and_later && call > failure.nth)) result = failure.error;
  }
  return result;
}

}  // namespace emu

extern "C" void emu_fail(const char* list) {
  emu::Lock lock(emu::driver().mutex);
  emu::failures() = emu::failures_of(list == nullptr ? "" : list);
}
