/* The MCA variables coll_gpurdma_*, with the help texts that `ompi_info --param coll gpurdma --level 9` shows.
 *
 * A bad value never ends the job: the process that has it does not take part, so that gpurdma is active on none of its
 * communicators and the component beneath runs. Words are registered as strings and parsed here, since the releases treat a bad
 * value of an MCA enumeration differently. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mca/gpurdma_mca.h"

#define BAD_VALUE \
  " A bad value is reported, and the component beneath gpurdma runs instead." /* said where a value can be bad */

gpurdma_mca_settings_t gpurdma_mca_settings;

/* What the variables are stored in; Open MPI frees the strings. */
static struct {
  char *scope, *algorithm;
  size_t piece;
  int depth, verbose;
  double deadline, stall_warning;
} variables;

static char unreadable[64]; /* the first variable whose value Open MPI could not read */

static void add(const char *name, const char *help, mca_base_var_type_t type, mca_base_var_info_lvl_t level,
                void *storage) {
  const int index = mca_base_component_var_register(&mca_coll_gpurdma_component.collm_version, name, help, type, NULL,
                                                    0, 0, level, MCA_BASE_VAR_SCOPE_READONLY, storage);
  if (index < 0 && '\0' == unreadable[0]) snprintf(unreadable, sizeof unreadable, "%s", name);
}

static void add_selection(void) {
  char *help = NULL;
  const int length = asprintf(&help,
                              "Algorithm that every allreduce uses: auto (a built-in table decides by ranks and bytes) "
                              "or one of %s. Must be the same in all processes." BAD_VALUE,
                              gpurdma_algorithm_names());
  add("algorithm", length < 0 ? "Algorithm that every allreduce uses" : help, MCA_BASE_VAR_TYPE_STRING,
      OPAL_INFO_LVL_5, &variables.algorithm);
  if (length >= 0) free(help);
  add("piece",
      "Bytes in one message of a pipelined algorithm; 0: a built-in table decides. Must be the same in all "
      "processes." BAD_VALUE,
      MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_5, &variables.piece);
  add("depth",
      "Pieces that a process has room to receive ahead from each neighbour; 0: a built-in table decides. Must be the same "
      "in all processes." BAD_VALUE,
      MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_5, &variables.depth);
}

static void add_failures(void) {
  add("deadline",
      "Seconds after which an operation that has not ended fails with an MPI error; 0: never, since processes may "
      "legally be hours apart." BAD_VALUE,
      MCA_BASE_VAR_TYPE_DOUBLE, OPAL_INFO_LVL_4, &variables.deadline);
  add("stall_warning",
      "Seconds after which an operation that has not ended is reported once, with the processes that it waits for; 0: "
      "never." BAD_VALUE,
      MCA_BASE_VAR_TYPE_DOUBLE, OPAL_INFO_LVL_4, &variables.stall_warning);
}

static void add_sight(void) {
  add("verbose",
      "What is printed: 0 errors, 1 also warnings, 2 also one line for each communicator that says whether gpurdma is active on "
      "it and why, 3 and 4 also details for debugging." BAD_VALUE,
      MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_2, &variables.verbose);
  gpurdma_mca_settings.summary = false;
  add("summary",
      "Whether process 0 of the job prints a small table at MPI_Finalize, on standard error, of what it did: calls, bytes, "
      "algorithm, path and time. It speaks of that process alone.",
      MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_2, &gpurdma_mca_settings.summary);
  gpurdma_mca_settings.test_unable = -1;
  add("test_unable",
      "For tests: the process with this rank in MPI_COMM_WORLD behaves as if gpurdma could not start there; -1: none.",
      MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_9, &gpurdma_mca_settings.test_unable);
}

void gpurdma_mca_settings_register(void) {
  gpurdma_settings_t *core = &gpurdma_mca_settings.core;
  gpurdma_settings_default(core);
  unreadable[0] = '\0';
  variables.scope = "auto";
  variables.algorithm = "auto";
  variables.piece = core->piece;
  variables.depth = core->depth;
  variables.deadline = core->deadline_s;
  variables.stall_warning = core->stall_warning_s;
  variables.verbose = core->verbose;
  gpurdma_mca_settings.priority = 95;

  add("scope",
      "On which communicators gpurdma is active: auto (where a member has a GPU, and on all if the user named gpurdma in "
      "--mca coll), always, never. Must be the same in all processes." BAD_VALUE,
      MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_2, &variables.scope);
  add("priority",
      "Priority among the coll components, at most 100; negative: never used. Must be above the components that gpurdma is "
      "to replace. Must be the same in all processes.",
      MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_6, &gpurdma_mca_settings.priority);
  add_selection();
  add_failures();
  add_sight();
}

static bool parse_scope(const char *word, int *scope) {
  if (NULL == word || '\0' == *word || 0 == strcmp(word, "auto")) *scope = GPURDMA_SCOPE_AUTO;
  else if (0 == strcmp(word, "always")) *scope = GPURDMA_SCOPE_ALWAYS;
  else if (0 == strcmp(word, "never")) *scope = GPURDMA_SCOPE_NEVER;
  else return false;
  return true;
}

bool gpurdma_mca_settings_check(char *message, size_t size) {
  gpurdma_settings_t *core = &gpurdma_mca_settings.core;
  core->verbose = variables.verbose;
  if ('\0' != unreadable[0]) {
    snprintf(message, size, "setting coll_gpurdma_%s is not a number that is allowed: see ompi_info --param coll gpurdma --level 9",
             unreadable);
    return false;
  }
  if (!parse_scope(variables.scope, &core->scope)) {
    snprintf(message, size, "setting coll_gpurdma_scope is \"%s\"; allowed are auto, always, never", variables.scope);
    return false;
  }
  core->algorithm = NULL == variables.algorithm ? "auto" : variables.algorithm;
  core->piece = variables.piece;
  core->depth = variables.depth;
  core->deadline_s = variables.deadline;
  core->stall_warning_s = variables.stall_warning;
  return GPURDMA_OK == gpurdma_settings_check(core, message, size);
}
