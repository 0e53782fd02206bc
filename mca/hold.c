/* What requests of the component beneath use: communicator, op and type.
 *
 * MPI allows all three to be freed while a nonblocking or persistent operation that uses them lives on. The releases
 * supported here keep op and type of nonblocking operations only, and crash otherwise. So gpurdma keeps all of them for
 * the requests that it passes on: it puts its own function in the place of the one that frees the request. */
#include <pthread.h>
#include <stdlib.h>

#include "mca/gpurdma_mca.h"

typedef struct hold {
  ompi_request_free_fn_t free_request; /* the request's own */
  ompi_communicator_t *comm;
  ompi_op_t *op;
  ompi_datatype_t *type;
} hold_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static opal_hash_table_t holds; /* request -> hold_t */

static uint64_t id_of(const ompi_request_t *request) { return (uint64_t)(uintptr_t)request; }

void gpurdma_mca_hold_open(void) {
  OBJ_CONSTRUCT(&holds, opal_hash_table_t);
  (void)opal_hash_table_init(&holds, 16);
}

void gpurdma_mca_hold_close(void) {
  uint64_t id;
  void *hold, *node;
  /* What is left belongs to requests that the application never freed. */
  for (int more = opal_hash_table_get_first_key_uint64(&holds, &id, &hold, &node); OPAL_SUCCESS == more;
       more = opal_hash_table_get_next_key_uint64(&holds, &id, &hold, node, &node))
    free(hold);
  OBJ_DESTRUCT(&holds);
}

static hold_t *take(const ompi_request_t *request) {
  void *hold = NULL;
  pthread_mutex_lock(&lock);
  if (OPAL_SUCCESS == opal_hash_table_get_value_uint64(&holds, id_of(request), &hold))
    (void)opal_hash_table_remove_value_uint64(&holds, id_of(request));
  pthread_mutex_unlock(&lock);
  return hold;
}

static bool put(ompi_request_t *request, hold_t *hold);

static void release(hold_t *hold) {
  OBJ_RELEASE(hold->op);
  OMPI_DATATYPE_RELEASE(hold->type);
  OBJ_RELEASE(hold->comm);
  free(hold);
}

static int free_request(ompi_request_t **handle) {
  ompi_request_t *request = *handle;
  hold_t *hold = take(request); /* before the request is freed: another thread may get it at once */
  if (NULL == hold) return MPI_ERR_REQUEST;
  request->req_free = hold->free_request;
  const int error = request->req_free(handle);
  if (OMPI_SUCCESS != error && put(request, hold)) return error; /* it is still active */
  release(hold);
  return error;
}

static bool put(ompi_request_t *request, hold_t *hold) {
  pthread_mutex_lock(&lock);
  const int error = opal_hash_table_set_value_uint64(&holds, id_of(request), hold);
  pthread_mutex_unlock(&lock);
  if (OPAL_SUCCESS == error) request->req_free = free_request;
  return OPAL_SUCCESS == error;
}

void gpurdma_mca_hold(ompi_request_t *request, ompi_communicator_t *comm, ompi_op_t *op, ompi_datatype_t *type) {
  if (OMPI_REQUEST_COLL != request->req_type) return; /* the shared request of what is complete at once */
  hold_t *hold = malloc(sizeof *hold);
  if (NULL == hold) return; /* as without us */
  *hold = (hold_t){request->req_free, comm, op, type};
  OBJ_RETAIN(comm);
  OBJ_RETAIN(op);
  OMPI_DATATYPE_RETAIN(type);
  if (!put(request, hold)) release(hold);
}
