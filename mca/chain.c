/* Nonblocking and persistent collectives beneath whose buffers lie on GPUs: copies down, the operation, copies up, one
 * after another from progress, behind a request of ours.
 *
 * Nonblocking operations beneath find their messages by the order in which they were called. So where one waits for its
 * copies, those called after it on the same communicator wait behind it, on host memory too: a queue for each
 * communicator, whose head is started once its copies have ended. It waits for the own GPU only, never for a peer.
 * Persistent operations have their place in that order from when they are made, so that is done once the queue is
 * empty; their starts may come in any order. */
#include <pthread.h>
#include <stdlib.h>

#include "mca/gpurdma_mca.h"

typedef struct gpurdma_chain {
  struct gpurdma_chain *next; /* in the queue of its module, or among those that run */
  gpurdma_module_t *module;
  gpurdma_request_t *request;
  gpurdma_staged_t staged;
  void *arrays;            /* of the call */
  ompi_request_t *beneath; /* NULL: not started */
  bool persistent;
  bool ready; /* nonblocking: its copies have ended */
  int error;  /* the first one */
} gpurdma_chain_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all queues, and of: */
static gpurdma_chain_t *_Atomic running;                 /* whose operation beneath was started */
static _Thread_local const gpurdma_module_t *starting;   /* this thread is in a call of its queue's head */

static void fail(gpurdma_chain_t *chain, int error) {
  if (OMPI_SUCCESS == chain->error) chain->error = error;
}

static void destroy(gpurdma_chain_t *chain) {
  gpurdma_mca_staged_end(&chain->staged);
  free(chain->arrays);
  free(chain);
}

/* The end. The request may be freed by another thread as soon as it is complete. */
static void finish(gpurdma_chain_t *chain) {
  gpurdma_request_t *request = chain->request;
  const int error = chain->error;
  if (!chain->persistent) destroy(chain);
  gpurdma_mca_request_complete(request, error);
}

static void copied_up(void *cookie, int status) {
  gpurdma_chain_t *chain = cookie;
  fail(chain, gpurdma_mca_error(status, chain->request->comm));
  finish(chain);
}

/* The operation beneath has ended, or could not be started. */
static void go_up(gpurdma_chain_t *chain) {
  if (OMPI_SUCCESS == chain->error && 0 != chain->staged.up_count) {
    const int status =
        gpurdma_copy(gpurdma_mca_runtime, chain->staged.up, chain->staged.up_count, false, copied_up, chain);
    if (GPURDMA_OK == status) return;
    fail(chain, gpurdma_mca_error(status, chain->request->comm));
  }
  finish(chain);
}

static void run(gpurdma_chain_t *chain) {
  pthread_mutex_lock(&lock);
  chain->next = running;
  running = chain;
  gpurdma_mca_progress_chains(2);
  pthread_mutex_unlock(&lock);
}

/* ---- nonblocking: the queue of a communicator ---- */

static void start_beneath(gpurdma_chain_t *chain) {
  const gpurdma_module_t *outer = starting;
  starting = chain->module; /* what beneath calls of us on its way is a part of this operation */
  const int error =
      gpurdma_mca_pass[chain->staged.call.collective].nonblocking(chain->module, &chain->staged.call, &chain->beneath);
  starting = outer;
  if (OMPI_SUCCESS != error) {
    chain->beneath = NULL;
    fail(chain, error);
  }
}

/* Starts what is at the head of the queue for as long as that is ready. An operation leaves the queue only when it has
 * been started: until then others must queue. */
static void start_ready(gpurdma_module_t *module) {
  pthread_mutex_lock(&lock);
  if (module->starting) {
    pthread_mutex_unlock(&lock);
    return;
  }
  module->starting = true;
  for (gpurdma_chain_t *head; NULL != (head = module->queue) && head->ready;) {
    pthread_mutex_unlock(&lock);
    start_beneath(head);
    pthread_mutex_lock(&lock);
    module->queue = head->next;
    const bool last = NULL == head->next;
    if (last) module->starting = false; /* the module may be gone once the last operation has ended */
    pthread_mutex_unlock(&lock);
    if (NULL != head->beneath)
      run(head);
    else
      go_up(head);
    if (last) return;
    pthread_mutex_lock(&lock);
  }
  module->starting = false;
  pthread_mutex_unlock(&lock);
}

static void enqueue(gpurdma_chain_t *chain) {
  gpurdma_module_t *module = chain->module;
  pthread_mutex_lock(&lock);
  if (NULL == module->queue)
    module->queue = chain;
  else
    module->queue_end->next = chain;
  module->queue_end = chain;
  pthread_mutex_unlock(&lock);
}

static void copied_down(void *cookie, int status) {
  gpurdma_chain_t *chain = cookie;
  fail(chain, gpurdma_mca_error(status, chain->request->comm));
  pthread_mutex_lock(&lock);
  chain->ready = true;
  pthread_mutex_unlock(&lock);
  start_ready(chain->module);
}

bool gpurdma_mca_chain_needed(const gpurdma_module_t *module) { return NULL != module->queue && starting != module; }

static gpurdma_chain_t *chain_new(gpurdma_module_t *module, const gpurdma_call_t *call, gpurdma_places_t places,
                                  bool persistent, int *error) {
  gpurdma_call_t kept = *call;
  gpurdma_chain_t *chain = calloc(1, sizeof *chain);
  *error = MPI_ERR_NO_MEM;
  if (NULL == chain) return NULL;
  chain->module = module;
  chain->persistent = persistent;
  if (gpurdma_mca_call_keep(&kept, &chain->arrays)) *error = gpurdma_mca_staged_make(&kept, places, &chain->staged);
  if (OMPI_SUCCESS == *error) {
    chain->request = gpurdma_mca_request_new(call->comm, persistent);
    if (NULL != chain->request) return chain;
    *error = MPI_ERR_NO_MEM;
  }
  destroy(chain);
  return NULL;
}

int gpurdma_mca_chain_nonblocking(gpurdma_module_t *module, const gpurdma_call_t *call, gpurdma_places_t places,
                                  ompi_request_t **request) {
  int error;
  gpurdma_chain_t *chain = chain_new(module, call, places, false, &error);
  if (NULL == chain) return error;
  *request = &chain->request->super.super;
  enqueue(chain);
  int status = GPURDMA_OK;
  if (0 != chain->staged.down_count) {
    status = gpurdma_copy(gpurdma_mca_runtime, chain->staged.down, chain->staged.down_count, true, copied_down, chain);
    if (GPURDMA_OK == status) return OMPI_SUCCESS;
  }
  copied_down(chain, status);
  return OMPI_SUCCESS;
}

void gpurdma_mca_chain_settle(gpurdma_module_t *module) {
  while (gpurdma_mca_chain_needed(module)) gpurdma_mca_advance();
}

/* ---- persistent ---- */

int gpurdma_mca_chain_persistent(gpurdma_module_t *module, const gpurdma_call_t *call, gpurdma_places_t places,
                                 ompi_info_t *info, ompi_request_t **request) {
  int error;
  gpurdma_chain_t *chain = chain_new(module, call, places, true, &error);
  if (NULL == chain) return error;
  error = gpurdma_mca_pass[call->collective].persistent(module, &chain->staged.call, info, &chain->beneath);
  if (OMPI_SUCCESS != error) {
    gpurdma_mca_request_drop(chain->request);
    destroy(chain);
    return error;
  }
  gpurdma_mca_call_retain(&chain->staged.call);
  chain->request->chain = chain;
  *request = &chain->request->super.super;
  return OMPI_SUCCESS;
}

/* What has nothing to do, as among one rank in place, comes as a request that is complete and cannot be started. */
static int start_again(ompi_request_t *beneath) {
  return OMPI_REQUEST_NOOP == beneath->req_type ? OMPI_SUCCESS : beneath->req_start(1, &beneath);
}

static void copied_down_again(void *cookie, int status) {
  gpurdma_chain_t *chain = cookie;
  fail(chain, gpurdma_mca_error(status, chain->request->comm));
  const int error = start_again(chain->beneath);
  if (OMPI_SUCCESS == error) return run(chain);
  fail(chain, error);
  finish(chain);
}

int gpurdma_mca_chain_start(gpurdma_chain_t *chain) {
  chain->error = OMPI_SUCCESS;
  int status = GPURDMA_OK;
  if (0 != chain->staged.down_count) {
    status =
        gpurdma_copy(gpurdma_mca_runtime, chain->staged.down, chain->staged.down_count, true, copied_down_again, chain);
    if (GPURDMA_OK == status) return OMPI_SUCCESS;
  }
  copied_down_again(chain, status);
  return OMPI_SUCCESS;
}

void gpurdma_mca_chain_free(gpurdma_chain_t *chain) {
  (void)ompi_request_free(&chain->beneath);
  gpurdma_mca_call_release(&chain->staged.call);
  destroy(chain);
}

/* ---- progress ---- */

static void ended_beneath(gpurdma_chain_t *chain) {
  fail(chain, chain->beneath->req_status.MPI_ERROR);
  if (chain->persistent)
    chain->beneath->req_state = OMPI_REQUEST_INACTIVE; /* as MPI_Wait does */
  else
    (void)ompi_request_free(&chain->beneath);
  go_up(chain);
}

int gpurdma_mca_chain_progress(void) {
  if (NULL == running) return 0;
  gpurdma_chain_t *done = NULL, *left = NULL;
  int events = 0;
  if (0 != pthread_mutex_trylock(&lock)) return 0;
  for (gpurdma_chain_t *chain = running, *next; NULL != chain; chain = next) {
    next = chain->next;
    gpurdma_chain_t **list = REQUEST_COMPLETE(chain->beneath) ? &done : &left;
    chain->next = *list;
    *list = chain;
  }
  running = left;
  if (NULL == left) gpurdma_mca_progress_chains(0);
  pthread_mutex_unlock(&lock);
  while (NULL != done) {
    gpurdma_chain_t *chain = done;
    done = chain->next;
    ended_beneath(chain);
    ++events;
  }
  return events;
}
