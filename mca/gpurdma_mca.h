/* The Open MPI component: what its files share.
 *
 *   component.c   what Open MPI loads: register, open, close, one query per communicator
 *   settings.c    the MCA variables                       pvars.c   counters and times for MPI_T
 *   activation.c  is gpurdma active on a communicator?    module.c  one object per communicator where it is
 *   allreduce.c   the collectives: ours, or beneath       types.c   MPI's ops and types to gpurdma's numbers
 *   request.c     requests of nonblocking and persistent collectives     hold.c  what such requests beneath use
 *   exchange.c    addresses between processes             host.c    logging and progress
 *
 * and, where operands may lie on GPUs, for every collective that the component beneath runs:
 *
 *   collectives.h the list of all, and what their calls look like     slots.c    a function for each
 *   buffers.c     which memory each uses                  layout.c    which bytes a datatype touches
 *   staging.c     host memory in place of a GPU's         chain.c     copies and operations, one after another
 *
 * "Beneath" is the component that would have run without us: whatever gpurdma does not run itself goes there. */
#ifndef GPURDMA_MCA_H
#define GPURDMA_MCA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpurdma.h"
#include "mca/collectives.h"
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
/* How often operations beneath that are waited for need the progress callback: as host.set_progress. */
void gpurdma_mca_progress_chains(int level);
/* Advances everything once, for loops that wait. */
void gpurdma_mca_advance(void);
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
 * NULL: not active; otherwise the key of each rank, as gpurdma_comm_info_t wants them, for the caller to free. */
uint64_t *gpurdma_mca_active(ompi_communicator_t *comm);

/* ---- collectives: what all kinds of call share ---- */

enum gpurdma_collective {
#define NUMBER(name, form, send, receive) GPURDMA_##name,
  GPURDMA_COLLECTIVES(NUMBER)
#undef NUMBER
      GPURDMA_reduce_local
};

/* Set is what the form of the collective has, see collectives.h. */
typedef struct gpurdma_buffer {
  void *address; /* as the caller gave it: MPI_IN_PLACE too */
  gpurdma_count_t count;
  ompi_datatype_t *type;
  gpurdma_counts_t counts;
  gpurdma_displacements_t displacements;
  gpurdma_far_displacements_t far_displacements;
  ompi_datatype_t *const *types;
} gpurdma_buffer_t;

typedef struct gpurdma_call {
  enum gpurdma_collective collective;
  gpurdma_buffer_t send, receive; /* a reduction's are described alike */
  int root;
  ompi_op_t *op; /* NULL: it has none */
  ompi_communicator_t *comm;
} gpurdma_call_t;

/* ---- module.c ---- */

/* What is beneath, for each collective the three kinds of call; and reduce_local. */
typedef struct gpurdma_beneath {
#define SLOT(name)                                                \
  __typeof__(((mca_coll_base_comm_coll_t *)0)->coll_##name) name; \
  mca_coll_base_module_t *name##_module;
#define SLOTS(name, form, send, receive) SLOT(name) SLOT(i##name) SLOT(name##_init)
  GPURDMA_COLLECTIVES(SLOTS)
  SLOT(reduce_local)
#undef SLOTS
#undef SLOT
} gpurdma_beneath_t;

struct gpurdma_chain;

typedef struct gpurdma_module {
  mca_coll_base_module_t super;
  /* Within a series Open MPI appends to `super`, and its constructor clears as much as it knows of. */
  void *spare[32];
  struct gpurdma_module *next, **link; /* in the list of enabled modules: the next one, and what points here */
  ompi_communicator_t *comm;           /* NULL until enabled, and again once disabled */
  bool active;                         /* predefined ops on predefined types run in gpurdma */
  uint64_t *keys;                      /* of each rank; NULL once handed to the core */
  gpurdma_comm_t *core;                /* NULL where active: could not be made; every call fails then */
  gpurdma_beneath_t beneath;
  /* Nonblocking operations that wait for their copies, or behind such: see chain.c. */
  struct gpurdma_chain *_Atomic queue;
  struct gpurdma_chain *queue_end;
  bool starting; /* a thread starts what is at the head */
} gpurdma_module_t;
OBJ_CLASS_DECLARATION(gpurdma_module_t);

/* Ends what communicators that were never freed still hold of the runtime. */
void gpurdma_mca_modules_close(void);
/* Takes `keys`, what gpurdma_mca_active returned; NULL: not active, and device memory is all that it is for. */
mca_coll_base_module_t *gpurdma_mca_module_new(uint64_t *keys);

/* ---- component.c ---- */

/* Whether operands may lie on GPUs here, so that every collective is looked after. */
extern bool gpurdma_mca_stages;

/* ---- slots.c: what Open MPI calls ---- */

#define GPURDMA_BLOCKING(name, form) \
  int name(GPURDMA_PARAMETERS_##form ompi_communicator_t *comm, mca_coll_base_module_t *base)
#define GPURDMA_NONBLOCKING(name, form) \
  int name(GPURDMA_PARAMETERS_##form ompi_communicator_t *comm, ompi_request_t **request, mca_coll_base_module_t *base)
#define GPURDMA_PERSISTENT(name, form)                                                                       \
  int name(GPURDMA_PARAMETERS_##form ompi_communicator_t *comm, ompi_info_t *info, ompi_request_t **request, \
           mca_coll_base_module_t *base)

#define DECLARE(name, form, send, receive)             \
  GPURDMA_BLOCKING(gpurdma_mca_slot_##name, form);     \
  GPURDMA_NONBLOCKING(gpurdma_mca_slot_i##name, form); \
  GPURDMA_PERSISTENT(gpurdma_mca_slot_##name##_init, form);
GPURDMA_COLLECTIVES(DECLARE)
#undef DECLARE
int gpurdma_mca_slot_reduce_local(const void *send, void *receive, gpurdma_count_t count, ompi_datatype_t *type,
                                  ompi_op_t *op, mca_coll_base_module_t *base);

/* The same call, beneath. */
typedef struct gpurdma_passing {
  int (*blocking)(gpurdma_module_t *module, const gpurdma_call_t *call);
  int (*nonblocking)(gpurdma_module_t *module, const gpurdma_call_t *call, ompi_request_t **request);
  int (*persistent)(gpurdma_module_t *module, const gpurdma_call_t *call, ompi_info_t *info, ompi_request_t **request);
} gpurdma_passing_t;
extern const gpurdma_passing_t gpurdma_mca_pass[];

/* ---- layout.c ---- */

typedef struct gpurdma_piece {
  ptrdiff_t offset; /* of the first row, in bytes from the buffer's address */
  size_t width, rows;
  ptrdiff_t pitch;
} gpurdma_piece_t;

typedef struct gpurdma_layout { /* zeros: nothing */
  gpurdma_piece_t *pieces;
  size_t count, capacity;
} gpurdma_layout_t;

typedef struct gpurdma_span {
  ptrdiff_t low, high; /* from the first byte to behind the last one */
} gpurdma_span_t;

/* Adds what `count` elements at an offset touch. False: no memory. */
bool gpurdma_mca_layout_add(gpurdma_layout_t *layout, ptrdiff_t offset, size_t count, const ompi_datatype_t *type);
void gpurdma_mca_layout_free(gpurdma_layout_t *layout);
/* Of a layout that is not empty. */
gpurdma_span_t gpurdma_mca_layout_span(const gpurdma_layout_t *layout);

/* ---- buffers.c ---- */

typedef struct gpurdma_places {
  bool send, receive; /* this process uses the buffer, and it lies on a GPU */
} gpurdma_places_t;

gpurdma_places_t gpurdma_mca_places(const gpurdma_call_t *call);
/* What is read of the send buffer; what is read of the receive buffer in place, or must keep its value where nothing
 * comes; and what is written of it. False: no memory. */
bool gpurdma_mca_lay_out_send(const gpurdma_call_t *call, gpurdma_layout_t *layout);
bool gpurdma_mca_lay_out_receive(const gpurdma_call_t *call, gpurdma_layout_t *layout);
bool gpurdma_mca_lay_out_written(const gpurdma_call_t *call, gpurdma_layout_t *layout);
/* Makes copies of the call's arrays, which the caller may change when its function has returned (Open MPI's Fortran
 * bindings do); *arrays is to be given to free(). False: no memory. */
bool gpurdma_mca_call_keep(gpurdma_call_t *call, void **arrays);
/* Keeps op and types alive. */
void gpurdma_mca_call_retain(const gpurdma_call_t *call);
void gpurdma_mca_call_release(const gpurdma_call_t *call);

/* ---- staging.c ---- */

/* A call whose buffers on GPUs have stand-ins in host memory. */
typedef struct gpurdma_staged {
  gpurdma_call_t call; /* with the addresses of the stand-ins */
  struct gpurdma_stand_in {
    void *block;
    size_t bytes;
  } send, receive;
  gpurdma_rows_t *down, *up; /* one array */
  size_t down_count, up_count;
} gpurdma_staged_t;

/* Takes stand-ins; at the entry of a call. Returns an MPI error, and leaves nothing behind then. */
int gpurdma_mca_staged_make(const gpurdma_call_t *call, gpurdma_places_t places, gpurdma_staged_t *staged);
void gpurdma_mca_staged_end(gpurdma_staged_t *staged);
/* Runs a blocking call with stand-ins. */
int gpurdma_mca_staged_run(gpurdma_module_t *module, const gpurdma_call_t *call, gpurdma_places_t places);

/* ---- chain.c ---- */

/* Whether a nonblocking call must wait behind others. */
bool gpurdma_mca_chain_needed(const gpurdma_module_t *module);
int gpurdma_mca_chain_nonblocking(gpurdma_module_t *module, const gpurdma_call_t *call, gpurdma_places_t places,
                                  ompi_request_t **request);
int gpurdma_mca_chain_persistent(gpurdma_module_t *module, const gpurdma_call_t *call, gpurdma_places_t places,
                                 ompi_info_t *info, ompi_request_t **request);
/* Progresses until no nonblocking operation waits to be started: it has its place in the order beneath then. */
void gpurdma_mca_chain_settle(gpurdma_module_t *module);
int gpurdma_mca_chain_start(struct gpurdma_chain *chain);
/* Of a persistent request that is not active. */
void gpurdma_mca_chain_free(struct gpurdma_chain *chain);
/* Goes on with those whose operation beneath has ended; from progress. */
int gpurdma_mca_chain_progress(void);

/* ---- allreduce.c ---- */

GPURDMA_BLOCKING(gpurdma_mca_allreduce, reduction);
GPURDMA_NONBLOCKING(gpurdma_mca_iallreduce, reduction);
GPURDMA_PERSISTENT(gpurdma_mca_allreduce_init, reduction);

/* ---- request.c ---- */

typedef struct gpurdma_request {
  ompi_coll_base_nbc_request_t super; /* MPI's binding writes into it after the collective returned */
  void *spare[8];                     /* see gpurdma_module */
  struct gpurdma_request *next;       /* in the list that it is in */
  ompi_communicator_t *comm;          /* retained: MPI_Comm_free may come before the operation ended */
  gpurdma_persistent_t *persistent;   /* NULL for a nonblocking operation, and for what runs beneath */
  struct gpurdma_chain *chain;        /* persistent, and run beneath with stand-ins; else NULL */
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
/* The same, with an MPI error. */
void gpurdma_mca_request_complete(gpurdma_request_t *request, int error);
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
