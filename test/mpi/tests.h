// The tests of mpi_tests, by the name that its first argument gives. Each is one whole MPI program: it initialises and
// finalises MPI itself and returns the exit status (77: skipped).
#pragma once

namespace tests {
int matrix();
int flight();
int comms();
int churn();
int threads();
int userop();
int early_free();
int beneath();
int half();
int big();
int sessions();
int spawn();
int forks();
int finalize();
int progress();
int tool();
int errors();
int memory();
int fault();
int gpu_copies();
int gpu_rounds();
int gpu_faults();
int late();
int collectives();
int chains();
int gpu_failures();
}  // namespace tests
