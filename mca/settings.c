/* The MCA variables coll_gpurdma_*, with the help texts that `ompi_info --param coll gpurdma --level 9` shows.
 *
 * A bad value never ends the job: the process that has it does not take part, so that gpurdma is active on none of its
 * communicators and the component beneath runs. All values are registered as strings and parsed here: of a number that
 * it cannot read Open MPI silently takes what it can, and a bad value of an enumeration means something else in each
 * release. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mca/gpurdma_mca.h"

#define BAD_VALUE " A bad value is reported, and the component beneath gpurdma runs instead."
#define SAME_EVERYWHERE " Must be the same in all processes."

gpurdma_mca_settings_t gpurdma_mca_settings;

/* What the variables are stored in. Open MPI copies what is there at first, and frees its copies. */
static struct {
  char *scope, *priority, *algorithm, *piece, *depth, *radix, *tuning, *shared_memory, *single_copy, *gpu, *gpu_path,
      *gpu_mirror, *gpu_kernels, *pinned_memory, *device_memory, *input_ready, *deadline, *stall_warning, *verbose,
      *summary, *test_nodes, *test_unable;
} words;

/* The defaults as words. */
static struct {
  char piece[24], depth[24], radix[24], shared_memory[24], gpu_mirror[24], pinned_memory[24], device_memory[24],
      deadline[32], stall_warning[32], verbose[24];
} defaults;

static void add(const char *name, const char *help, mca_base_var_info_lvl_t level, char **word, char *initial) {
  *word = initial;
  (void)mca_base_component_var_register(&mca_coll_gpurdma_component.collm_version, name, help, MCA_BASE_VAR_TYPE_STRING,
                                        NULL, 0, 0, level, MCA_BASE_VAR_SCOPE_READONLY, word);
}

static void write_defaults(const gpurdma_settings_t *core) {
  snprintf(defaults.piece, sizeof defaults.piece, "%zu", core->piece);
  snprintf(defaults.depth, sizeof defaults.depth, "%d", core->depth);
  snprintf(defaults.radix, sizeof defaults.radix, "%d", core->radix);
  snprintf(defaults.shared_memory, sizeof defaults.shared_memory, "%zu", core->shared_memory);
  snprintf(defaults.gpu_mirror, sizeof defaults.gpu_mirror, "%zu", core->gpu_mirror);
  snprintf(defaults.pinned_memory, sizeof defaults.pinned_memory, "%zu", core->pinned_memory);
  snprintf(defaults.device_memory, sizeof defaults.device_memory, "%zu", core->device_memory);
  snprintf(defaults.deadline, sizeof defaults.deadline, "%g", core->deadline_s);
  snprintf(defaults.stall_warning, sizeof defaults.stall_warning, "%g", core->stall_warning_s);
  snprintf(defaults.verbose, sizeof defaults.verbose, "%d", core->verbose);
}

static void add_choice(void) {
  char help[1024];
  add("scope",
      "On which communicators gpurdma is active: auto (where a member has a GPU, and on all if the user named gpurdma "
      "in --mca coll), always, never." SAME_EVERYWHERE BAD_VALUE,
      OPAL_INFO_LVL_2, &words.scope, "auto");
  add("priority",
      "Priority among the coll components, at most 100, above the components that gpurdma is to replace; negative: "
      "never used." SAME_EVERYWHERE BAD_VALUE,
      OPAL_INFO_LVL_6, &words.priority, "95");
  snprintf(help, sizeof help,
           "Algorithm of every allreduce: auto (a table decides by ranks, nodes and bytes) or one of "
           "%s." SAME_EVERYWHERE BAD_VALUE,
           gpurdma_algorithm_names());
  add("algorithm", help, OPAL_INFO_LVL_5, &words.algorithm, "auto");
  add("piece",
      "Bytes in one message of a pipelined algorithm, as 65536 or 64k; 0: the table "
      "decides." SAME_EVERYWHERE BAD_VALUE,
      OPAL_INFO_LVL_5, &words.piece, defaults.piece);
  add("depth",
      "Pieces that a process has room to receive ahead from each neighbour; 0: the table "
      "decides." SAME_EVERYWHERE BAD_VALUE,
      OPAL_INFO_LVL_5, &words.depth, defaults.depth);
  add("radix",
      "With how many partners, plus one, a process exchanges in a step of an algorithm that has a radix, 2 to 64; "
      "0: the table decides." SAME_EVERYWHERE BAD_VALUE,
      OPAL_INFO_LVL_5, &words.radix, defaults.radix);
  add("tuning",
      "Path of a tuning file, as contrib/tune writes it and `gpurdma_info --tuning FILE` checks it; its rows "
      "come before the built-in table. Empty: the built-in table alone. The rows must be the same in all "
      "processes." BAD_VALUE,
      OPAL_INFO_LVL_4, &words.tuning, "");
}

static void add_transport(void) {
  add("shared_memory",
      "Bytes of memory, as 2m, into which the other processes of its node write messages to this one, however many "
      "communicators there are; what finds no room there goes over UCX; 0: all goes over UCX." BAD_VALUE,
      OPAL_INFO_LVL_5, &words.shared_memory, defaults.shared_memory);
  add("single_copy",
      "Whether processes of a node may copy payloads that fit no slot of the shared memory straight from each other's "
      "memory (process_vm_readv), where the system allows it; 0 or no, 1 or yes." BAD_VALUE,
      OPAL_INFO_LVL_5, &words.single_copy, "1");
}

static void add_gpu(void) {
  add("gpu",
      "Whether this process could have operands in GPU memory: detect (where the machine shows the devices of an "
      "NVIDIA "
      "GPU), yes, no. With no, GPU memory must not be passed to any collective." BAD_VALUE,
      OPAL_INFO_LVL_3, &words.gpu, "detect");
  add("gpu_path",
      "How operands in GPU memory reach other processes: auto (for each message the best that there is; small operands "
      "by mirror), mirror (the whole call works on a copy in host memory), staged (piece by piece through pinned host "
      "memory; reduced on the GPU), direct (UCX takes pieces from GPU memory where it can, otherwise "
      "staged)." BAD_VALUE,
      OPAL_INFO_LVL_4, &words.gpu_path, "auto");
  add("gpu_mirror",
      "Operands in GPU memory of up to so many bytes, as 256k, go by mirror where gpu_path is auto." BAD_VALUE,
      OPAL_INFO_LVL_5, &words.gpu_mirror, defaults.gpu_mirror);
  add("gpu_kernels",
      "Whether operands in GPU memory are reduced on the GPU; otherwise they are mirrored; 0 or no, 1 or "
      "yes." BAD_VALUE,
      OPAL_INFO_LVL_5, &words.gpu_kernels, "1");
  add("pinned_memory",
      "Most bytes of pinned host memory, as 128m, that copies from and to GPU memory pass through." BAD_VALUE,
      OPAL_INFO_LVL_5, &words.pinned_memory, defaults.pinned_memory);
  add("device_memory", "Most bytes, as 64m, of the memory of each GPU that gpurdma uses itself." BAD_VALUE,
      OPAL_INFO_LVL_5, &words.device_memory, defaults.device_memory);
  add("input_ready",
      "When operands in GPU memory may be read: default_stream (once the work is done that the application has queued "
      "on the default stream, and what that waits for), none (at once: the application has waited itself)." BAD_VALUE,
      OPAL_INFO_LVL_4, &words.input_ready, "default_stream");
}

static void add_failures(void) {
  add("deadline",
      "Seconds after which an operation that has not ended fails with an MPI error; 0: never, since processes may "
      "legally be hours apart." BAD_VALUE,
      OPAL_INFO_LVL_4, &words.deadline, defaults.deadline);
  add("stall_warning",
      "Seconds after which an operation that has not ended is reported once, with the processes that it waits for; 0: "
      "never." BAD_VALUE,
      OPAL_INFO_LVL_4, &words.stall_warning, defaults.stall_warning);
  add("test_nodes",
      "For tests: pretends nodes by ranks in MPI_COMM_WORLD: N (blocks of N consecutive ranks), N,M,... (blocks of "
      "these "
      "sizes, the last one repeated), %N (rank modulo N). Empty: the real nodes." SAME_EVERYWHERE BAD_VALUE,
      OPAL_INFO_LVL_9, &words.test_nodes, "");
  add("test_unable",
      "For tests: the process with this rank in MPI_COMM_WORLD behaves as if gpurdma could not start there; -1: none.",
      OPAL_INFO_LVL_9, &words.test_unable, "-1");
}

static void add_sight(void) {
  add("verbose",
      "What is printed: 0 errors, 1 also warnings, 2 also one line for each communicator that says whether gpurdma is "
      "active on it and why, 3 and 4 also details for debugging." BAD_VALUE,
      OPAL_INFO_LVL_2, &words.verbose, defaults.verbose);
  add("summary",
      "Whether process 0 of the job prints a small table at MPI_Finalize, on standard error, of what it did: calls, "
      "bytes, algorithm, path and time; 0 or no, 1 or yes. It speaks of that process alone." BAD_VALUE,
      OPAL_INFO_LVL_2, &words.summary, "0");
}

void gpurdma_mca_settings_register(void) {
  gpurdma_settings_default(&gpurdma_mca_settings.core);
  write_defaults(&gpurdma_mca_settings.core);
  add_choice();
  add_transport();
  add_gpu();
  add_failures();
  add_sight();
}

static bool is_empty(const char *word) { return NULL == word || '\0' == *word; }

typedef struct meaning {
  const char *word;
  int value;
} meaning_t;

static bool parse_word(const char *word, const meaning_t *meanings, size_t count, int *value) {
  if (is_empty(word)) return true;
  for (size_t index = 0; index < count; ++index) {
    if (0 != strcmp(word, meanings[index].word)) continue;
    *value = meanings[index].value;
    return true;
  }
  return false;
}

#define PARSE_WORD(word, meanings, value) parse_word(word, meanings, sizeof meanings / sizeof *meanings, value)

static const meaning_t kScopes[] = {
    {"auto", GPURDMA_SCOPE_AUTO}, {"always", GPURDMA_SCOPE_ALWAYS}, {"never", GPURDMA_SCOPE_NEVER}};
static const meaning_t kSwitches[] = {{"0", 0}, {"no", 0}, {"false", 0}, {"1", 1}, {"yes", 1}, {"true", 1}};
static const meaning_t kGpu[] = {{"detect", GPURDMA_GPU_DETECT}, {"yes", GPURDMA_GPU_YES}, {"no", GPURDMA_GPU_NO}};
static const meaning_t kGpuPaths[] = {{"auto", GPURDMA_GPU_PATH_AUTO},
                                      {"mirror", GPURDMA_GPU_PATH_MIRROR},
                                      {"staged", GPURDMA_GPU_PATH_STAGED},
                                      {"direct", GPURDMA_GPU_PATH_DIRECT}};
static const meaning_t kInputReady[] = {{"default_stream", GPURDMA_INPUT_READY_DEFAULT_STREAM},
                                        {"none", GPURDMA_INPUT_READY_NONE}};

static bool parse_int(const char *word, int *value) {
  char *end = NULL;
  if (is_empty(word)) return true;
  const long number = strtol(word, &end, 10);
  if ('\0' != *end || number < INT_MIN || number > INT_MAX) return false;
  *value = (int)number;
  return true;
}

static bool parse_seconds(const char *word, double *value) {
  char *end = NULL;
  if (is_empty(word)) return true;
  const double number = strtod(word, &end);
  if ('\0' != *end || !isfinite(number) || number < 0) return false;
  *value = number;
  return true;
}

static bool parse_bytes(const char *word, size_t *value) {
  static const char kUnits[] = "kmg";
  char *end = NULL;
  if (is_empty(word)) return true;
  if (*word < '0' || *word > '9') return false; /* strtoull takes signs and blanks */
  errno = 0;
  unsigned long long number = strtoull(word, &end, 10);
  if (0 != errno) return false;
  const char *unit = '\0' == *end ? NULL : strchr(kUnits, *end | 0x20); /* k and K alike */
  if (NULL != unit && '\0' == *unit) unit = NULL;
  for (const char *step = kUnits; NULL != unit && step <= unit; ++step) {
    if (number > SIZE_MAX / 1024) return false;
    number *= 1024;
  }
  if (NULL != unit) ++end;
  if ('\0' != *end) return false;
  *value = (size_t)number;
  return true;
}

/* Reads the tuning file, once; the rows stay, since the core settings point to them. */
static bool read_tuning(gpurdma_settings_t *core, char *message, size_t size) {
  static char *rows;
  free(rows);
  rows = NULL;
  if (is_empty(words.tuning)) return true;
  const int status = gpurdma_tuning_read(words.tuning, &rows, message, size);
  if (GPURDMA_NO_MEMORY == status) snprintf(message, size, "setting coll_gpurdma_tuning: no memory for the file");
  if (GPURDMA_OK != status) return false;
  core->tuning = rows;
  return true;
}

bool gpurdma_mca_settings_check(char *message, size_t size) {
  gpurdma_settings_t *core = &gpurdma_mca_settings.core;
  gpurdma_settings_default(core);
  gpurdma_mca_settings.test_unable = -1;
  gpurdma_mca_settings.summary = 0;
  if (!read_tuning(core, message, size)) return false;
  core->algorithm = is_empty(words.algorithm) ? "auto" : words.algorithm;
  core->test_nodes = is_empty(words.test_nodes) ? "" : words.test_nodes;
  const struct {
    bool good;
    const char *name, *word, *allowed;
  } checks[] = {
      {parse_int(words.verbose, &core->verbose), "verbose", words.verbose, "allowed are 0 to 4"},
      {PARSE_WORD(words.scope, kScopes, &core->scope), "scope", words.scope, "allowed are auto, always, never"},
      {parse_int(words.priority, &core->priority), "priority", words.priority, "a whole number is allowed"},
      {parse_bytes(words.piece, &core->piece), "piece", words.piece, "a number of bytes is allowed, as 65536 or 64k"},
      {parse_int(words.depth, &core->depth), "depth", words.depth, "a whole number is allowed"},
      {parse_int(words.radix, &core->radix), "radix", words.radix, "a whole number is allowed"},
      {parse_bytes(words.shared_memory, &core->shared_memory), "shared_memory", words.shared_memory,
       "a number of bytes is allowed, as 2m"},
      {PARSE_WORD(words.single_copy, kSwitches, &core->single_copy), "single_copy", words.single_copy,
       "allowed are 0, no, false, 1, yes, true"},
      {PARSE_WORD(words.gpu, kGpu, &core->gpu), "gpu", words.gpu, "allowed are detect, yes, no"},
      {PARSE_WORD(words.gpu_path, kGpuPaths, &core->gpu_path), "gpu_path", words.gpu_path,
       "allowed are auto, mirror, staged, direct"},
      {parse_bytes(words.gpu_mirror, &core->gpu_mirror), "gpu_mirror", words.gpu_mirror,
       "a number of bytes is allowed, as 256k"},
      {PARSE_WORD(words.gpu_kernels, kSwitches, &core->gpu_kernels), "gpu_kernels", words.gpu_kernels,
       "allowed are 0, no, false, 1, yes, true"},
      {parse_bytes(words.pinned_memory, &core->pinned_memory), "pinned_memory", words.pinned_memory,
       "a number of bytes is allowed, as 128m"},
      {parse_bytes(words.device_memory, &core->device_memory), "device_memory", words.device_memory,
       "a number of bytes is allowed, as 64m"},
      {PARSE_WORD(words.input_ready, kInputReady, &core->input_ready), "input_ready", words.input_ready,
       "allowed are default_stream, none"},
      {parse_seconds(words.deadline, &core->deadline_s), "deadline", words.deadline, "a number of seconds is allowed"},
      {parse_seconds(words.stall_warning, &core->stall_warning_s), "stall_warning", words.stall_warning,
       "a number of seconds is allowed"},
      {PARSE_WORD(words.summary, kSwitches, &gpurdma_mca_settings.summary), "summary", words.summary,
       "allowed are 0, no, false, 1, yes, true"},
      {parse_int(words.test_unable, &gpurdma_mca_settings.test_unable), "test_unable", words.test_unable,
       "a rank is allowed"},
  };
  for (size_t index = 0; index < sizeof checks / sizeof *checks; ++index) {
    if (checks[index].good) continue;
    snprintf(message, size, "setting coll_gpurdma_%s is \"%s\"; %s", checks[index].name, checks[index].word,
             checks[index].allowed);
    return false;
  }
  return GPURDMA_OK == gpurdma_settings_check(core, message, size);
}
