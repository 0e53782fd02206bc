/* One module per communicator on which gpurdma is active; and on every communicator of a process whose operands may lie
 * on GPUs, so that nothing beneath is ever given device memory.
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

/* X(slot, our function) for allreduce, which gpurdma runs itself where it is active. */
#define ALLREDUCE(X)                    \
  X(allreduce, gpurdma_mca_allreduce)   \
  X(iallreduce, gpurdma_mca_iallreduce) \
  X(allreduce_init, gpurdma_mca_allreduce_init)

static void forget_beneath(gpurdma_module_t *module) {
#define FORGET(slot) GPURDMA_FORGET(module->beneath.slot##_module);
#define FORGET_ALL(name, form, send, receive) FORGET(name) FORGET(i##name) FORGET(name##_init)
  GPURDMA_COLLECTIVES(FORGET_ALL)
  FORGET(reduce_local)
}

static int disable(mca_coll_base_module_t *base, ompi_communicator_t *comm) {
  gpurdma_module_t *module = (gpurdma_module_t *)base;
  if (NULL == module->comm) return OMPI_SUCCESS; /* 4.1 and 5.0 call this once for each function */
  leave_list(module);
  end_core(module);
  gpurdma_mca_exchange_sweep();
  module->comm = NULL;
#define RESTORE(slot)               \
  if (NULL != module->beneath.slot) \
    GPURDMA_RESTORE(comm, slot, base, module->beneath.slot, module->beneath.slot##_module);
#define RESTORE_ALL(name, form, send, receive) RESTORE(name) RESTORE(i##name) RESTORE(name##_init)
  GPURDMA_COLLECTIVES(RESTORE_ALL)
  RESTORE(reduce_local)
  (void)comm;
  return OMPI_SUCCESS;
}

static void destruct(gpurdma_module_t *module) {
  if (NULL != module->comm) leave_list(module);
  end_core(module);
  free(module->keys);
  forget_beneath(module);
}

OBJ_CLASS_INSTANCE(gpurdma_module_t, mca_coll_base_module_t, construct, destruct);

static void make_core(gpurdma_module_t *module, ompi_communicator_t *comm) {
  const gpurdma_comm_info_t info = {
      .rank = ompi_comm_rank(comm),
      .size = ompi_comm_size(comm),
      .name = comm->c_name,
      .keys = module->keys,
      .oversubscribed = gpurdma_mca_oversubscribed(),
      .opaque = module,
      .exchange = gpurdma_mca_exchange,
      .exchange_test = gpurdma_mca_exchange_test,
      .exchange_end = gpurdma_mca_exchange_end,
      .broken = broken,
  };
  const int status = gpurdma_comm_create(gpurdma_mca_runtime, &info, &module->core);
  free(module->keys);
  module->keys = NULL;
  if (GPURDMA_OK == status) return;
  module->core = NULL;
  gpurdma_mca_log(0, "%s: cannot be set up (%s); every allreduce on it will fail", comm->c_name,
                  gpurdma_status_text(status));
}

/* Where nothing is beneath, there is nothing of ours either. */
#define REMEMBER(slot, function)                                                 \
  GPURDMA_SAVE(comm, slot, module->beneath.slot, module->beneath.slot##_module); \
  if (NULL == module->beneath.slot) module->super.coll_##slot = NULL;
#define PUT(slot, function) \
  if (NULL != module->beneath.slot) GPURDMA_INSTALL(comm, slot, function, &module->super);
#define OFFER(slot, function) module->super.coll_##slot = function;

/* The same for all, allreduce included. */
#define STAGED(X) GPURDMA_COLLECTIVES(X##_THREE) X(reduce_local, gpurdma_mca_slot_reduce_local)
#define REMEMBER_THREE(name, form, send, receive) \
  REMEMBER(name, gpurdma_mca_slot_##name)         \
  REMEMBER(i##name, gpurdma_mca_slot_i##name)     \
  REMEMBER(name##_init, gpurdma_mca_slot_##name##_init)
#define PUT_THREE(name, form, send, receive) \
  PUT(name, gpurdma_mca_slot_##name)         \
  PUT(i##name, gpurdma_mca_slot_i##name)     \
  PUT(name##_init, gpurdma_mca_slot_##name##_init)
#define OFFER_THREE(name, form, send, receive) \
  OFFER(name, gpurdma_mca_slot_##name)         \
  OFFER(i##name, gpurdma_mca_slot_i##name)     \
  OFFER(name##_init, gpurdma_mca_slot_##name##_init)

static void remember_beneath(gpurdma_module_t *module, ompi_communicator_t *comm) {
  if (gpurdma_mca_stages) {
    STAGED(REMEMBER)
  } else {
    ALLREDUCE(REMEMBER)
  }
}

static void install(gpurdma_module_t *module, ompi_communicator_t *comm) {
  (void)comm;
  if (gpurdma_mca_stages) {
    STAGED(PUT)
  }
  ALLREDUCE(PUT)
}

static int enable(mca_coll_base_module_t *base, ompi_communicator_t *comm) {
  gpurdma_module_t *module = (gpurdma_module_t *)base;
  remember_beneath(module, comm);
  if (module->active && (NULL == module->beneath.allreduce || NULL == module->beneath.iallreduce)) {
    /* An explicit list in --mca coll without a component for these; it is the same list in all processes. */
    gpurdma_mca_log(1, "%s: not active: no component beneath offers allreduce and iallreduce", comm->c_name);
    module->active = false;
    if (!gpurdma_mca_stages) {
      forget_beneath(module);
      return OMPI_ERR_NOT_AVAILABLE;
    }
  }
  module->comm = comm;
  if (module->active) make_core(module, comm);
  enter_list(module);
  install(module, comm);
  return OMPI_SUCCESS;
}

mca_coll_base_module_t *gpurdma_mca_module_new(uint64_t *keys) {
  gpurdma_module_t *module = OBJ_NEW(gpurdma_module_t);
  if (NULL == module) {
    free(keys);
    return NULL;
  }
  module->keys = keys;
  module->active = NULL != keys;
  module->super.coll_module_enable = enable;
  module->super.coll_module_disable = disable;
  if (gpurdma_mca_stages) {
    STAGED(OFFER)
  }
  ALLREDUCE(OFFER)
  return &module->super;
}

void gpurdma_mca_modules_close(void) {
  for (gpurdma_module_t *module = enabled; NULL != module; module = module->next) end_core(module);
}
