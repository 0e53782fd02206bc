/* Host memory in place of a GPU's: the component beneath is given stand-ins of the same layout, into which the operands
 * are copied before the operation and out of which the results are copied after it.
 *
 * A stand-in holds the span from the first byte that is touched to the last one; only bytes that the datatype touches
 * are copied. What is received is copied down as well, since not all of it need be written: the first rank of
 * MPI_Exscan, neighbours that do not exist.
 *
 * Where a copy fails, the operation runs beneath all the same, since the peers count on it; the call returns an error,
 * and what the peers received is not to be relied on. Without memory for a stand-in nothing can be run, and peers may
 * wait in vain, as when the component beneath finds no memory. */
#include <stdlib.h>

#include "mca/gpurdma_mca.h"

enum { kAlignment = 64 };

/* Gives one buffer a stand-in for everything that `layout` touches, aligned as the buffer is. */
static int stand_in(gpurdma_buffer_t *buffer, const gpurdma_layout_t *layout, struct gpurdma_stand_in *stand_in) {
  const gpurdma_span_t span = gpurdma_mca_layout_span(layout);
  const size_t shift = ((uintptr_t)buffer->address + (uintptr_t)span.low) % kAlignment;
  const size_t bytes = shift + (size_t)(span.high - span.low);
  void *block = gpurdma_stand_in_take(gpurdma_mca_runtime, bytes);
  if (NULL == block) return MPI_ERR_NO_MEM;
  stand_in->block = block;
  stand_in->bytes = bytes;
  buffer->address = (void *)((uintptr_t)block + shift - (uintptr_t)span.low);
  return OMPI_SUCCESS;
}

/* Copies of everything in a layout, from one address to another. */
static void add_copies(gpurdma_rows_t **copies, size_t *count, const gpurdma_layout_t *layout, void *to,
                       const void *from) {
  for (size_t index = 0; index < layout->count; ++index) {
    const gpurdma_piece_t *piece = layout->pieces + index;
    const size_t pitch = piece->rows > 1 ? (size_t)piece->pitch : piece->width;
    *(*copies)++ = (gpurdma_rows_t){.dst = (char *)to + piece->offset,
                                    .src = (const char *)from + piece->offset,
                                    .width = piece->width,
                                    .rows = piece->rows,
                                    .dst_pitch = pitch,
                                    .src_pitch = pitch};
    ++*count;
  }
}

static int make(const gpurdma_call_t *call, const gpurdma_layout_t *send, const gpurdma_layout_t *receive,
                const gpurdma_layout_t *written, gpurdma_staged_t *staged) {
  const size_t copies = send->count + receive->count + written->count;
  int error = OMPI_SUCCESS;
  if (0 != send->count) error = stand_in(&staged->call.send, send, &staged->send);
  if (OMPI_SUCCESS == error && 0 != receive->count) error = stand_in(&staged->call.receive, receive, &staged->receive);
  if (OMPI_SUCCESS != error) return error;
  gpurdma_rows_t *next = staged->down = malloc((copies + !copies) * sizeof *next);
  if (NULL == next) return MPI_ERR_NO_MEM;
  add_copies(&next, &staged->down_count, send, staged->call.send.address, call->send.address);
  add_copies(&next, &staged->down_count, receive, staged->call.receive.address, call->receive.address);
  staged->up = next;
  add_copies(&next, &staged->up_count, written, call->receive.address, staged->call.receive.address);
  return OMPI_SUCCESS;
}

int gpurdma_mca_staged_make(const gpurdma_call_t *call, gpurdma_places_t places, gpurdma_staged_t *staged) {
  gpurdma_layout_t send = {0}, receive = {0}, written = {0};
  *staged = (gpurdma_staged_t){.call = *call};
  int error = MPI_ERR_NO_MEM;
  if ((!places.send || gpurdma_mca_lay_out_send(call, &send)) &&
      (!places.receive || (gpurdma_mca_lay_out_receive(call, &receive) && gpurdma_mca_lay_out_written(call, &written))))
    error = make(call, &send, &receive, &written, staged);
  if (OMPI_SUCCESS != error) {
    gpurdma_mca_log(0, "no memory for a copy, in host memory, of an operand that lies on a GPU");
    gpurdma_mca_staged_end(staged);
  }
  gpurdma_mca_layout_free(&send);
  gpurdma_mca_layout_free(&receive);
  gpurdma_mca_layout_free(&written);
  return error;
}

void gpurdma_mca_staged_end(gpurdma_staged_t *staged) {
  gpurdma_stand_in_give(gpurdma_mca_runtime, staged->send.block, staged->send.bytes);
  gpurdma_stand_in_give(gpurdma_mca_runtime, staged->receive.block, staged->receive.bytes);
  free(staged->down);
  staged->down = staged->up = NULL;
  staged->send.block = staged->receive.block = NULL;
}

typedef struct waiting {
  atomic_bool ended;
  int status;
} waiting_t;

static void ended(void *cookie, int status) {
  waiting_t *waiting = cookie;
  waiting->status = status;
  atomic_store(&waiting->ended, true);
}

/* Copies, and advances everything meanwhile. Returns an MPI error. */
static int copy_and_wait(const gpurdma_rows_t *copies, size_t count, bool entry, ompi_communicator_t *comm) {
  waiting_t waiting = {false, GPURDMA_OK};
  if (0 == count) return OMPI_SUCCESS;
  const int status = gpurdma_copy(gpurdma_mca_runtime, copies, count, entry, ended, &waiting);
  if (GPURDMA_OK != status) return gpurdma_mca_error(status, comm);
  while (!atomic_load(&waiting.ended)) gpurdma_mca_advance();
  return gpurdma_mca_error(waiting.status, comm);
}

int gpurdma_mca_staged_run(gpurdma_module_t *module, const gpurdma_call_t *call, gpurdma_places_t places) {
  gpurdma_staged_t staged;
  int error = gpurdma_mca_staged_make(call, places, &staged);
  if (OMPI_SUCCESS != error) return error;
  error = copy_and_wait(staged.down, staged.down_count, true, call->comm);
  const int failed = gpurdma_mca_pass[call->collective].blocking(module, &staged.call);
  if (OMPI_SUCCESS == error) error = failed;
  if (OMPI_SUCCESS == error) error = copy_and_wait(staged.up, staged.up_count, false, call->comm);
  gpurdma_mca_staged_end(&staged);
  return error;
}
