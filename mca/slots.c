/* What Open MPI calls: for each collective a blocking, a nonblocking and a persistent function, all made from the list
 * in collectives.h.
 *
 * A call whose buffers are host memory goes beneath as it came. One with device memory goes there with stand-ins. */
#include "mca/gpurdma_mca.h"

static bool on_gpu(gpurdma_places_t places) { return places.send || places.receive; }

#define KEEP(name, form) \
  { .collective = GPURDMA_##name, GPURDMA_KEEP_##form.comm = comm }

#define DEFINE(name, form, sent, received)                                                                           \
  static int pass_##name(gpurdma_module_t *module, const gpurdma_call_t *call) {                                     \
    return module->beneath.name(GPURDMA_PASS_##form(call) call->comm, module->beneath.name##_module);                \
  }                                                                                                                  \
  static int pass_i##name(gpurdma_module_t *module, const gpurdma_call_t *call, ompi_request_t **request) {          \
    return module->beneath.i##name(GPURDMA_PASS_##form(call) call->comm, request, module->beneath.i##name##_module); \
  }                                                                                                                  \
  static int pass_##name##_init(gpurdma_module_t *module, const gpurdma_call_t *call, ompi_info_t *info,             \
                                ompi_request_t **request) {                                                          \
    return module->beneath.name##_init(GPURDMA_PASS_##form(call) call->comm, info, request,                          \
                                       module->beneath.name##_init_module);                                          \
  }                                                                                                                  \
  GPURDMA_BLOCKING(gpurdma_mca_slot_##name, form) {                                                                  \
    gpurdma_module_t *module = (gpurdma_module_t *)base;                                                             \
    const gpurdma_call_t call = KEEP(name, form);                                                                    \
    const gpurdma_places_t places = gpurdma_mca_places(&call);                                                       \
    return on_gpu(places) ? gpurdma_mca_staged_run(module, &call, places) : pass_##name(module, &call);              \
  }                                                                                                                  \
  GPURDMA_NONBLOCKING(gpurdma_mca_slot_i##name, form) {                                                              \
    gpurdma_module_t *module = (gpurdma_module_t *)base;                                                             \
    const gpurdma_call_t call = KEEP(name, form);                                                                    \
    const gpurdma_places_t places = gpurdma_mca_places(&call);                                                       \
    if (on_gpu(places) || gpurdma_mca_chain_needed(module))                                                          \
      return gpurdma_mca_chain_nonblocking(module, &call, places, request);                                          \
    return pass_i##name(module, &call, request);                                                                     \
  }                                                                                                                  \
  GPURDMA_PERSISTENT(gpurdma_mca_slot_##name##_init, form) {                                                         \
    gpurdma_module_t *module = (gpurdma_module_t *)base;                                                             \
    const gpurdma_call_t call = KEEP(name, form);                                                                    \
    const gpurdma_places_t places = gpurdma_mca_places(&call);                                                       \
    gpurdma_mca_chain_settle(module);                                                                                \
    if (on_gpu(places)) return gpurdma_mca_chain_persistent(module, &call, places, info, request);                   \
    return pass_##name##_init(module, &call, info, request);                                                         \
  }
GPURDMA_COLLECTIVES(DEFINE)

/* MPI_Reduce_local knows no communicator: Open MPI sends all of them by way of MPI_COMM_SELF. */
static int pass_reduce_local(gpurdma_module_t *module, const gpurdma_call_t *call) {
  return module->beneath.reduce_local(call->send.address, call->receive.address, call->receive.count,
                                      call->receive.type, call->op, module->beneath.reduce_local_module);
}

int gpurdma_mca_slot_reduce_local(const void *send, void *receive, gpurdma_count_t count, ompi_datatype_t *type,
                                  ompi_op_t *op, mca_coll_base_module_t *base) {
  gpurdma_module_t *module = (gpurdma_module_t *)base;
  const gpurdma_call_t call = {.collective = GPURDMA_reduce_local, GPURDMA_KEEP_reduction.comm = module->comm};
  const gpurdma_places_t places = gpurdma_mca_places(&call);
  return on_gpu(places) ? gpurdma_mca_staged_run(module, &call, places) : pass_reduce_local(module, &call);
}

const gpurdma_passing_t gpurdma_mca_pass[] = {
#define PASS(name, form, sent, received) [GPURDMA_##name] = {pass_##name, pass_i##name, pass_##name##_init},
    GPURDMA_COLLECTIVES(PASS)[GPURDMA_reduce_local] = {.blocking = pass_reduce_local},
};
