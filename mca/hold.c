/* Op and type of persistent requests beneath.
 *
 * MPI allows an op and a datatype to be freed while a persistent request that uses them lives on. The releases supported here
 * keep neither and crash at the next start, so gpurdma keeps both for the requests that it passes on: it puts its own function
 * in the place of the one that frees the request. */
#include <pthread.h>
#include <stdlib.h>

#include "mca/gpurdma_mca.h"

typedef struct hold {
  ompi_request_free_fn_t free_request; /* the request's own */
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

static int free_request(ompi_request_t **handle) {
  ompi_request_t *request = *handle;
  hold_t *hold = take(request); /* before the request is freed: another thread may get it at once */
  if (NULL == hold) return MPI_ERR_REQUEST;
  request->req_free = hold->free_request;
  const int error = request->req_free(handle);
  if (OMPI_SUCCESS != error && put(request, hold)) return error; /* it is still active */
  OBJ_RELEASE(hold->op);
  OMPI_DATATYPE_RELEASE(hold->type);
  free(hold);
  return error;
}

static bool put(ompi_request_t *request, hold_t *hold) {
  pthread_mutex_lock(&lock);
  const int error = opal_hash_table_set_value_uint64(&holds, id_of(request), hold);
  pthread_mutex_unlock(&lock);
  if (OPAL_SUCCESS == error) request->req_free = free_request;
  return OPAL_SUCCESS == error;
}

void gpurdma_mca_hold(ompi_request_t *request, ompi_op_t *op, ompi_datatype_t *type) {
  if (ompi_op_is_intrinsic(op) && ompi_datatype_is_predefined(type)) return;
  hold_t *hold = malloc(sizeof *hold);
  if (NULL == hold) return; /* as stock */
  *hold = (hold_t){request->req_free, op, type};
  OBJ_RETAIN(op);
  OBJ_RETAIN(type);
  if (put(request, hold)) return;
  OBJ_RELEASE(op);
  OBJ_RELEASE(type);
  free(hold);
}
