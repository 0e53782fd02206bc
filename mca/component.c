/* The component: what Open MPI finds in mca_coll_gpurdma.so.
 *
 * Life: register (settings; also by ompi_info and MPI_T_init, without MPI_Init) - open (the runtime, which makes no UCX
 * context yet, and the key in the modex) - a query for each communicator - close, when all communicators are gone. With
 * MPI Sessions the round can be made several times.
 *
 * A process on which something fails opens all the same, but publishes no key: gpurdma is then active on no
 * communicator that it is a member of, and the components beneath serve it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mca/gpurdma_mca.h"

gpurdma_runtime_t *gpurdma_mca_runtime;
bool gpurdma_mca_stages;

static bool named;    /* the user named gpurdma in --mca coll */
static bool widening; /* the framework registers all components, us once more */

/* Open MPI compares the interface's version only after register and open have run, and would load a component of
 * another series. */
static bool series_fits(void) {
  int major = 0, minor = 0;
  if (2 == sscanf(opal_version_string, "%d.%d", &major, &minor) && OMPI_MAJOR_VERSION == major &&
      OMPI_MINOR_VERSION == minor)
    return true;
  opal_output(
      0,
      "gpurdma: this component was built for Open MPI %d.%d and is not used by Open MPI %s: install one built for it",
      OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, opal_version_string);
  return false;
}

/* Whether the list of components that the user asked for holds ours. A list that begins with ^ says what to leave out.
 */
static bool is_named(const char *selection) {
  static const char kName[] = "gpurdma";
  const size_t length = sizeof kName - 1;
  if (NULL == selection || '^' == *selection) return false;
  for (const char *word = selection; NULL != word; word = strchr(word, ',')) {
    word += ',' == *word;
    if (0 == strncmp(word, kName, length) && ('\0' == word[length] || ',' == word[length])) return true;
  }
  return false;
}

/* `--mca coll gpurdma` alone would leave MPI without most collectives, since a coll component needs others beneath. The
 * user means: with the usual ones. So the selection is cleared and the framework registers all its components.
 * MPI_T_init and ompi_info have registered all of them already; a second round would list those that are linked in
 * twice. */
static int widen_selection(void) {
  mca_base_framework_t *framework = &ompi_coll_base_framework;
  if (NULL == framework->framework_selection || 0 != strcmp(framework->framework_selection, "gpurdma"))
    return OPAL_SUCCESS;
  const int variable = mca_base_var_find("ompi", "coll", NULL, NULL);
  if (variable < 0) return variable;
  const int failed = mca_base_var_set_value(variable, "", 1, MCA_BASE_VAR_SOURCE_SET, NULL);
  if (OPAL_SUCCESS != failed) return failed;
  if (1 != opal_list_get_size(&framework->framework_components)) return OPAL_SUCCESS;
  widening = true;
  const int result = mca_base_framework_components_register(framework, MCA_BASE_REGISTER_ALL);
  widening = false;
  return result;
}

static int register_component(void) {
  if (widening) return OPAL_SUCCESS; /* registering the settings again would lose Open MPI's copies of their words */
  if (!series_fits()) return OPAL_ERR_NOT_AVAILABLE;
  named = named || is_named(ompi_coll_base_framework.framework_selection);
  gpurdma_mca_settings_register();
  gpurdma_mca_pvars_register();
  return widen_selection();
}

/* Makes this process able to run gpurdma, or says in `reason` why not. */
static bool become_able(char *reason, size_t size) {
  const int rank = (int)OPAL_PROC_MY_NAME.vpid;
  gpurdma_mca_settings.core.job_rank = OPAL_PROC_MY_NAME.vpid;
  int status = gpurdma_runtime_create(&gpurdma_mca_settings.core, &gpurdma_mca_host, &gpurdma_mca_runtime);
  if (GPURDMA_OK != status) {
    gpurdma_mca_runtime = NULL;
    snprintf(reason, size, "the runtime could not be made: %s", gpurdma_status_text(status));
    return false;
  }
  gpurdma_mca_stages = gpurdma_gpu_present(&gpurdma_mca_settings.core);
  if (rank == gpurdma_mca_settings.test_unable) {
    snprintf(reason, size, "the setting coll_gpurdma_test_unable is %d", rank);
    return false;
  }
  if (GPURDMA_SCOPE_NEVER == gpurdma_mca_settings.core.scope) return true; /* and publishes no key */
  status = gpurdma_mca_publish(
      gpurdma_key(&gpurdma_mca_settings.core, named, opal_process_info.nodename, OPAL_PROC_MY_NAME.vpid));
  if (status) {
    snprintf(reason, size, "the key could not be published in the modex (error %d)", status);
    return false;
  }
  return true;
}

static int open_component(void) {
  char reason[512] = "";
  gpurdma_mca_activation_open();
  gpurdma_mca_hold_open();
  if (!gpurdma_mca_settings_check(reason, sizeof reason)) {
    /* The value is the same in all processes as a rule: one for each node says so. */
    if (0 == opal_process_info.my_local_rank) opal_output(0, "gpurdma: %s; gpurdma is not used", reason);
    return OPAL_SUCCESS;
  }
  const bool never = GPURDMA_SCOPE_NEVER == gpurdma_mca_settings.core.scope;
  const bool least = gpurdma_mca_settings.core.priority < 0;
  if ((never || least) && 0 == opal_process_info.my_local_rank)
    gpurdma_mca_log(2, "not active on any communicator: scope is never, or priority is negative");
  if (least || (never && !gpurdma_gpu_present(&gpurdma_mca_settings.core))) return OPAL_SUCCESS;
  if (!become_able(reason, sizeof reason)) gpurdma_mca_log(1, "not used in this process nor with it: %s", reason);
  return OPAL_SUCCESS;
}

static void print_summary(void) {
  enum { kSize = 65536 };
  if (!gpurdma_mca_settings.summary || 0 != OPAL_PROC_MY_NAME.vpid) return;
  char *text = malloc(kSize);
  if (NULL == text) return;
  if (0 < gpurdma_summary(gpurdma_mca_runtime, text, kSize)) fputs(text, stderr);
  free(text);
}

static int close_component(void) {
  gpurdma_runtime_t *runtime = gpurdma_mca_runtime;
  if (NULL != runtime) {
    print_summary();
    gpurdma_mca_exchange_closing();
    gpurdma_mca_modules_close();
    gpurdma_mca_exchange_close();
    gpurdma_mca_requests_close();
    gpurdma_runtime_destroy(runtime);
    gpurdma_mca_runtime = NULL;
    gpurdma_mca_stages = false;
    gpurdma_mca_host_close();
  }
  gpurdma_mca_hold_close();
  gpurdma_mca_activation_close();
  return OPAL_SUCCESS;
}

static int init_query(bool progress_threads, bool threads) {
  (void)progress_threads;
  (void)threads; /* every level of thread support is served */
  gpurdma_mca_types_open();
  return OMPI_SUCCESS;
}

static mca_coll_base_module_t *comm_query(ompi_communicator_t *comm, int *priority) {
  *priority = gpurdma_mca_settings.core.priority;
  if (NULL == gpurdma_mca_runtime) return NULL;
  uint64_t *keys = gpurdma_mca_active(comm);
  return NULL == keys && !gpurdma_mca_stages ? NULL : gpurdma_mca_module_new(keys);
}

__attribute__((visibility("default"))) mca_coll_base_component_t mca_coll_gpurdma_component = {
    .collm_version =
        {
            GPURDMA_COLL_VERSION,
            .mca_component_name = "gpurdma",
            MCA_BASE_MAKE_VERSION(component, GPURDMA_VERSION_MAJOR, GPURDMA_VERSION_MINOR, GPURDMA_VERSION_RELEASE),
            .mca_open_component = open_component,
            .mca_close_component = close_component,
            .mca_register_component_params = register_component,
        },
    .collm_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .collm_init_query = init_query,
    .collm_comm_query = comm_query,
};
