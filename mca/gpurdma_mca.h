/* The Open MPI component: what its files share.
 *
 *   component.c   what Open MPI loads: register, open, close, one query per communicator
 *   settings.c    the MCA variables                       pvars.c   counters and times for MPI_T
 *   activation.c  is gpurdma active on a communicator?    module.c  one object per communicator where it is
 *   allreduce.c   the collectives: ours, or beneath       types.c   MPI's ops and types to gpurdma's numbers
 *   request.c     requests of nonblocking and persistent collectives     hold.c  what such requests beneath use
 *   exchange.c    addresses between processes             host.c    logging and progress
 *
 * "Beneath" is the component that would have run without us: whatever gpurdma does not run itself goes there. */
#ifndef GPURDMA_MCA_H
#define GPURDMA_MCA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpurdma.h"
#include "mca/compat.h"
#include "mca/numbers.h"

#define GPURDMA_VERSION_MAJOR 0
#define GPURDMA_VERSION_MINOR 1
#define GPURDMA_VERSION_RELEASE 0

extern mca_coll_base_component_t mca_coll_gpurdma_component;

/* ---- settings.c ---- */

typedef struct gpurdma_mca_settings {
  gpurdma_settings_t core; /* what the runtime gets; filled by gpurdma_mca_settings_check */
  int summary;
  int test_unable;
} gpurdma_mca_settings_t;

extern gpurdma_mca_settings_t gpurdma_mca_settings;

/* Registers the MCA variables. */
void gpurdma_mca_settings_register(void);
/* False: a value is bad, and `message` names it and what is allowed. */
bool gpurdma_mca_settings_check(char *message, size_t size);

/* ---- component.c ---- */

/* The one runtime of the process; NULL before open, after close, and where this process is not able to run gpurdma. */
extern gpurdma_runtime_t *gpurdma_mca_runtime;

/* ---- host.c ---- */

/* The callbacks that the runtime gets. */
extern const gpurdma_host_t gpurdma_mca_host;

/* Prints a line where the verbosity asks for `level` (0 error, 1 warn, 2 info, 3 debug). */
void gpurdma_mca_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether this node has more processes of the job than cores, or the launcher says so. */
bool gpurdma_mca_oversubscribed(void);
/* Takes the progress callback out. */
void gpurdma_mca_host_close(void);

/* ---- types.c ---- */

/* Looks up all predefined ops and types once; after open, since 5.0 makes them later. */
void gpurdma_mca_types_open(void);
/* True: the numbers of a predefined op and type. False: one of the two is not predefined or not ours. Costs a few ns.
 */
bool gpurdma_mca_numbers(const ompi_op_t *op, const ompi_datatype_t *type, int *op_number, int *type_number);

/* ---- activation.c ---- */

void gpurdma_mca_activation_open(void);
void gpurdma_mca_activation_close(void);
/* Publishes the key of this process; before MPI_Init's fence, that is at open. */
int gpurdma_mca_publish(uint64_t key);
/* Whether gpurdma is active on a communicator: all members come to the same answer. Prints the line that says why.
 * NULL: not active; otherwise the node of each rank, as gpurdma_comm_info_t wants it, for the caller to free. */
uint32_t *gpurdma_mca_active(ompi_communicator_t *comm);

/* ---- module.c ---- */

typedef struct gpurdma_module {
  mca_coll_base_module_t super;
  /* Within a series Open MPI appends to `super`, and its constructor clears as much as it knows of. */
  void *spare[32];
  struct gpurdma_module *next, **link; /* in the list of enabled modules: the next one, and what points here */
  ompi_communicator_t *comm;           /* NULL until enabled, and again once disabled */
  uint32_t *nodes;                     /* of each rank; NULL once handed to the core */
  gpurdma_comm_t *core;                /* NULL: could not be made; every call fails then */

  /* Beneath. */
  mca_coll_base_module_allreduce_fn_t allreduce;
  mca_coll_base_module_t *allreduce_module;
  mca_coll_base_module_iallreduce_fn_t iallreduce;
  mca_coll_base_module_t *iallreduce_module;
  mca_coll_base_module_allreduce_init_fn_t allreduce_init;
  mca_coll_base_module_t *allreduce_init_module;
} gpurdma_module_t;
OBJ_CLASS_DECLARATION(gpurdma_module_t);

/* Ends what communicators that were never freed still hold of the runtime. */
void gpurdma_mca_modules_close(void);
/* Takes `nodes`, what gpurdma_mca_active returned. */
mca_coll_base_module_t *gpurdma_mca_module_new(uint32_t *nodes);

/* ---- allreduce.c ---- */

int gpurdma_mca_allreduce(const void *in, void *out, gpurdma_count_t count, ompi_datatype_t *type, ompi_op_t *op,
                          ompi_communicator_t *comm, mca_coll_base_module_t *module);
int gpurdma_mca_iallreduce(const void *in, void *out, gpurdma_count_t count, ompi_datatype_t *type, ompi_op_t *op,
                           ompi_communicator_t *comm, ompi_request_t **request, mca_coll_base_module_t *module);
int gpurdma_mca_allreduce_init(const void *in, void *out, gpurdma_count_t count, ompi_datatype_t *type, ompi_op_t *op,
                               ompi_communicator_t *comm, ompi_info_t *info, ompi_request_t **request,
                               mca_coll_base_module_t *module);

/* ---- request.c ---- */

typedef struct gpurdma_request {
  ompi_coll_base_nbc_request_t super; /* MPI's binding writes into it after the collective returned */
  void *spare[8];                     /* see gpurdma_module */
  struct gpurdma_request *next;       /* in the list that it is in */
  ompi_communicator_t *comm;          /* retained: MPI_Comm_free may come before the operation ended */
  gpurdma_persistent_t *persistent;   /* NULL for a nonblocking operation */
  atomic_int phase;
} gpurdma_request_t;
OBJ_CLASS_DECLARATION(gpurdma_request_t);

void gpurdma_mca_requests_close(void);
/* A request that is active (nonblocking) or complete at birth (persistent). NULL: no memory. */
gpurdma_request_t *gpurdma_mca_request_new(ompi_communicator_t *comm, bool persistent);
/* Gives back one that was never handed out. */
void gpurdma_mca_request_drop(gpurdma_request_t *request);
/* host.completed: `cookie` is the request. */
void gpurdma_mca_completed(void *cookie, int status);
/* Frees persistent requests that the application freed while they were active and that have ended since. */
void gpurdma_mca_requests_sweep(void);
/* The MPI error for a status of gpurdma's: MPI_ERR_NO_MEM, MPI_ERR_PROC_FAILED and MPI_ERR_REVOKED (5.0 and later, else
 * MPI_ERR_OTHER), MPI_ERR_INTERN, and MPI_ERR_OTHER for a deadline, a closed communicator and the like. */
int gpurdma_mca_error(int status, ompi_communicator_t *comm);

/* ---- hold.c ---- */

void gpurdma_mca_hold_open(void);
void gpurdma_mca_hold_close(void);
/* Keeps communicator, op and type alive as long as a request of the component beneath. */
void gpurdma_mca_hold(ompi_request_t *request, ompi_communicator_t *comm, ompi_op_t *op, ompi_datatype_t *type);

/* ---- exchange.c ---- */

void *gpurdma_mca_exchange(void *module, int rank, const void *mine, size_t bytes, void *theirs, size_t capacity);
int gpurdma_mca_exchange_test(void *exchange, size_t *received);
void gpurdma_mca_exchange_end(void *exchange);
/* Frees the messages of exchanges that ended. Where no lock of gpurdma is held. */
void gpurdma_mca_exchange_sweep(void);
void gpurdma_mca_exchange_closing(void); /* the message layer is gone */
void gpurdma_mca_exchange_close(void);

/* ---- pvars.c ---- */

void gpurdma_mca_pvars_register(void);

#endif
