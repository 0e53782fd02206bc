/* Every collective of Open MPI's coll interface, once: its name, the form of its arguments, which decides what a call
 * looks like, and which buffers it uses.
 *
 * A form is written down as its parameters, how they are kept in a gpurdma_call_t, and how they are passed on. From
 * these lists slots.c makes a function for each collective and kind of call (blocking, nonblocking, persistent), and
 * module.c the list of what is beneath. */
#ifndef GPURDMA_MCA_COLLECTIVES_H
#define GPURDMA_MCA_COLLECTIVES_H

/* X(name, form, send, receive). The last two say which memory is used, in the words of buffers.c. */
#define GPURDMA_COLLECTIVES(X)                                              \
  X(allgather, even, one, many)                                             \
  X(allgatherv, receive_uneven, one, uneven)                                \
  X(allreduce, reduction, one, one)                                         \
  X(alltoall, even, many, many)                                             \
  X(alltoallv, uneven, uneven, uneven)                                      \
  X(alltoallw, typed, typed, typed)                                         \
  X(barrier, nothing, nothing, nothing)                                     \
  X(bcast, root_buffer, nothing, bcast)                                     \
  X(exscan, reduction, one, one)                                            \
  X(gather, even_root, one_to_root, many_at_root)                           \
  X(gatherv, receive_uneven_root, one_to_root, uneven_at_root)              \
  X(reduce, reduction_root, one_to_root, one_at_root)                       \
  X(reduce_scatter, reduction_uneven, all_blocks, own_block)                \
  X(reduce_scatter_block, reduction, all_even_blocks, own_even_block)       \
  X(scan, reduction, one, one)                                              \
  X(scatter, even_root, many_from_root, one_from_root)                      \
  X(scatterv, send_uneven_root, uneven_from_root, one_from_root)            \
  X(neighbor_allgather, even, one, many_from_neighbors)                     \
  X(neighbor_allgatherv, receive_uneven, one, uneven_from_neighbors)        \
  X(neighbor_alltoall, even, many_to_neighbors, many_from_neighbors)        \
  X(neighbor_alltoallv, uneven, uneven_to_neighbors, uneven_from_neighbors) \
  X(neighbor_alltoallw, typed_far, typed_to_neighbors, typed_from_neighbors)

/* ---- the forms ---- */

#define GPURDMA_PARAMETERS_even                                                            \
  const void *send, gpurdma_count_t send_count, ompi_datatype_t *send_type, void *receive, \
      gpurdma_count_t receive_count, ompi_datatype_t *receive_type,
#define GPURDMA_KEEP_even                                                               \
  .send = {.address = (void *)(uintptr_t)send, .count = send_count, .type = send_type}, \
  .receive = {.address = receive, .count = receive_count, .type = receive_type},
#define GPURDMA_PASS_even(c) \
  (c)->send.address, (c)->send.count, (c)->send.type, (c)->receive.address, (c)->receive.count, (c)->receive.type,

#define GPURDMA_PARAMETERS_even_root GPURDMA_PARAMETERS_even int root,
#define GPURDMA_KEEP_even_root GPURDMA_KEEP_even.root = root,
#define GPURDMA_PASS_even_root(c) GPURDMA_PASS_even(c)(c)->root,

#define GPURDMA_PARAMETERS_receive_uneven                                                  \
  const void *send, gpurdma_count_t send_count, ompi_datatype_t *send_type, void *receive, \
      gpurdma_counts_t receive_counts, gpurdma_displacements_t receive_displacements, ompi_datatype_t *receive_type,
#define GPURDMA_KEEP_receive_uneven                                                     \
  .send = {.address = (void *)(uintptr_t)send, .count = send_count, .type = send_type}, \
  .receive = {                                                                          \
      .address = receive, .counts = receive_counts, .displacements = receive_displacements, .type = receive_type},
#define GPURDMA_PASS_receive_uneven(c)                                                           \
  (c)->send.address, (c)->send.count, (c)->send.type, (c)->receive.address, (c)->receive.counts, \
      (c)->receive.displacements, (c)->receive.type,

#define GPURDMA_PARAMETERS_receive_uneven_root GPURDMA_PARAMETERS_receive_uneven int root,
#define GPURDMA_KEEP_receive_uneven_root GPURDMA_KEEP_receive_uneven.root = root,
#define GPURDMA_PASS_receive_uneven_root(c) GPURDMA_PASS_receive_uneven(c)(c)->root,

#define GPURDMA_PARAMETERS_send_uneven_root                                                                    \
  const void *send, gpurdma_counts_t send_counts, gpurdma_displacements_t send_displacements,                  \
      ompi_datatype_t *send_type, void *receive, gpurdma_count_t receive_count, ompi_datatype_t *receive_type, \
      int root,
#define GPURDMA_KEEP_send_uneven_root           \
  .send = {.address = (void *)(uintptr_t)send,  \
           .counts = send_counts,               \
           .displacements = send_displacements, \
           .type = send_type},                  \
  .receive = {.address = receive, .count = receive_count, .type = receive_type}, .root = root,
#define GPURDMA_PASS_send_uneven_root(c)                                                              \
  (c)->send.address, (c)->send.counts, (c)->send.displacements, (c)->send.type, (c)->receive.address, \
      (c)->receive.count, (c)->receive.type, (c)->root,

#define GPURDMA_PARAMETERS_uneven                                                             \
  const void *send, gpurdma_counts_t send_counts, gpurdma_displacements_t send_displacements, \
      ompi_datatype_t *send_type, void *receive, gpurdma_counts_t receive_counts,             \
      gpurdma_displacements_t receive_displacements, ompi_datatype_t *receive_type,
#define GPURDMA_KEEP_uneven                     \
  .send = {.address = (void *)(uintptr_t)send,  \
           .counts = send_counts,               \
           .displacements = send_displacements, \
           .type = send_type},                  \
  .receive = {                                  \
      .address = receive, .counts = receive_counts, .displacements = receive_displacements, .type = receive_type},
#define GPURDMA_PASS_uneven(c)                                                                        \
  (c)->send.address, (c)->send.counts, (c)->send.displacements, (c)->send.type, (c)->receive.address, \
      (c)->receive.counts, (c)->receive.displacements, (c)->receive.type,

#define GPURDMA_PARAMETERS_typed                                                              \
  const void *send, gpurdma_counts_t send_counts, gpurdma_displacements_t send_displacements, \
      ompi_datatype_t *const *send_types, void *receive, gpurdma_counts_t receive_counts,     \
      gpurdma_displacements_t receive_displacements, ompi_datatype_t *const *receive_types,
#define GPURDMA_KEEP_typed                      \
  .send = {.address = (void *)(uintptr_t)send,  \
           .counts = send_counts,               \
           .displacements = send_displacements, \
           .types = send_types},                \
  .receive = {                                  \
      .address = receive, .counts = receive_counts, .displacements = receive_displacements, .types = receive_types},
#define GPURDMA_PASS_typed(c)                                                                          \
  (c)->send.address, (c)->send.counts, (c)->send.displacements, (c)->send.types, (c)->receive.address, \
      (c)->receive.counts, (c)->receive.displacements, (c)->receive.types,

/* As typed, with displacements that are wider in 4.1 and 5.0. */
#define GPURDMA_PARAMETERS_typed_far                                                              \
  const void *send, gpurdma_counts_t send_counts, gpurdma_far_displacements_t send_displacements, \
      ompi_datatype_t *const *send_types, void *receive, gpurdma_counts_t receive_counts,         \
      gpurdma_far_displacements_t receive_displacements, ompi_datatype_t *const *receive_types,
#define GPURDMA_KEEP_typed_far                            \
  .send = {.address = (void *)(uintptr_t)send,            \
           .counts = send_counts,                         \
           .far_displacements = send_displacements,       \
           .types = send_types},                          \
  .receive = {.address = receive,                         \
              .counts = receive_counts,                   \
              .far_displacements = receive_displacements, \
              .types = receive_types},
#define GPURDMA_PASS_typed_far(c)                                                                          \
  (c)->send.address, (c)->send.counts, (c)->send.far_displacements, (c)->send.types, (c)->receive.address, \
      (c)->receive.counts, (c)->receive.far_displacements, (c)->receive.types,

/* Of reductions both buffers have the same type; the count is kept with both, the counts with both too. */
#define GPURDMA_PARAMETERS_reduction \
  const void *send, void *receive, gpurdma_count_t count, ompi_datatype_t *type, ompi_op_t *op,
#define GPURDMA_KEEP_reduction                                                \
  .send = {.address = (void *)(uintptr_t)send, .count = count, .type = type}, \
  .receive = {.address = receive, .count = count, .type = type}, .op = op,
#define GPURDMA_PASS_reduction(c) \
  (c)->send.address, (c)->receive.address, (c)->receive.count, (c)->receive.type, (c)->op,

#define GPURDMA_PARAMETERS_reduction_root GPURDMA_PARAMETERS_reduction int root,
#define GPURDMA_KEEP_reduction_root GPURDMA_KEEP_reduction.root = root,
#define GPURDMA_PASS_reduction_root(c) GPURDMA_PASS_reduction(c)(c)->root,

#define GPURDMA_PARAMETERS_reduction_uneven \
  const void *send, void *receive, gpurdma_counts_t counts, ompi_datatype_t *type, ompi_op_t *op,
#define GPURDMA_KEEP_reduction_uneven                                           \
  .send = {.address = (void *)(uintptr_t)send, .counts = counts, .type = type}, \
  .receive = {.address = receive, .counts = counts, .type = type}, .op = op,
#define GPURDMA_PASS_reduction_uneven(c) \
  (c)->send.address, (c)->receive.address, (c)->receive.counts, (c)->receive.type, (c)->op,

#define GPURDMA_PARAMETERS_root_buffer void *receive, gpurdma_count_t count, ompi_datatype_t *type, int root,
#define GPURDMA_KEEP_root_buffer .receive = {.address = receive, .count = count, .type = type}, .root = root,
#define GPURDMA_PASS_root_buffer(c) (c)->receive.address, (c)->receive.count, (c)->receive.type, (c)->root,

#define GPURDMA_PARAMETERS_nothing
#define GPURDMA_KEEP_nothing
#define GPURDMA_PASS_nothing(c)

#endif
