/* One module per communicator on which gpurdma is active.
 *
 * Enabling remembers the functions beneath and makes the communicator's part of the runtime; it sends nothing and waits
 * for nothing. Where the runtime cannot make its part, the module is enabled all the same and every call fails with an
 * MPI error: the other ranks count on this one, and it must not decide differently on its own. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mca/gpurdma_mca.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gpurdma_module_t *enabled; /* all enabled modules */

static int broken(void *opaque) {
  const gpurdma_module_t *module = opaque;
  return gpurdma_compat_broken(module->comm);
}

static void enter_list(gpurdma_module_t *module) {
  pthread_mutex_lock(&lock);
  module->next = enabled;
  module->link = &enabled;
  if (NULL != enabled) enabled->link = &module->next;
  enabled = module;
  pthread_mutex_unlock(&lock);
}

static void leave_list(gpurdma_module_t *module) {
  pthread_mutex_lock(&lock);
  if (NULL != module->next) module->next->link = module->link;
  *module->link = module->next;
  pthread_mutex_unlock(&lock);
}

static void end_core(gpurdma_module_t *module) {
  if (NULL != module->core) gpurdma_comm_destroy(module->core);
  module->core = NULL;
}

static void construct(gpurdma_module_t *module) {
  memset(module->spare, 0, sizeof *module - offsetof(gpurdma_module_t, spare));
}

static void forget_beneath(gpurdma_module_t *module) {
  GPURDMA_FORGET(module->allreduce_module);
  GPURDMA_FORGET(module->iallreduce_module);
  GPURDMA_FORGET(module->allreduce_init_module);
}

static int disable(mca_coll_base_module_t *base, ompi_communicator_t *comm) {
  gpurdma_module_t *module = (gpurdma_module_t *)base;
  if (NULL == module->comm) return OMPI_SUCCESS; /* 4.1 and 5.0 call this once for each function */
  leave_list(module);
  end_core(module);
  gpurdma_mca_exchange_sweep();
  module->comm = NULL;
  GPURDMA_RESTORE(comm, allreduce, base, module->allreduce, module->allreduce_module);
  GPURDMA_RESTORE(comm, iallreduce, base, module->iallreduce, module->iallreduce_module);
  GPURDMA_RESTORE(comm, allreduce_init, base, module->allreduce_init, module->allreduce_init_module);
  (void)comm;
  return OMPI_SUCCESS;
}

static void destruct(gpurdma_module_t *module) {
  if (NULL != module->comm) leave_list(module);
  end_core(module);
  free(module->nodes);
  forget_beneath(module);
}

OBJ_CLASS_INSTANCE(gpurdma_module_t, mca_coll_base_module_t, construct, destruct);

static void make_core(gpurdma_module_t *module, ompi_communicator_t *comm) {
  const gpurdma_comm_info_t info = {
      .rank = ompi_comm_rank(comm),
      .size = ompi_comm_size(comm),
      .name = comm->c_name,
      .nodes = module->nodes,
      .oversubscribed = gpurdma_mca_oversubscribed(),
      .opaque = module,
      .exchange = gpurdma_mca_exchange,
      .exchange_test = gpurdma_mca_exchange_test,
      .exchange_end = gpurdma_mca_exchange_end,
      .broken = broken,
  };
  const int status = gpurdma_comm_create(gpurdma_mca_runtime, &info, &module->core);
  free(module->nodes);
  module->nodes = NULL;
  if (GPURDMA_OK == status) return;
  module->core = NULL;
  gpurdma_mca_log(0, "%s: cannot be set up (%s); every allreduce on it will fail", comm->c_name,
                  gpurdma_status_text(status));
}

static int enable(mca_coll_base_module_t *base, ompi_communicator_t *comm) {
  gpurdma_module_t *module = (gpurdma_module_t *)base;
  GPURDMA_SAVE(comm, allreduce, module->allreduce, module->allreduce_module);
  GPURDMA_SAVE(comm, iallreduce, module->iallreduce, module->iallreduce_module);
  GPURDMA_SAVE(comm, allreduce_init, module->allreduce_init, module->allreduce_init_module);
  if (NULL == module->allreduce || NULL == module->iallreduce) {
    /* An explicit list in --mca coll without a component for these; it is the same list in all processes. */
    gpurdma_mca_log(1, "%s: not active: no component beneath offers allreduce and iallreduce", comm->c_name);
    forget_beneath(module);
    return OMPI_ERR_NOT_AVAILABLE;
  }
  if (NULL == module->allreduce_init) base->coll_allreduce_init = NULL;
  module->comm = comm;
  make_core(module, comm);
  enter_list(module);
  GPURDMA_INSTALL(comm, allreduce, gpurdma_mca_allreduce, base);
  GPURDMA_INSTALL(comm, iallreduce, gpurdma_mca_iallreduce, base);
  if (NULL != module->allreduce_init) GPURDMA_INSTALL(comm, allreduce_init, gpurdma_mca_allreduce_init, base);
  return OMPI_SUCCESS;
}

mca_coll_base_module_t *gpurdma_mca_module_new(uint32_t *nodes) {
  gpurdma_module_t *module = OBJ_NEW(gpurdma_module_t);
  if (NULL == module) {
    free(nodes);
    return NULL;
  }
  module->nodes = nodes;
  module->super.coll_module_enable = enable;
  module->super.coll_module_disable = disable;
  module->super.coll_allreduce = gpurdma_mca_allreduce;
  module->super.coll_iallreduce = gpurdma_mca_iallreduce;
  module->super.coll_allreduce_init = gpurdma_mca_allreduce_init;
  return &module->super;
}

void gpurdma_mca_modules_close(void) {
  for (gpurdma_module_t *module = enabled; NULL != module; module = module->next) end_core(module);
}
