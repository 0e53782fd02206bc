/* What the runtime needs of its host: a place for log lines, and a place in Open MPI's progress engine.
 *
 * Open MPI calls every high-priority callback at each opal_progress and every low-priority one at each eighth, possibly
 * from several threads at once. gpurdma_progress copes with that. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "mca/gpurdma_mca.h"

static int asked_by_runtime, asked_by_chains; /* how often to be called, as host.set_progress */

static void print(int level, const char *line) {
  if (level <= gpurdma_mca_settings.core.verbose) opal_output(0, "gpurdma: %s", line);
}

void gpurdma_mca_log(int level, const char *format, ...) {
  char line[512];
  va_list arguments;
  if (level > gpurdma_mca_settings.core.verbose) return;
  va_start(arguments, format);
  (void)vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  print(level, line);
}

static int advance(void) {
  if (NULL == gpurdma_mca_runtime) return 0;
  int events = gpurdma_progress(gpurdma_mca_runtime);
  events += gpurdma_mca_chain_progress();
  gpurdma_mca_exchange_sweep();
  gpurdma_mca_requests_sweep();
  return events;
}

/* In 4.1 opal_progress returns nothing, later the number of events. */
static void progress_all(void) { (void)opal_progress(); }

void gpurdma_mca_advance(void) {
  (void)opal_progress();
  (void)advance();
}

/* The higher of what the runtime and the chains ask for. Registering for one priority takes the callback out of the
 * other, on all releases. */
static void ask(int *asked, int level) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static int current;
  pthread_mutex_lock(&lock);
  *asked = level;
  level = asked_by_runtime > asked_by_chains ? asked_by_runtime : asked_by_chains;
  if (level != current) {
    if (0 == level)
      (void)opal_progress_unregister(advance);
    else if (1 == level)
      (void)opal_progress_register_lp(advance);
    else
      (void)opal_progress_register(advance);
  }
  current = level;
  pthread_mutex_unlock(&lock);
}

static void set_progress(int level) { ask(&asked_by_runtime, level); }
void gpurdma_mca_progress_chains(int level) { ask(&asked_by_chains, level); }

void gpurdma_mca_host_close(void) {
  set_progress(0);
  gpurdma_mca_progress_chains(0);
}

bool gpurdma_mca_oversubscribed(void) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  const long processes = 1 + (long)opal_process_info.num_local_peers;
  return ompi_mpi_yield_when_idle || (cores > 0 && processes > cores);
}

const gpurdma_host_t gpurdma_mca_host = {
    .log = print,
    .progress = progress_all,
    .set_progress = set_progress,
    .completed = gpurdma_mca_completed,
};
