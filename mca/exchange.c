/* Addresses between two processes of a communicator, as point-to-point messages of Open MPI's own.
 *
 * They are the only messages that gpurdma sends outside its transport: they never block, and take no place in the order
 * of the collectives beneath. The message layer may keep the communicator alive until its requests are freed, so
 * freeing them can destroy the communicator, which calls back into the runtime. That may not happen under the runtime's
 * lock, and so ended exchanges are put on a list that is swept from the progress callback and where a communicator is
 * freed. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mca/gpurdma_mca.h"

/* Tags of collectives are negative. What Open MPI's own parts use of them, from coll_tags.h and the sources:
 *
 *   4.1   -10 to -26 collectives, -27 and below nonblocking ones, neighbours, UCC and hcoll
 *   5.0   -7 to -9 communicator creation, -10 to -26, -27 to -30 fault tolerance, -31 UCC, and on downwards
 *   6.0   the same, and -32, -33 for graph creation
 *
 * Nothing uses -2 to -6 (-1 is MPI_ANY_TAG, which matches no negative tag). It is outside the range that fault
 * tolerance takes for collectives, so that a dead peer ends these messages as it ends any other. pml/ucx keeps 24 bits
 * of a tag, and there the tags of nonblocking collectives, counted down from -27, come by here once in 8 million; they
 * do not meet, since an exchange takes place once for each pair of ranks, at the first operation of a communicator. */
enum { kTag = -5 };

typedef struct exchange {
  struct exchange *next;
  ompi_request_t *send, *receive;
  void *theirs; /* the runtime's buffer, until the exchange ends */
  size_t bytes, capacity;
  unsigned char data[]; /* what is sent, then what is received: messages may outlive the runtime's buffers */
} exchange_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static exchange_t *_Atomic ended;
static bool layer_gone; /* the message layer is closed: its requests must not be touched any more */

static bool request_done(const ompi_request_t *request) { return NULL == request || REQUEST_COMPLETE(request); }

static bool request_failed(const ompi_request_t *request) {
  return MPI_SUCCESS != request->req_status.MPI_ERROR || request->req_status._cancelled;
}

void *gpurdma_mca_exchange(void *module, int rank, const void *mine, size_t bytes, void *theirs, size_t capacity) {
  gpurdma_module_t *self = module;
  exchange_t *exchange = calloc(1, sizeof *exchange + bytes + capacity);
  if (NULL == exchange) return NULL;
  exchange->theirs = theirs;
  exchange->bytes = bytes;
  exchange->capacity = capacity;
  memcpy(exchange->data, mine, bytes);
  if (OMPI_SUCCESS !=
      MCA_PML_CALL(irecv(exchange->data + bytes, capacity, MPI_BYTE, rank, kTag, self->comm, &exchange->receive))) {
    free(exchange);
    return NULL;
  }
  if (OMPI_SUCCESS != MCA_PML_CALL(isend(exchange->data, bytes, MPI_BYTE, rank, kTag, MCA_PML_BASE_SEND_STANDARD,
                                         self->comm, &exchange->send))) {
    exchange->send = NULL;
    gpurdma_mca_exchange_end(exchange);
    return NULL;
  }
  return exchange;
}

int gpurdma_mca_exchange_test(void *opaque, size_t *received) {
  exchange_t *exchange = opaque;
  if (!request_done(exchange->send) || !request_done(exchange->receive)) return 0;
  if (request_failed(exchange->send) || request_failed(exchange->receive)) return -1;
  *received = exchange->receive->req_status._ucount;
  memcpy(exchange->theirs, exchange->data + exchange->bytes, *received);
  return 1;
}

void gpurdma_mca_exchange_end(void *opaque) {
  exchange_t *exchange = opaque;
  /* A send cannot be cancelled; it ends when the peer takes it or is found dead. */
  if (!layer_gone && !request_done(exchange->receive)) (void)ompi_request_cancel(exchange->receive);
  pthread_mutex_lock(&lock);
  exchange->next = ended;
  ended = exchange;
  pthread_mutex_unlock(&lock);
}

void gpurdma_mca_exchange_sweep(void) {
  if (layer_gone || NULL == ended) return;
  pthread_mutex_lock(&lock);
  exchange_t *list = ended, *pending = NULL, *last = NULL;
  ended = NULL;
  pthread_mutex_unlock(&lock);
  while (NULL != list) {
    exchange_t *exchange = list;
    list = exchange->next;
    if (!request_done(exchange->send) || !request_done(exchange->receive)) {
      exchange->next = pending;
      pending = exchange;
      if (NULL == last) last = exchange;
      continue;
    }
    if (NULL != exchange->send) (void)ompi_request_free(&exchange->send);
    (void)ompi_request_free(&exchange->receive);
    free(exchange);
  }
  if (NULL == pending) return;
  pthread_mutex_lock(&lock);
  last->next = ended;
  ended = pending;
  pthread_mutex_unlock(&lock);
}

void gpurdma_mca_exchange_closing(void) { layer_gone = true; }

void gpurdma_mca_exchange_close(void) {
  exchange_t *list = ended;
  ended = NULL;
  while (NULL != list) {
    exchange_t *exchange = list;
    list = exchange->next;
    free(exchange); /* the message layer is closed by now and has taken its requests along */
  }
  layer_gone = false; /* with MPI Sessions all may be opened again */
}
