#include "device/gpus.h"

#include <unistd.h>

namespace gpurdma {

bool gpu_present(GpuSettings::Presence presence) {
  if (presence != GpuSettings::Presence::detect) return presence == GpuSettings::Presence::yes;
  return kHasCuda && access("/dev/nvidiactl", F_OK) == 0 && access("/dev/nvidia0", F_OK) == 0;
}

}  // namespace gpurdma
