// The CPU touches device memory: a message that says so, in place of a bare segmentation fault.
#pragma once

namespace emu {

// Watches for it from now on; faults elsewhere go to whoever watched before.
void catch_faults();

}  // namespace emu
