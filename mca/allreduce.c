/* Allreduce in its three forms: predefined ops on predefined types run in gpurdma where it is active, everything else
 * beneath.
 *
 * Which of the two runs follows from op, type and count alone, which MPI makes equal on all ranks. */
#include "mca/gpurdma_mca.h"

/* MPI_IN_PLACE and equal buffers mean the same. */
static const void *input(const void *in, const void *out) { return MPI_IN_PLACE == in ? out : in; }

GPURDMA_BLOCKING(gpurdma_mca_allreduce, reduction) {
  gpurdma_module_t *module = (gpurdma_module_t *)base;
  int op_number, type_number;
  if (module->active && gpurdma_mca_numbers(op, type, &op_number, &type_number)) {
    if (0 == count) return OMPI_SUCCESS;
    if (NULL == module->core) return gpurdma_mca_error(GPURDMA_NO_MEMORY, comm);
    const int status =
        gpurdma_allreduce(module->core, input(send, receive), receive, (size_t)count, op_number, type_number);
    if (GPURDMA_UNSUPPORTED != status) return gpurdma_mca_error(status, comm);
  }
  return gpurdma_mca_slot_allreduce(send, receive, count, type, op, comm, base);
}

/* Open MPI itself calls this from inside its progress engine (to agree on a communicator's id): nothing here may wait.
 */
GPURDMA_NONBLOCKING(gpurdma_mca_iallreduce, reduction) {
  gpurdma_module_t *module = (gpurdma_module_t *)base;
  int op_number, type_number;
  if (module->active && gpurdma_mca_numbers(op, type, &op_number, &type_number)) {
    if (NULL == module->core) return gpurdma_mca_error(GPURDMA_NO_MEMORY, comm);
    gpurdma_request_t *own = gpurdma_mca_request_new(comm, false);
    if (NULL == own) return gpurdma_mca_error(GPURDMA_NO_MEMORY, comm);
    const int status =
        gpurdma_iallreduce(module->core, input(send, receive), receive, (size_t)count, op_number, type_number, own);
    if (GPURDMA_OK == status) {
      *request = &own->super.super;
      return OMPI_SUCCESS;
    }
    gpurdma_mca_request_drop(own);
    if (GPURDMA_UNSUPPORTED != status) return gpurdma_mca_error(status, comm);
  }
  const int error = gpurdma_mca_slot_iallreduce(send, receive, count, type, op, comm, request, base);
  if (OMPI_SUCCESS == error && module->active) gpurdma_mca_hold(*request, comm, op, type);
  return error;
}

GPURDMA_PERSISTENT(gpurdma_mca_allreduce_init, reduction) {
  gpurdma_module_t *module = (gpurdma_module_t *)base;
  int op_number, type_number;
  if (module->active && gpurdma_mca_numbers(op, type, &op_number, &type_number)) {
    if (NULL == module->core) return gpurdma_mca_error(GPURDMA_NO_MEMORY, comm);
    gpurdma_request_t *own = gpurdma_mca_request_new(comm, true);
    if (NULL == own) return gpurdma_mca_error(GPURDMA_NO_MEMORY, comm);
    const int status = gpurdma_allreduce_init(module->core, input(send, receive), receive, (size_t)count, op_number,
                                              type_number, own, &own->persistent);
    if (GPURDMA_OK == status) {
      *request = &own->super.super;
      return OMPI_SUCCESS;
    }
    own->persistent = NULL;
    gpurdma_mca_request_drop(own);
    if (GPURDMA_UNSUPPORTED != status) return gpurdma_mca_error(status, comm);
  }
  const int error = gpurdma_mca_slot_allreduce_init(send, receive, count, type, op, comm, info, request, base);
  if (OMPI_SUCCESS == error && module->active) gpurdma_mca_hold(*request, comm, op, type);
  return error;
}
