/* Requests of nonblocking and persistent collectives.
 *
 * They come from a pool, so that starting an operation allocates nothing once as many requests were made as are in use
 * at a time. (Open MPI's own free list is not used: its inline code needs a 16-byte compare-and-swap in 4.1, so it
 * would tie us to the compiler flags that Open MPI was built with.) A request keeps its communicator alive until it is
 * freed, which happens in the application's own wait or test and not from progress: the last reference destroys the
 * communicator, and with it the runtime's part of it.
 *
 * Freeing a persistent request while it is active lets the operation end first; the request is then freed by the sweep.
 */
#include <pthread.h>

#include "mca/gpurdma_mca.h"

enum phase { kActive, kEnded, kAbandoned /* freed by the application while active */ };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gpurdma_request_t *pool;              /* not in use */
static gpurdma_request_t *_Atomic abandoned; /* abandoned, and ended since */

static void push(gpurdma_request_t *request) {
  pthread_mutex_lock(&lock);
  request->next = pool;
  pool = request;
  pthread_mutex_unlock(&lock);
}

static gpurdma_request_t *pop(void) {
  pthread_mutex_lock(&lock);
  gpurdma_request_t *request = pool;
  if (NULL != request) pool = request->next;
  pthread_mutex_unlock(&lock);
  return NULL == request ? OBJ_NEW(gpurdma_request_t) : request;
}

static int release(gpurdma_request_t *request) {
  ompi_communicator_t *comm = request->comm;
  if (NULL != request->persistent) gpurdma_persistent_free(request->persistent);
  if (NULL != request->chain) gpurdma_mca_chain_free(request->chain);
  request->persistent = NULL;
  request->chain = NULL;
  request->comm = NULL;
  push(request);
  OBJ_RELEASE(comm);
  return OMPI_SUCCESS;
}

/* Whether the operation has ended, so that the request can be freed now. Otherwise it will be when the operation ends.
 */
static bool ended_or_abandon(gpurdma_request_t *request) {
  if (REQUEST_COMPLETE(&request->super.super)) return true;
  if (kActive == atomic_exchange(&request->phase, kAbandoned)) return false;
  while (!REQUEST_COMPLETE(&request->super.super)) { /* another thread is just about to set it */
  }
  return true;
}

static int free_request(ompi_request_t **handle) {
  gpurdma_request_t *request = (gpurdma_request_t *)*handle;
  const bool persistent = request->super.super.req_persistent;
  if (!persistent && !REQUEST_COMPLETE(*handle)) return MPI_ERR_REQUEST; /* MPI forbids it */
  OMPI_REQUEST_FINI(*handle);
  *handle = MPI_REQUEST_NULL;
  if (persistent && !ended_or_abandon(request)) return OMPI_SUCCESS;
  return release(request);
}

static int start(size_t count, ompi_request_t **requests) {
  for (size_t index = 0; index < count; ++index) {
    gpurdma_request_t *request = (gpurdma_request_t *)requests[index];
    ompi_request_t *handle = requests[index];
    handle->req_status.MPI_ERROR = MPI_SUCCESS;
    handle->req_complete = REQUEST_PENDING;
    handle->req_state = OMPI_REQUEST_ACTIVE;
    atomic_store(&request->phase, kActive);
    const int error = NULL != request->chain
                          ? gpurdma_mca_chain_start(request->chain)
                          : gpurdma_mca_error(gpurdma_persistent_start(request->persistent), request->comm);
    if (OMPI_SUCCESS != error) {
      handle->req_complete = REQUEST_COMPLETED;
      handle->req_state = OMPI_REQUEST_INACTIVE;
      return error;
    }
  }
  return OMPI_SUCCESS;
}

static void construct(gpurdma_request_t *request) {
  ompi_request_t *handle = &request->super.super;
  handle->req_type = OMPI_REQUEST_COLL;
  handle->req_free = free_request;
  handle->req_start = start;
  handle->req_cancel = NULL;
  request->comm = NULL;
  request->persistent = NULL;
  request->chain = NULL;
  atomic_init(&request->phase, kEnded);
}

OBJ_CLASS_INSTANCE(gpurdma_request_t, ompi_coll_base_nbc_request_t, construct, NULL);

void gpurdma_mca_requests_close(void) {
  gpurdma_mca_requests_sweep();
  while (NULL != pool) {
    gpurdma_request_t *request = pool;
    pool = request->next;
    OBJ_RELEASE(request);
  }
}

gpurdma_request_t *gpurdma_mca_request_new(ompi_communicator_t *comm, bool persistent) {
  gpurdma_request_t *request = pop();
  if (NULL == request) return NULL;
  ompi_request_t *handle = &request->super.super;
  OMPI_REQUEST_INIT(handle, persistent);
  if (!persistent) handle->req_state = OMPI_REQUEST_ACTIVE;
  handle->req_mpi_object.comm = comm;
  handle->req_status.MPI_SOURCE = MPI_ANY_SOURCE;
  handle->req_status.MPI_TAG = MPI_ANY_TAG;
  handle->req_status.MPI_ERROR = MPI_SUCCESS;
  handle->req_status._ucount = 0;
  handle->req_status._cancelled = 0;
  request->persistent = NULL;
  request->chain = NULL;
  request->comm = comm;
  OBJ_RETAIN(comm);
  atomic_store_explicit(&request->phase, persistent ? kEnded : kActive, memory_order_relaxed);
  return request;
}

void gpurdma_mca_request_drop(gpurdma_request_t *request) { (void)release(request); }

void gpurdma_mca_completed(void *cookie, int status) {
  gpurdma_request_t *request = cookie;
  gpurdma_mca_request_complete(request, gpurdma_mca_error(status, request->comm));
}

void gpurdma_mca_request_complete(gpurdma_request_t *request, int error) {
  request->super.super.req_status.MPI_ERROR = error;
  if (kActive == atomic_exchange(&request->phase, kEnded)) {
    (void)ompi_request_complete(&request->super.super, true); /* from here on it may be freed at any time */
    return;
  }
  pthread_mutex_lock(&lock);
  request->next = abandoned;
  abandoned = request;
  pthread_mutex_unlock(&lock);
}

void gpurdma_mca_requests_sweep(void) {
  if (NULL == abandoned) return;
  pthread_mutex_lock(&lock);
  gpurdma_request_t *list = abandoned;
  abandoned = NULL;
  pthread_mutex_unlock(&lock);
  while (NULL != list) {
    gpurdma_request_t *request = list;
    list = request->next;
    (void)release(request);
  }
}

int gpurdma_mca_error(int status, ompi_communicator_t *comm) {
  if (status < 0) return -status; /* what gpurdma_compat_broken found */
  switch (status) {
    case GPURDMA_OK:
      return OMPI_SUCCESS;
    case GPURDMA_NO_MEMORY:
      return MPI_ERR_NO_MEM;
    case GPURDMA_PEER_LOST:
      return GPURDMA_ERR_PROC_FAILED;
    case GPURDMA_INVALID:
      return MPI_ERR_INTERN;
    default:
      break; /* deadline, failed elsewhere, closed, transport: the log line says which */
  }
  const int broken = gpurdma_compat_broken(comm); /* behind one of these may be a process that died */
  return broken ? broken : MPI_ERR_OTHER;
}
