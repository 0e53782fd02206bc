/* What the component includes of Open MPI, and every difference between its releases 4.1, 5.0 and 6.0, in one place.
 *
 * In 4.1 and 5.0 the framework copies a module's functions into the communicator after it enabled the module, and
 * counts the references; in 6.0 a module puts its functions there itself and takes them out when it is disabled. Counts
 * are int in 4.1 and 5.0, size_t in 6.0. */
#ifndef GPURDMA_MCA_COMPAT_H
#define GPURDMA_MCA_COMPAT_H

#include <string.h>

#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/datatype/ompi_datatype_internal.h"
#include "ompi/group/group.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/base/coll_base_util.h"
#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/mca.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mca/topo/base/base.h"
#include "ompi/op/op.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "ompi_config.h"
#include "opal/class/opal_hash_table.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/base/base.h"
#include "opal/mca/base/mca_base_framework.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

#if defined(MCA_COLL_BASE_VERSION_3_0_0) /* 6.0 */
#define GPURDMA_COLL_VERSION MCA_COLL_BASE_VERSION_3_0_0
typedef size_t gpurdma_count_t;
#elif defined(MCA_COLL_BASE_VERSION_2_4_0) /* 5.0 */
#define GPURDMA_COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0
typedef int gpurdma_count_t;
#elif defined(MCA_COLL_BASE_VERSION_2_0_0) /* 4.1 */
#define GPURDMA_COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0
typedef int gpurdma_count_t;
#else
#error "this Open MPI has a coll interface that gpurdma does not know"
#endif

/* Arrays of counts and displacements: of int in 4.1 and 5.0, where those of MPI_Neighbor_alltoallw are wider; of either
 * in 6.0. ..._keep makes a copy in `room`, which has GPURDMA_KEPT bytes for each of its n elements. */
#define GPURDMA_KEPT sizeof(MPI_Aint)
#if defined(MCA_COLL_BASE_VERSION_3_0_0)
typedef ompi_count_array_t gpurdma_counts_t;
typedef ompi_disp_array_t gpurdma_displacements_t;
typedef ompi_disp_array_t gpurdma_far_displacements_t;
static inline size_t gpurdma_count_at(gpurdma_counts_t counts, int index) {
  return ompi_count_array_get(counts, (size_t)index);
}
static inline ptrdiff_t gpurdma_displacement_at(gpurdma_displacements_t displacements, int index) {
  return ompi_disp_array_get(displacements, (size_t)index);
}
#define gpurdma_far_displacement_at gpurdma_displacement_at
static inline gpurdma_counts_t gpurdma_counts_keep(gpurdma_counts_t counts, int n, void *room) {
  size_t *kept = room;
  for (int index = 0; index < n; ++index) kept[index] = gpurdma_count_at(counts, index);
  ompi_count_array_init_c(&counts, kept);
  return counts;
}
static inline gpurdma_displacements_t gpurdma_displacements_keep(gpurdma_displacements_t displacements, int n,
                                                                 void *room) {
  ptrdiff_t *kept = room;
  for (int index = 0; index < n; ++index) kept[index] = gpurdma_displacement_at(displacements, index);
  ompi_disp_array_init_c(&displacements, kept);
  return displacements;
}
#define gpurdma_far_displacements_keep gpurdma_displacements_keep
#else
typedef const int *gpurdma_counts_t;
typedef const int *gpurdma_displacements_t;
typedef const MPI_Aint *gpurdma_far_displacements_t;
static inline size_t gpurdma_count_at(gpurdma_counts_t counts, int index) { return (size_t)counts[index]; }
static inline ptrdiff_t gpurdma_displacement_at(gpurdma_displacements_t displacements, int index) {
  return displacements[index];
}
static inline ptrdiff_t gpurdma_far_displacement_at(gpurdma_far_displacements_t displacements, int index) {
  return displacements[index];
}
static inline gpurdma_counts_t gpurdma_counts_keep(gpurdma_counts_t counts, int n, void *room) {
  return memcpy(room, counts, (size_t)n * sizeof *counts);
}
static inline gpurdma_displacements_t gpurdma_displacements_keep(gpurdma_displacements_t displacements, int n,
                                                                 void *room) {
  return memcpy(room, displacements, (size_t)n * sizeof *displacements);
}
static inline gpurdma_far_displacements_t gpurdma_far_displacements_keep(gpurdma_far_displacements_t displacements,
                                                                         int n, void *room) {
  return memcpy(room, displacements, (size_t)n * sizeof *displacements);
}
#endif

/* For one collective of a communicator: remember what is beneath us, put ours in place, put beneath back. */
#if defined(MCA_COLL_BASE_VERSION_3_0_0)
#define GPURDMA_SAVE(comm, name, call, module) MCA_COLL_SAVE_API(comm, name, call, module, "gpurdma")
#define GPURDMA_INSTALL(comm, name, call, module) MCA_COLL_INSTALL_API(comm, name, call, module, "gpurdma")
#define GPURDMA_RESTORE(comm, name, ours, call, module)                                                            \
  do {                                                                                                             \
    if ((comm)->c_coll->coll_##name##_module == (ours)) MCA_COLL_INSTALL_API(comm, name, call, module, "gpurdma"); \
    (module) = NULL;                                                                                               \
  } while (0)
#define GPURDMA_FORGET(module) ((module) = NULL)
#else
#define GPURDMA_SAVE(comm, name, call, module)       \
  do {                                               \
    (call) = (comm)->c_coll->coll_##name;            \
    (module) = (comm)->c_coll->coll_##name##_module; \
    if (NULL != (module)) OBJ_RETAIN(module);        \
  } while (0)
#define GPURDMA_INSTALL(comm, name, call, module) ((void)0)
#define GPURDMA_RESTORE(comm, name, ours, call, module) ((void)0)
#define GPURDMA_FORGET(module)                 \
  do {                                         \
    if (NULL != (module)) OBJ_RELEASE(module); \
    (module) = NULL;                           \
  } while (0)
#endif

/* The modex: values that each process publishes before MPI_Init's fence and others look up. */
#if OMPI_MAJOR_VERSION >= 5
#include "opal/mca/pmix/pmix-internal.h"
#define GPURDMA_MODEX_SCOPE PMIX_GLOBAL
#define GPURDMA_MODEX_UINT64 PMIX_UINT64
#else
#include "opal/mca/pmix/pmix.h"
#define GPURDMA_MODEX_SCOPE OPAL_PMIX_GLOBAL
#define GPURDMA_MODEX_UINT64 OPAL_UINT64
#endif

/* Exported by all three, but each declares some of them only in headers that are not installed. */
extern bool opal_pmix_base_async_modex;  /* MPI_Init has no fence */
extern bool opal_pmix_collect_all_data;  /* the fence carries the data to every node */
extern bool ompi_mpi_yield_when_idle;    /* the launcher found more processes than cores, or the user asked */
extern const char opal_version_string[]; /* of the library that is running, for instance 4.1.4 */
#if defined(HAVE_SHORT_FLOAT) || defined(HAVE_OPAL_SHORT_FLOAT_T)
extern ompi_predefined_datatype_t ompi_mpi_short_float;
#endif

/* 0, or the MPI error when the communicator was revoked or a member failed (ULFM: 5.0 and later). */
static inline int gpurdma_compat_broken(ompi_communicator_t *comm) {
#if OMPI_MAJOR_VERSION >= 5 && OPAL_ENABLE_FT_MPI
  if (ompi_comm_is_revoked(comm)) return MPI_ERR_REVOKED;
  if (ompi_comm_coll_revoked(comm)) return MPI_ERR_PROC_FAILED;
#else
  (void)comm;
#endif
  return 0;
}

/* The MPI error for a process that died. */
#if defined(MPI_ERR_PROC_FAILED)
#define GPURDMA_ERR_PROC_FAILED MPI_ERR_PROC_FAILED
#else
#define GPURDMA_ERR_PROC_FAILED MPI_ERR_OTHER
#endif

#endif
