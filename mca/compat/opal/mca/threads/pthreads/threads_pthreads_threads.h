/* Stands in for a header that Open MPI's development packages leave out and opal/mca/threads/threads.h includes by
 * macro (5.0 and later). */
#ifndef GPURDMA_COMPAT_THREADS_PTHREADS_THREADS_H
#define GPURDMA_COMPAT_THREADS_PTHREADS_THREADS_H

#include <pthread.h>
#include <sched.h>

#include "opal/mca/threads/threads.h"

#define OPAL_THREAD_YIELD_WHEN_IDLE_DEFAULT false

static inline void opal_thread_yield(void) { (void)sched_yield(); }

#endif
