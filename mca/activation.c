/* Whether gpurdma is active on a communicator: computed by every member from the same facts, never negotiated.
 *
 * At open each process that is able publishes a small key in the job's modex, before MPI_Init's fence; a process that
 * is not able publishes none. Members' keys are looked up when a communicator is made and remembered, so that each is
 * asked for once per pair of processes (15 to 130 us). An absent key is found absent at once and not waited for.
 *
 * Members of several jobs (MPI_Comm_spawn or MPI_Comm_connect, then MPI_Intercomm_merge) have no common modex that is
 * sure to answer alike everywhere: such a communicator is left to the component beneath. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "mca/gpurdma_mca.h"

static char key_name[] = "gpurdma.coll.key"; /* not const: 4.1 wants it so */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
_Static_assert(sizeof(void *) >= sizeof(uint64_t), "a key is kept in a pointer");
static opal_hash_table_t known; /* process name -> key, 0 for absent */
static uint64_t own_key;        /* 0: this process is not able */

void gpurdma_mca_activation_open(void) {
  own_key = 0;
  OBJ_CONSTRUCT(&known, opal_hash_table_t);
  (void)opal_hash_table_init(&known, 256);
}

void gpurdma_mca_activation_close(void) { OBJ_DESTRUCT(&known); }

int gpurdma_mca_publish(uint64_t key) {
  int failed = 0;
  OPAL_MODEX_SEND_VALUE(failed, GPURDMA_MODEX_SCOPE, key_name, &key, GPURDMA_MODEX_UINT64);
  if (!failed) own_key = key;
  return failed;
}

static uint64_t look_up(opal_process_name_t name) {
  uint64_t key = 0, *into = &key;
  int failed = 0;
  /* The local server answers at once, and knows every process once the fence has carried the data. Where a site turned
   * that off it must be asked to fetch the key, and an absent one costs the two seconds that it waits. */
  if (opal_pmix_base_async_modex || !opal_pmix_collect_all_data) {
    OPAL_MODEX_RECV_VALUE(failed, key_name, &name, &into, GPURDMA_MODEX_UINT64);
  } else {
    OPAL_MODEX_RECV_VALUE_IMMEDIATE(failed, key_name, &name, &into, GPURDMA_MODEX_UINT64);
  }
  return failed ? 0 : key;
}

static uint64_t key_of(opal_process_name_t name) {
  const uint64_t id = (uint64_t)name.jobid << 32 | name.vpid;
  const opal_process_name_t me = OPAL_PROC_MY_NAME;
  void *found = NULL;
  if (name.jobid == me.jobid && name.vpid == me.vpid) return own_key;
  if (OPAL_SUCCESS == opal_hash_table_get_value_uint64(&known, id, &found)) return (uint64_t)(uintptr_t)found;
  const uint64_t key = look_up(name);
  (void)opal_hash_table_set_value_uint64(&known, id, (void *)(uintptr_t)key);
  return key;
}

/* The keys of all members, in rank order. False: the members belong to more than one job. */
static bool collect(ompi_group_t *group, uint64_t *keys, int size) {
  const opal_process_name_t me = OPAL_PROC_MY_NAME;
  bool one_job = true;
  pthread_mutex_lock(&lock);
  for (int rank = 0; rank < size; ++rank) {
    const opal_process_name_t name = ompi_group_get_proc_name(group, rank);
    one_job = one_job && name.jobid == me.jobid;
    keys[rank] = one_job ? key_of(name) : 0;
  }
  pthread_mutex_unlock(&lock);
  return one_job;
}

/* One member prints the line: the first that is able. */
static bool is_speaker(const uint64_t *keys, int rank) {
  for (int lower = 0; lower < rank; ++lower)
    if (0 != keys[lower]) return false;
  return true;
}

uint64_t *gpurdma_mca_active(ompi_communicator_t *comm) {
  const int size = ompi_comm_size(comm), rank = ompi_comm_rank(comm);
  gpurdma_verdict_t verdict = {0, 0, "it has members of more than one job"};
  /* One rank has nobody to talk to, and between two groups the component beneath runs. */
  if (0 == own_key || OMPI_COMM_IS_INTER(comm) || size < 2) return NULL;
  uint64_t *keys = malloc((size_t)size * sizeof *keys);
  if (NULL == keys) return NULL;
  if (collect(comm->c_local_group, keys, size)) gpurdma_decide(keys, size, gpurdma_mca_settings.core.scope, &verdict);
  /* What the user would want to mend is said once without being asked for. */
  static atomic_bool warned;
  const int level = verdict.surprising && !atomic_exchange(&warned, true) ? 1 : 2;
  if (is_speaker(keys, rank))
    gpurdma_mca_log(level, "%s (%d ranks): %s: %s", '\0' == comm->c_name[0] ? "unnamed communicator" : comm->c_name,
                    size, verdict.active ? "active" : "not active", verdict.reason);
  if (verdict.active) return keys;
  free(keys);
  return NULL;
}
