/* The emulated CUDA driver: a libcuda.so.1 for machines without a GPU, and strict.
 *
 * A program that uses the driver API runs on it unchanged. Device memory faults when the CPU touches it, work on
 * streams runs later and after a random delay, and what a real driver would let pass, or answer with a mere error, ends
 * the process with a message: no or a wrong context, freed memory, copies out of range, destroyed handles. It proves
 * logic, not speed.
 *
 * The environment, read by cuInit:
 *
 *   GPURDMA_EMU_DEVICES=1        how many GPUs there are; CUDA_VISIBLE_DEVICES is respected
 *   GPURDMA_EMU_MEMORY=8g        memory of each, counted for each process by itself; beyond it: out of memory
 *   GPURDMA_EMU_DELAY=20         work on streams begins up to so many microseconds late, now and then four times that
 *   GPURDMA_EMU_SEED=1           of these delays
 *   GPURDMA_EMU_STRICT=1         0: misuse returns the driver's error
 *   GPURDMA_EMU_REACHABLE=0      1: the CPU may touch device memory
 *   GPURDMA_EMU_LEAKS=0          1: memory, streams, events and modules that are left at exit make it a failure
 *   GPURDMA_EMU_COUNTS=0         1: prints the counters below at exit
 *   GPURDMA_EMU_TRACE=0          1: prints each call
 *   GPURDMA_EMU_FAIL=LIST        calls that fail: NAME:N:ERROR,...: the Nth (N+: and all later) call of function NAME,
 *                                without its version (*: any), returns ERROR, a name or a number
 *   GPURDMA_EMU_FAIL_RANK=R      ... in the process whose OMPI_COMM_WORLD_RANK is R alone
 *   GPURDMA_EMU_REFUSE_IMAGES=0  1: no module loads, as where the driver is older than the kernels
 *   GPURDMA_EMU_ATTRIBUTES=LIST  N=VALUE,...: device attribute N is VALUE
 *
 * Beside the driver's functions the library has these, for tests (dlsym). None needs cuInit; any thread. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* How many devices cuInit would find, and where device `device` of them sits; 0, or -1: there is no such device. */
int emu_device_count(void);
int emu_pci_id(int device, int* domain, int* bus, int* slot);

/* What was done since the start or the last emu_reset_counts(). Host memory that is neither pinned nor registered is
 * pageable; copies within the host count as such. Managed memory counts as its device's. */
struct emu_count {
  uint64_t copies, bytes;
};
struct emu_counts {
  struct emu_count up_pageable, up_pinned; /* host to device */
  struct emu_count down_pageable, down_pinned;
  struct emu_count within;  /* a device */
  struct emu_count between; /* devices */
  struct emu_count host;
  struct emu_count launches; /* of kernels; bytes read and written */
  struct emu_count memory;   /* device memory in use now: allocations and bytes */
  struct emu_count pinned;   /* pinned and registered memory in use now */
  uint64_t waits;            /* calls that waited for work to end */
};
void emu_get_counts(struct emu_counts* counts);
void emu_reset_counts(void);

/* As GPURDMA_EMU_FAIL, from now on; counts of calls begin at 0. NULL or "": nothing fails any more. */
void emu_fail(const char* list);

/* Prints what the program has not given back (memory, streams, events, modules); returns how many. */
int emu_leaks(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
