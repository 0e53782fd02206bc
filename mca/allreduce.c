/* Allreduce in its three forms: predefined ops on predefined types run in gpurdma, everything else beneath.
 *
 * Which of the two runs follows from op, type and count alone, which MPI makes equal on all ranks. */
#include "mca/gpurdma_mca.h"

/* MPI_IN_PLACE and equal buffers mean the same. */
static const void *input(const void *in, const void *out) { return MPI_IN_PLACE == in ? out : in; }

int gpurdma_mca_allreduce(const void *in, void *out, gpurdma_count_t count, ompi_datatype_t *type, ompi_op_t *op,
                          ompi_communicator_t *comm, mca_coll_base_module_t *base) {
  gpurdma_module_t *module = (gpurdma_module_t *)base;
  int op_number, type_number;
  if (gpurdma_mca_numbers(op, type, &op_number, &type_number)) {
    if (0 == count) return OMPI_SUCCESS;
    if (NULL == module->core) return gpurdma_mca_error(GPURDMA_NO_MEMORY, comm);
    const int status = gpurdma_allreduce(module->core, input(in, out), out, (size_t)count, op_number, type_number);
    if (GPURDMA_UNSUPPORTED != status) return gpurdma_mca_error(status, comm);
  }
  return module->allreduce(in, out, count, type, op, comm, module->allreduce_module);
}

/* Open MPI itself calls this from inside its progress engine (to agree on a communicator's id): nothing here may wait.
 */
int gpurdma_mca_iallreduce(const void *in, void *out, gpurdma_count_t count, ompi_datatype_t *type, ompi_op_t *op,
                           ompi_communicator_t *comm, ompi_request_t **request, mca_coll_base_module_t *base) {
  gpurdma_module_t *module = (gpurdma_module_t *)base;
  int op_number, type_number;
  if (gpurdma_mca_numbers(op, type, &op_number, &type_number)) {
    if (NULL == module->core) return gpurdma_mca_error(GPURDMA_NO_MEMORY, comm);
    gpurdma_request_t *own = gpurdma_mca_request_new(comm, false);
    if (NULL == own) return gpurdma_mca_error(GPURDMA_NO_MEMORY, comm);
    const int status =
        gpurdma_iallreduce(module->core, input(in, out), out, (size_t)count, op_number, type_number, own);
    if (GPURDMA_OK == status) {
      *request = &own->super.super;
      return OMPI_SUCCESS;
    }
    gpurdma_mca_request_drop(own);
    if (GPURDMA_UNSUPPORTED != status) return gpurdma_mca_error(status, comm);
  }
  const int error = module->iallreduce(in, out, count, type, op, comm, request, module->iallreduce_module);
  if (OMPI_SUCCESS == error) gpurdma_mca_hold(*request, comm, op, type);
  return error;
}

int gpurdma_mca_allreduce_init(const void *in, void *out, gpurdma_count_t count, ompi_datatype_t *type, ompi_op_t *op,
                               ompi_communicator_t *comm, ompi_info_t *info, ompi_request_t **request,
                               mca_coll_base_module_t *base) {
  gpurdma_module_t *module = (gpurdma_module_t *)base;
  int op_number, type_number;
  if (gpurdma_mca_numbers(op, type, &op_number, &type_number)) {
    if (NULL == module->core) return gpurdma_mca_error(GPURDMA_NO_MEMORY, comm);
    gpurdma_request_t *own = gpurdma_mca_request_new(comm, true);
    if (NULL == own) return gpurdma_mca_error(GPURDMA_NO_MEMORY, comm);
    const int status = gpurdma_allreduce_init(module->core, input(in, out), out, (size_t)count, op_number, type_number,
                                              own, &own->persistent);
    if (GPURDMA_OK == status) {
      *request = &own->super.super;
      return OMPI_SUCCESS;
    }
    own->persistent = NULL;
    gpurdma_mca_request_drop(own);
    if (GPURDMA_UNSUPPORTED != status) return gpurdma_mca_error(status, comm);
  }
  const int error =
      module->allreduce_init(in, out, count, type, op, comm, info, request, module->allreduce_init_module);
  if (OMPI_SUCCESS == error) gpurdma_mca_hold(*request, comm, op, type);
  return error;
}
