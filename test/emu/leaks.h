// What a program leaves behind.
#pragma once

namespace emu {

// At exit: the counters if they are asked for, and leaks, which end the process with a failure if that is asked for.
void report_at_exit();

}  // namespace emu
