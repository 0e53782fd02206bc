/* Counters and times for tools, as MPI_T performance variables coll_gpurdma_<name>. They count from MPI_Init to
 * MPI_Finalize. */
#include "mca/gpurdma_mca.h"

static int read_counter(const struct mca_base_pvar_t *pvar, void *value, void *object) {
  (void)object;
  *(unsigned long long *)value = gpurdma_counter_read(gpurdma_mca_runtime, (size_t)(uintptr_t)pvar->ctx);
  return OPAL_SUCCESS;
}

void gpurdma_mca_pvars_register(void) {
  const gpurdma_counter_t *counters = NULL;
  const size_t count = gpurdma_counters(&counters);
  for (size_t index = 0; index < count; ++index)
    (void)mca_base_component_pvar_register(&mca_coll_gpurdma_component.collm_version, counters[index].name,
                                           counters[index].help, OPAL_INFO_LVL_4, MPI_T_PVAR_CLASS_COUNTER,
                                           MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MPI_T_BIND_NO_OBJECT,
                                           MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, read_counter,
                                           NULL, NULL, (void *)(uintptr_t)index);
}
