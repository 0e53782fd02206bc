/* The C boundary of gpurdma: what the Open MPI component (mca/) calls and what it must offer. Knows nothing of MPI's
 * types: a communicator is (rank, size, callbacks), ops and types are the numbers of reduce/types.h.
 *
 * Every function returns one of gpurdma_status unless it says otherwise. Outputs are set only on success. Functions may
 * be called from any thread; callbacks are made without any lock of gpurdma held, save where noted. */
#ifndef GPURDMA_H
#define GPURDMA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpurdma_status { /* the values of gpurdma::Status */
                              GPURDMA_OK = 0,
                              GPURDMA_UNSUPPORTED =
                                  1, /* nothing was sent: run the component beneath; alike on all ranks */
                              GPURDMA_NO_MEMORY = 2,
                              GPURDMA_PEER_LOST = 3,
                              GPURDMA_DEADLINE = 4,
                              GPURDMA_REMOTE = 5,
                              GPURDMA_CLOSED = 6,
                              GPURDMA_INVALID = 7,
                              GPURDMA_TRANSPORT = 8,
                              GPURDMA_GPU = 9
} gpurdma_status_t;

const char *gpurdma_status_text(int status);

/* ---- settings ---- */

typedef enum gpurdma_scope {
  GPURDMA_SCOPE_AUTO = 0,
  GPURDMA_SCOPE_ALWAYS = 1,
  GPURDMA_SCOPE_NEVER = 2
} gpurdma_scope_t;

typedef enum gpurdma_gpu { GPURDMA_GPU_DETECT = 0, GPURDMA_GPU_YES = 1, GPURDMA_GPU_NO = 2 } gpurdma_gpu_t;

typedef enum gpurdma_input_ready {
  GPURDMA_INPUT_READY_DEFAULT_STREAM = 0, /* when what the application has queued on the default stream is done */
  GPURDMA_INPUT_READY_NONE = 1            /* at once: the application has waited itself */
} gpurdma_input_ready_t;

/* How the bytes of operands in device memory reach other processes. */
typedef enum gpurdma_gpu_path {
  GPURDMA_GPU_PATH_AUTO = 0,   /* for each message the best that there is; small operands by mirror */
  GPURDMA_GPU_PATH_MIRROR = 1, /* the whole call works on a copy of the operand in host memory */
  GPURDMA_GPU_PATH_STAGED = 2, /* piece by piece through pinned host memory; reduced on the GPU */
  GPURDMA_GPU_PATH_DIRECT = 3  /* UCX takes the pieces from device memory, where it can; otherwise staged */
} gpurdma_gpu_path_t;

typedef struct gpurdma_settings {
  int priority;           /* among coll components, at most 100; negative: never used */
  int scope;              /* gpurdma_scope_t */
  const char *algorithm;  /* a name of the catalogue forces it; "" or "auto": the table decides */
  size_t piece;           /* bytes in one message; 0: the table decides */
  int depth;              /* scratch slots per neighbour; 0: the table decides */
  int radix;              /* partners of a step plus one, of algorithms that have it; 0: the table decides */
  const char *tuning;     /* rows of a tuning file, which come before the built-in table; "" or NULL: none */
  const char *test_nodes; /* for tests: pretends nodes, in the words of coll/node_spec.h; "" or NULL: the real ones */
  unsigned job_rank;    /* this process's rank in the job: rank 0 warns of what concerns all; test_nodes looks at it */
  size_t shared_memory; /* bytes that other processes of this node may write to; 0: UCX carries all messages */
  int single_copy;      /* 0: no process reads another's memory, as it may for what fits no shared memory */
  int gpu;              /* gpurdma_gpu_t: whether this process could use a GPU; detect: by the device nodes */
  size_t pinned_memory; /* most bytes of pinned host memory that copies of device memory pass through */
  size_t device_memory; /* most bytes of memory on each GPU that gpurdma uses itself */
  int input_ready;      /* gpurdma_input_ready_t: when device memory that is given to a call may be read */
  int gpu_path;         /* gpurdma_gpu_path_t */
  size_t gpu_mirror;    /* operands of up to so many bytes take the mirror, where the path is auto */
  int gpu_kernels;      /* 0: nothing is reduced on GPUs */
  double deadline_s;    /* an operation that takes longer fails; 0: none */
  double stall_warning_s; /* an operation that takes longer is reported once, with the peers it waits for; 0: never */
  int verbose;            /* 0 error, 1 warn, 2 info, 3 debug, 4 trace */
} gpurdma_settings_t;

/* The defaults. */
void gpurdma_settings_default(gpurdma_settings_t *settings);
/* GPURDMA_INVALID: message (at most size bytes, terminated) names the setting, its value and what is allowed. */
int gpurdma_settings_check(const gpurdma_settings_t *settings, char *message, size_t size);
/* Reads a tuning file for settings.tuning: *rows is to be given to free(). A process reads it once, so that what it
 * publishes and what it runs are the same. GPURDMA_INVALID: message says where in the file, and what is expected. */
int gpurdma_tuning_read(const char *path, char **rows, char *message, size_t size);
/* Comma separated names of the catalogue's algorithms, for help texts; static. */
const char *gpurdma_algorithm_names(void);

/* ---- activation: a small key per process, compared by all ---- */

/* The key that this process publishes. Lower half: version, hash of the settings that must agree, GPU present (seen by
 * its device nodes), named by the user in --mca coll; never 0. Upper half: its node, a hash of the name that the host
 * has for it, or what settings.test_nodes says of `rank`, its rank in the job. */
uint64_t gpurdma_key(const gpurdma_settings_t *settings, int named, const char *node, uint32_t rank);

/* The node in a key: equal for processes of one node. Two nodes in 4 billion may have the same by chance, which costs
 * speed only, since nothing but the choice of messages depends on it. */
uint32_t gpurdma_key_node(uint64_t key);

/* Whether the process of a key could use a GPU. */
int gpurdma_key_gpu(uint64_t key);

typedef struct gpurdma_verdict {
  int active;
  int surprising;   /* not active for a reason that the user would want to mend */
  char reason[160]; /* one clause for the info line: why or why not */
} gpurdma_verdict_t;

/* Decides for a communicator from the keys of its members in rank order; 0: that member published none and is not able.
 */
void gpurdma_decide(const uint64_t *keys, int size, int scope, gpurdma_verdict_t *verdict);

/* ---- the runtime: one per process ---- */

typedef struct gpurdma_runtime gpurdma_runtime_t;
typedef struct gpurdma_comm gpurdma_comm_t;
typedef struct gpurdma_persistent gpurdma_persistent_t;

typedef struct gpurdma_host {
  /* Prints one line without newline; level as in settings.verbose. May be called with locks held. */
  void (*log)(int level, const char *line);
  /* Advances all other communication of the process (opal_progress). May call gpurdma_progress. */
  void (*progress)(void);
  /* How often gpurdma_progress must be called from the process's progress engine: 0 not at all, 1 now and then, 2 each
   * time. Called with gpurdma's lock held: must not call back. */
  void (*set_progress)(int level);
  /* The nonblocking or persistent operation that `cookie` names ended. */
  void (*completed)(void *cookie, int status);
} gpurdma_host_t;

/* Copies settings and host. Makes no UCX context: that happens when the first operation needs it. */
int gpurdma_runtime_create(const gpurdma_settings_t *settings, const gpurdma_host_t *host, gpurdma_runtime_t **runtime);
/* All communicators must be gone. Flushes what is still in UCX's queues, then closes endpoints, worker, context. */
void gpurdma_runtime_destroy(gpurdma_runtime_t *runtime);

/* Moves all operations on; returns the number of events. Never waits; where another thread is inside, returns 0 at
 * once. */
int gpurdma_progress(gpurdma_runtime_t *runtime);

/* ---- communicators ---- */

typedef struct gpurdma_comm_info {
  int rank, size;
  const char *name;     /* for log lines; copied */
  const uint64_t *keys; /* of each rank, for nodes and GPUs; copied. NULL: all are on one node, without GPUs */
  int oversubscribed;   /* more ranks than cores on this node: yield rather than spin */
  void *opaque;         /* handed to the callbacks below */
  /* Starts sending `bytes` bytes at `mine` to `rank` and receiving up to `capacity` bytes from it to `theirs`, over the
   * host's point-to-point messages on this communicator with a tag of gpurdma's own; both buffers stay valid until
   * exchange_end. Called at most once for each rank. Never blocks. Returns a handle, or NULL when it cannot start.
   * Called with gpurdma's lock held, as are the next two. */
  void *(*exchange)(void *opaque, int rank, const void *mine, size_t bytes, void *theirs, size_t capacity);
  /* 1: both done, *received bytes came. 0: not yet. -1: failed. Does not progress anything. */
  int (*exchange_test)(void *exchange, size_t *received);
  /* Ends it, cancelling what is still under way. */
  void (*exchange_end)(void *exchange);
  /* Polled now and then while an operation waits: 0 fine, otherwise the communicator was revoked or a member failed
   * (ULFM), and the value is handed to the caller as the operation's status, negated. */
  int (*broken)(void *opaque);
} gpurdma_comm_info_t;

int gpurdma_comm_create(gpurdma_runtime_t *runtime, const gpurdma_comm_info_t *info, gpurdma_comm_t **comm);
/* For programs that compare: what later calls on this communicator are forced to, instead of what the settings force.
 * The parts mean what they do in gpurdma_settings. Alike on all ranks. GPURDMA_INVALID: a part is out of range. */
int gpurdma_comm_force(gpurdma_comm_t *comm, const char *algorithm, size_t piece, int depth, int radix);
/* No operation may be in flight (MPI frees a communicator once its operations ended). */
void gpurdma_comm_destroy(gpurdma_comm_t *comm);

/* ---- allreduce: out = in_0 op in_1 op ... on every rank ---- */

/* count elements of `type` at in and out; in == out means in place, otherwise they do not overlap. op and type: enum
 * values of reduce/types.h. Blocking; calls host.progress while it waits. */
int gpurdma_allreduce(gpurdma_comm_t *comm, const void *in, void *out, size_t count, int op, int type);
/* Nonblocking: host.completed(cookie, status) follows from some progress call, never from inside this one. */
int gpurdma_iallreduce(gpurdma_comm_t *comm, const void *in, void *out, size_t count, int op, int type, void *cookie);
/* Persistent: started any number of times, one start at a time; each ends with host.completed(cookie, status). */
int gpurdma_allreduce_init(gpurdma_comm_t *comm, const void *in, void *out, size_t count, int op, int type,
                           void *cookie, gpurdma_persistent_t **persistent);
int gpurdma_persistent_start(gpurdma_persistent_t *persistent);
/* Not while it is active. */
void gpurdma_persistent_free(gpurdma_persistent_t *persistent);

/* Nonzero: this process could have operands in device memory, by settings.gpu. Touches device nodes at most. */
int gpurdma_gpu_present(const gpurdma_settings_t *settings);

/* ---- device memory, for what the component beneath runs on host memory ---- */

/* Nonzero: the CPU must not touch the memory at address, managed memory included. 0 for NULL, for host memory of any
 * kind, and in a process that has not started CUDA, where it costs nothing that can be measured. Any thread. */
int gpurdma_on_device(gpurdma_runtime_t *runtime, const void *address);

/* Host memory to stand in for device memory, at least 64-byte aligned; pinned where there is room for it. NULL: none.
 * bytes of give: as taken. */
void *gpurdma_stand_in_take(gpurdma_runtime_t *runtime, size_t bytes);
void gpurdma_stand_in_give(gpurdma_runtime_t *runtime, void *block, size_t bytes);

/* Rows of `width` bytes, the next one `..._pitch` bytes further. One side or both are device memory. */
typedef struct gpurdma_rows {
  void *dst;
  const void *src;
  size_t width, rows, dst_pitch, src_pitch;
} gpurdma_rows_t;

/* Starts n copies, n > 0, for which the array need not stay; done(cookie, status) follows once from some progress call,
 * never from inside this one, with the first error there was. entry: nonzero at the entry of a call of the application,
 * whose queued work on the default stream is waited for first (settings.input_ready). An error: done does not follow.
 */
int gpurdma_copy(gpurdma_runtime_t *runtime, const gpurdma_rows_t *copies, size_t n, int entry,
                 void (*done)(void *cookie, int status), void *cookie);

/* ---- sight ---- */

/* Counters for MPI_T. Names are stable: <algorithm>_<path>_calls, _bytes, _time_ns, and <path>_sent_bytes. */
typedef struct gpurdma_counter {
  const char *name, *help;
} gpurdma_counter_t;
size_t gpurdma_counters(const gpurdma_counter_t **counters);             /* the list; static */
uint64_t gpurdma_counter_read(gpurdma_runtime_t *runtime, size_t index); /* 0 when runtime is NULL */

/* The table of what this process did, lines separated by newline, into text (at most size bytes, terminated); returns
 * the length. */
size_t gpurdma_summary(gpurdma_runtime_t *runtime, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
