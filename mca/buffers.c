/* Which memory a collective reads and writes: on which ranks, of what shape, and what MPI_IN_PLACE makes of it.
 *
 * Whatever the standard calls not significant (the receive buffer of MPI_Gather away from the root, the send buffer and
 * what describes it where MPI_IN_PLACE stands) may be garbage, and is not looked at. */
#include <stdlib.h>

#include "mca/gpurdma_mca.h"

/* What a process is in a collective with a root. Elsewhere it is all of this. */
enum role {
  kRoot = 1,  /* it is the root */
  kLeaf = 2,  /* it takes the part that all members take, which between two groups the root's group does not */
  kOther = 4, /* the same, and it is not the root */
  kAnyone = 7,
};

enum shape {
  kNothing,
  kOne,       /* count elements */
  kMany,      /* count elements for each peer */
  kUneven,    /* counts[peer] elements at displacements[peer], in extents of the type */
  kTyped,     /* counts[peer] elements of types[peer] at displacements[peer], in bytes */
  kAllBlocks, /* the sum of counts */
  kOwnBlock,  /* counts[own rank] */
};

enum peers {
  kMembers, /* of the communicator; between two groups those of the other one */
  kOwnGroup,
  kSources, /* neighbours */
  kDestinations,
};

typedef struct side {
  enum shape shape;
  enum peers peers;
  int used, written; /* roles; what is written is said of receive buffers */
  bool shorter;      /* receive buffers: with MPI_IN_PLACE the input is what the send buffer would be, and longer */
} side_t;

static const side_t side_nothing = {.shape = kNothing};
static const side_t side_one = {.shape = kOne, .used = kAnyone, .written = kAnyone};
static const side_t side_many = {.shape = kMany, .used = kAnyone, .written = kAnyone};
static const side_t side_uneven = {.shape = kUneven, .used = kAnyone, .written = kAnyone};
static const side_t side_typed = {.shape = kTyped, .used = kAnyone, .written = kAnyone};
static const side_t side_bcast = {.shape = kOne, .used = kRoot | kOther, .written = kOther};
static const side_t side_one_to_root = {.shape = kOne, .used = kLeaf};
static const side_t side_one_at_root = {.shape = kOne, .used = kRoot, .written = kRoot};
static const side_t side_many_at_root = {.shape = kMany, .used = kRoot, .written = kRoot};
static const side_t side_uneven_at_root = {.shape = kUneven, .used = kRoot, .written = kRoot};
static const side_t side_many_from_root = {.shape = kMany, .used = kRoot};
static const side_t side_uneven_from_root = {.shape = kUneven, .used = kRoot};
static const side_t side_one_from_root = {.shape = kOne, .used = kLeaf, .written = kLeaf};
static const side_t side_all_blocks = {.shape = kAllBlocks, .peers = kOwnGroup, .used = kAnyone};
static const side_t side_own_block = {.shape = kOwnBlock, .used = kAnyone, .written = kAnyone, .shorter = true};
static const side_t side_all_even_blocks = {.shape = kMany, .peers = kOwnGroup, .used = kAnyone};
static const side_t side_own_even_block = {.shape = kOne, .used = kAnyone, .written = kAnyone, .shorter = true};
static const side_t side_many_to_neighbors = {.shape = kMany, .peers = kDestinations, .used = kAnyone};
static const side_t side_many_from_neighbors = {.shape = kMany, .peers = kSources, .used = kAnyone, .written = kAnyone};
static const side_t side_uneven_to_neighbors = {.shape = kUneven, .peers = kDestinations, .used = kAnyone};
static const side_t side_uneven_from_neighbors = {
    .shape = kUneven, .peers = kSources, .used = kAnyone, .written = kAnyone};
static const side_t side_typed_to_neighbors = {.shape = kTyped, .peers = kDestinations, .used = kAnyone};
static const side_t side_typed_from_neighbors = {
    .shape = kTyped, .peers = kSources, .used = kAnyone, .written = kAnyone};

static const struct {
  const side_t *send, *receive;
} sides[] = {
#define ROW(name, form, send, receive) [GPURDMA_##name] = {&side_##send, &side_##receive},
    GPURDMA_COLLECTIVES(ROW)
#undef ROW
        [GPURDMA_reduce_local] = {&side_one, &side_one},
};

static int role_in(const gpurdma_call_t *call) {
  if (OMPI_COMM_IS_INTER(call->comm)) {
    if (MPI_ROOT == call->root) return kRoot;
    return MPI_PROC_NULL == call->root ? 0 : kLeaf | kOther;
  }
  return ompi_comm_rank(call->comm) == call->root ? kRoot | kLeaf : kLeaf | kOther;
}

static bool in_place(const gpurdma_call_t *call) { return MPI_IN_PLACE == call->send.address; }

static bool uses_send(const gpurdma_call_t *call) {
  const side_t *side = sides[call->collective].send;
  return kNothing != side->shape && !in_place(call) && (side->used & role_in(call));
}

static bool uses_receive(const gpurdma_call_t *call) {
  const side_t *side = sides[call->collective].receive;
  return kNothing != side->shape && MPI_IN_PLACE != call->receive.address && (side->used & role_in(call));
}

static int peers_of(const gpurdma_call_t *call, enum peers peers) {
  int sources = 0, destinations = 0;
  if (kSources == peers || kDestinations == peers) {
    (void)mca_topo_base_neighbor_count(call->comm, &sources, &destinations);
    return kSources == peers ? sources : destinations;
  }
  return kMembers == peers && OMPI_COMM_IS_INTER(call->comm) ? ompi_comm_remote_size(call->comm)
                                                             : ompi_comm_size(call->comm);
}

static ptrdiff_t extent_of(const ompi_datatype_t *type) { return type->super.ub - type->super.lb; }

/* The elements for one peer: how many, of what, how many bytes from the buffer's address. */
typedef struct part {
  size_t count;
  const ompi_datatype_t *type;
  ptrdiff_t offset;
} part_t;

static part_t part_at(const gpurdma_buffer_t *buffer, enum shape shape, int peer) {
  if (kTyped == shape)
    return (part_t){gpurdma_count_at(buffer->counts, peer), buffer->types[peer],
                    buffer->far_displacements ? gpurdma_far_displacement_at(buffer->far_displacements, peer)
                                              : gpurdma_displacement_at(buffer->displacements, peer)};
  return (part_t){gpurdma_count_at(buffer->counts, peer), buffer->type,
                  gpurdma_displacement_at(buffer->displacements, peer) * extent_of(buffer->type)};
}

/* The whole of a buffer that is not described peer by peer. */
static part_t whole(const gpurdma_call_t *call, const gpurdma_buffer_t *buffer, const side_t *side) {
  part_t all = {0, buffer->type, 0};
  switch (side->shape) {
    case kOne:
      all.count = buffer->count;
      break;
    case kMany:
      all.count = buffer->count * (size_t)peers_of(call, side->peers);
      break;
    case kOwnBlock:
      all.count = gpurdma_count_at(buffer->counts, ompi_comm_rank(call->comm));
      break;
    case kAllBlocks: {
      const int peers = peers_of(call, side->peers);
      for (int peer = 0; peer < peers; ++peer) all.count += gpurdma_count_at(buffer->counts, peer);
      break;
    }
    default:
      break;
  }
  return all;
}

static bool by_peer(const side_t *side) { return kUneven == side->shape || kTyped == side->shape; }

static bool is_nothing(const part_t *part) { return 0 == part->count || 0 == part->type->super.size; }

/* The first part that is not empty. Looks at no more than it must: this is done in every call. */
static part_t first(const gpurdma_call_t *call, const gpurdma_buffer_t *buffer, const side_t *side) {
  if (!by_peer(side)) return whole(call, buffer, side);
  const int peers = peers_of(call, side->peers);
  for (int peer = 0; peer < peers; ++peer) {
    const part_t part = part_at(buffer, side->shape, peer);
    if (!is_nothing(&part)) return part;
  }
  return (part_t){0, NULL, 0};
}

/* Whether the first byte that is touched lies on a GPU. Then the whole of the buffer does. */
static bool lies_on_gpu(const gpurdma_call_t *call, const gpurdma_buffer_t *buffer, const side_t *side) {
  const part_t part = first(call, buffer, side);
  if (is_nothing(&part)) return false;
  return gpurdma_on_device(gpurdma_mca_runtime, (char *)buffer->address + part.offset + part.type->super.true_lb);
}

/* Where the input in place is longer than the output. */
static const side_t *read_side(const gpurdma_call_t *call) {
  const side_t *receive = sides[call->collective].receive;
  return receive->shorter && in_place(call) ? sides[call->collective].send : receive;
}

gpurdma_places_t gpurdma_mca_places(const gpurdma_call_t *call) {
  gpurdma_places_t places = {false, false};
  if (uses_send(call)) places.send = lies_on_gpu(call, &call->send, sides[call->collective].send);
  if (uses_receive(call)) places.receive = lies_on_gpu(call, &call->receive, read_side(call));
  return places;
}

static bool lay_out(const gpurdma_call_t *call, const gpurdma_buffer_t *buffer, const side_t *side,
                    gpurdma_layout_t *layout) {
  if (!by_peer(side)) {
    const part_t all = whole(call, buffer, side);
    return gpurdma_mca_layout_add(layout, all.offset, all.count, all.type);
  }
  const int peers = peers_of(call, side->peers);
  for (int peer = 0; peer < peers; ++peer) {
    const part_t part = part_at(buffer, side->shape, peer);
    if (!gpurdma_mca_layout_add(layout, part.offset, part.count, part.type)) return false;
  }
  return true;
}

bool gpurdma_mca_lay_out_send(const gpurdma_call_t *call, gpurdma_layout_t *layout) {
  return lay_out(call, &call->send, sides[call->collective].send, layout);
}

bool gpurdma_mca_lay_out_receive(const gpurdma_call_t *call, gpurdma_layout_t *layout) {
  return lay_out(call, &call->receive, read_side(call), layout);
}

bool gpurdma_mca_lay_out_written(const gpurdma_call_t *call, gpurdma_layout_t *layout) {
  const side_t *side = sides[call->collective].receive;
  return !(side->written & role_in(call)) || lay_out(call, &call->receive, side, layout);
}

/* ---- what a call needs beyond the call ---- */

enum { kArrays = 3 }; /* counts, displacements, types */

static int arrays_of(const gpurdma_call_t *call, const side_t *side, bool used) {
  if (!used) return 0;
  if (by_peer(side)) return peers_of(call, side->peers);
  return kOwnBlock == side->shape || kAllBlocks == side->shape ? ompi_comm_size(call->comm) : 0;
}

static char *keep(gpurdma_buffer_t *buffer, const side_t *side, int n, char *room) {
  const size_t bytes = (size_t)n * GPURDMA_KEPT;
  if (0 == n) return room;
  buffer->counts = gpurdma_counts_keep(buffer->counts, n, room);
  if (!by_peer(side)) return room + bytes;
  if (buffer->far_displacements)
    buffer->far_displacements = gpurdma_far_displacements_keep(buffer->far_displacements, n, room + bytes);
  else
    buffer->displacements = gpurdma_displacements_keep(buffer->displacements, n, room + bytes);
  if (NULL != buffer->types) buffer->types = memcpy(room + 2 * bytes, buffer->types, (size_t)n * sizeof *buffer->types);
  return room + 3 * bytes;
}

bool gpurdma_mca_call_keep(gpurdma_call_t *call, void **arrays) {
  const side_t *send = sides[call->collective].send, *receive = sides[call->collective].receive;
  const int sent = arrays_of(call, send, uses_send(call));
  const int received = arrays_of(call, receive, uses_receive(call));
  *arrays = NULL;
  if (0 == sent + received) return true;
  char *room = malloc((size_t)(sent + received) * kArrays * GPURDMA_KEPT);
  if (NULL == room) return false;
  *arrays = room;
  room = keep(&call->send, send, sent, room);
  (void)keep(&call->receive, receive, received, room);
  return true;
}

static void retain_type(ompi_datatype_t *type, bool more) {
  if (NULL == type) return;
  if (more) {
    OMPI_DATATYPE_RETAIN(type);
  } else {
    OMPI_DATATYPE_RELEASE(type);
  }
}

static void retain_types(const gpurdma_call_t *call, const gpurdma_buffer_t *buffer, const side_t *side, bool used,
                         bool more) {
  if (!used) return;
  if (kTyped != side->shape) {
    retain_type(buffer->type, more);
    return;
  }
  const int peers = peers_of(call, side->peers);
  for (int peer = 0; peer < peers; ++peer) retain_type(buffer->types[peer], more);
}

static void retain(const gpurdma_call_t *call, bool more) {
  retain_types(call, &call->send, sides[call->collective].send, uses_send(call), more);
  retain_types(call, &call->receive, sides[call->collective].receive, uses_receive(call), more);
  ompi_op_t *op = call->op;
  if (NULL == op) return;
  if (more) {
    OBJ_RETAIN(op);
  } else {
    OBJ_RELEASE(op);
  }
}

void gpurdma_mca_call_retain(const gpurdma_call_t *call) { retain(call, true); }
void gpurdma_mca_call_release(const gpurdma_call_t *call) { retain(call, false); }
