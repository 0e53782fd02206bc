// What every extern "C" entry goes through: memory that ran out becomes a status.
#pragma once
#include <new>

#include "base/log.h"
#include "gpurdma.h"

namespace gpurdma {

template <class F>
int guarded(F body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    GPURDMA_LOG(error, "out of memory");
    return GPURDMA_NO_MEMORY;
  }
}

}  // namespace gpurdma
