// Every collective on every kind of memory: device, managed, pinned, host, and a mixture that differs from rank to rank
// and from buffer to buffer; in place and not; datatypes with gaps and any lower bound; every root; blocking,
// nonblocking and persistent. What MPI says is ignored is garbage. Within a group, between two groups, and among
// neighbours.
//
//   collectives [--kind device] [--only allgatherv] [--brief]
//   --trace: names each call on standard error, for finding out which one hangs or dies.
//   With --kind host no CUDA is needed.
#include "operand.h"
#include "tests.h"

namespace {

using check::expect;
using device::Kind;
using device::Operand;
using device::Value;
using layouts::Layout;

enum class Call { blocking, nonblocking, persistent };
const char* const kCalls[] = {"blocking", "nonblocking", "persistent"};

// Who a rank talks to, by rank in MPI_COMM_WORLD: in its own group, and with whom data is exchanged. -1: a neighbour
// that does not exist.
struct Peers {
  MPI_Comm comm;
  std::vector<int> group, to, from;
  int rank;  // in the own group
  bool inter = false;
  int me() const { return group[size_t(rank)]; }
};

struct Way {
  Call call;
  bool in_place;
  const Layout &send, &receive;
  size_t triples;
  int root;         // an index in `group`, or between two groups in that of the root
  bool root_group;  // between two groups: the root is in this one
  Kind send_kind, receive_kind;
};

int salt = 0;  // differs from call to call

int value(int from, int to, size_t index) { return from * 7919 + to * 104729 + int(index) * 31 + salt * 13; }
Value sent(int from, int to) {
  return [=](size_t i) { return value(from, to, i); };
}
// Of what all of these contribute, from element `first` on.
Value summed(std::vector<int> from, size_t first = 0) {
  return [=](size_t i) {
    int sum = 0;
    for (const int f : from) sum += value(f, 0, first + i);
    return sum;
  };
}

// A user op, for the layouts that no predefined op takes. It is called with a type, one layout at a time.
const Layout* reduced_layout = nullptr;
void add(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i)
    for (const int offset : reduced_layout->offsets) {
      int x, y;
      const ptrdiff_t at = ptrdiff_t(i) * reduced_layout->extent + offset;
      memcpy(&x, (char*)in + at, sizeof x), memcpy(&y, (char*)inout + at, sizeof y);
      y += x;
      memcpy((char*)inout + at, &y, sizeof y);
    }
}
MPI_Op user_op;
MPI_Op op_for(const Layout& layout) {
  reduced_layout = &layout;
  return layout.type == MPI_INT ? MPI_SUM : user_op;
}

// ---- a call, and what it must have done ----

class Test {
 public:
  Test(const char* name, const Peers& peers, const Way& way) : name_(name), p(peers), w(way) {}

  const char* name_;
  const Peers& p;
  const Way& w;
  Operand send, receive;

  // `start`: calls MPI; the request is used by all but blocking calls.
  void run(const std::function<int(MPI_Request*)>& start) {
    char what[300];
    snprintf(what, sizeof what, "%s, %s%s, %zu triples, root %d%s, send %s, receive %s", name_, kCalls[int(w.call)],
             w.in_place ? " in place" : "", w.triples, w.root, p.inter ? " between groups" : "",
             device::name(w.send_kind), device::name(w.receive_kind));
    if (check::flag("--trace")) fprintf(stderr, "rank %d: %s\n", check::rank, what);
    check::Random random(check::mix(check::seed, uint64_t(salt), uint64_t(check::rank)));
    send.make(w.send_kind, random);
    receive.make(w.receive_kind, random);
    MPI_Request request = MPI_REQUEST_NULL;
    if (w.call == Call::persistent) error(what, start(&request));
    for (int round = 0; round < (w.call == Call::persistent ? 2 : 1); ++round) {
      ++salt;
      send.put(), receive.put();
      error(what, w.call == Call::persistent ? MPI_Start(&request) : start(&request));
      if (w.call != Call::blocking) error(what, MPI_Wait(&request, MPI_STATUS_IGNORE));
      send.check_after(what, "send");
      receive.check_after(what, "receive");
    }
    if (w.call == Call::persistent) MPI_Request_free(&request);
  }

  // In MPI's terms.
  const void* in() const { return w.in_place ? MPI_IN_PLACE : send.address(); }
  int sends() const { return (int)w.send.elements(w.triples); }
  int receives() const { return (int)w.receive.elements(w.triples); }
  MPI_Datatype send_type() const { return w.send.type; }
  MPI_Datatype receive_type() const { return w.receive.type; }

 private:
  static void error(const char* what, int error) { expect(error == MPI_SUCCESS, "%s: error %d", what, error); }
};

#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#define INIT(name) MPIX_##name##_init
#else
#define INIT(name) MPI_##name##_init
#endif
// CALL(A, a, llgather, arguments): MPI_Allgather, MPI_Iallgather or MPI_Allgather_init.
#define CALL(A, a, rest, ...)                                                                 \
  t.run([&](MPI_Request* request) {                                                           \
    if (t.w.call == Call::blocking) return MPI_##A##rest(__VA_ARGS__, t.p.comm);              \
    if (t.w.call == Call::nonblocking) return MPI_I##a##rest(__VA_ARGS__, t.p.comm, request); \
    return INIT(A##rest)(__VA_ARGS__, t.p.comm, MPI_INFO_NULL, request);                      \
  })

// ---- uneven counts ----

// Some are zero. In place those of a pair are the same.
size_t uneven(const Way& w, int from, int to) {
  if (w.in_place && from > to) std::swap(from, to);
  return size_t(from * 2 + to * 3) % 5 % (w.triples + 1) * (w.triples > 100 ? w.triples / 4 : 1);
}

// Blocks of some triples for each peer, in reverse order and with gaps between them.
struct Blocks {
  std::vector<int> counts, displacements;
  std::vector<MPI_Aint> far;
  std::vector<MPI_Datatype> types;

  Blocks(const Layout& layout, const std::vector<size_t>& triples) : counts(triples.size()) {
    displacements.resize(counts.size());
    ptrdiff_t at = 1;
    for (size_t i = counts.size(); i-- > 0;) {
      counts[i] = (int)layout.elements(triples[i]);
      displacements[i] = (int)at;
      at += counts[i] + 1;
    }
  }
  // The displacements of MPI_Alltoallw, in bytes.
  void in_bytes(const Layout& layout) {
    for (int& displacement : displacements) {
      displacement *= layout.extent;
      far.push_back(displacement);
    }
    types.assign(counts.size(), layout.type);
  }
};

std::vector<size_t> to_send(const Test& t) {
  std::vector<size_t> list;
  for (const int to : t.p.to) list.push_back(to < 0 ? t.w.triples : uneven(t.w, t.p.me(), to));
  return list;
}

std::vector<size_t> to_receive(const Test& t) {
  std::vector<size_t> list;
  for (const int from : t.p.from) list.push_back(from < 0 ? t.w.triples : uneven(t.w, from, t.p.me()));
  return list;
}

// ---- what operands hold ----

// One block of `triples`, the same for everybody.
void send_one(Test& t, size_t triples) {
  if (t.w.in_place) return;
  t.send = Operand(t.w.send);
  t.send.add(0, triples, sent(t.p.me(), 0), Value());
}

// In place what comes from the own rank is there already.
Value before(const Test& t, int from, int to) { return t.w.in_place && from == t.p.me() ? sent(from, to) : Value(); }

void receive_from_all(Test& t, bool to_me) {
  t.receive = Operand(t.w.receive);
  for (size_t i = 0; i < t.p.from.size(); ++i) {
    const int from = t.p.from[i], to = to_me ? t.p.me() : 0;
    const Value in = to_me && t.w.in_place ? sent(t.p.me(), from) : before(t, from, to);
    t.receive.add(ptrdiff_t(i * t.w.receive.elements(t.w.triples)), t.w.triples, in,
                  from < 0 ? Value() : sent(from, to));
  }
}

void receive_blocks(Test& t, const Blocks& blocks, bool to_me, bool bytes = false) {
  t.receive = Operand(t.w.receive);
  for (size_t i = 0; i < t.p.from.size(); ++i) {
    const int from = t.p.from[i], to = to_me ? t.p.me() : 0;
    const Value in = to_me && t.w.in_place ? sent(t.p.me(), from) : before(t, from, to);
    const size_t triples = size_t(blocks.counts[i]) * t.w.receive.offsets.size() / 3;
    const ptrdiff_t at = blocks.displacements[i] * ptrdiff_t(bytes ? 1 : t.w.receive.extent);
    t.receive.add_at(at, triples, in, from < 0 ? Value() : sent(from, to));
  }
}

void send_to_all(Test& t) {
  if (t.w.in_place) return;
  t.send = Operand(t.w.send);
  for (size_t i = 0; i < t.p.to.size(); ++i)
    t.send.add(ptrdiff_t(i * t.w.send.elements(t.w.triples)), t.w.triples, sent(t.p.me(), t.p.to[i]), Value());
}

void send_blocks(Test& t, const Blocks& blocks, bool bytes = false) {
  if (t.w.in_place) return;
  t.send = Operand(t.w.send);
  for (size_t i = 0; i < t.p.to.size(); ++i) {
    const size_t triples = size_t(blocks.counts[i]) * t.w.send.offsets.size() / 3;
    t.send.add_at(blocks.displacements[i] * ptrdiff_t(bytes ? 1 : t.w.send.extent), triples, sent(t.p.me(), t.p.to[i]),
                  Value());
  }
}

// ---- roots ----

bool is_root(const Test& t) { return t.p.inter ? t.w.root_group && t.p.rank == t.w.root : t.p.rank == t.w.root; }
// Whether this rank takes the part that all members take.
bool is_leaf(const Test& t) { return !t.p.inter || !t.w.root_group; }
int root_argument(const Test& t) {
  if (!t.p.inter || !t.w.root_group) return t.w.root;
  return is_root(t) ? MPI_ROOT : MPI_PROC_NULL;
}
int root_id(const Test& t) { return (t.p.inter ? t.p.from : t.p.group)[size_t(t.w.root)]; }
// In place is the root's affair alone.
struct AtRoot {
  explicit AtRoot(const Test& t) : root(is_root(t)), leaf(is_leaf(t)), in_place(t.w.in_place && root) {}
  bool root, leaf, in_place;
};
constexpr int kGarbage = -77;
const MPI_Datatype kNoType = MPI_DATATYPE_NULL;

// ---- the collectives ----

void allgather(Test& t) {
  send_one(t, t.w.triples);
  receive_from_all(t, false);
  CALL(A, a, llgather, t.in(), t.w.in_place ? kGarbage : t.sends(), t.w.in_place ? kNoType : t.send_type(),
       t.receive.address(), t.receives(), t.receive_type());
}

void allgatherv(Test& t) {
  std::vector<size_t> triples;
  for (const int from : t.p.from) triples.push_back(uneven(t.w, from, 0));
  const Blocks blocks(t.w.receive, triples);
  const size_t own = uneven(t.w, t.p.me(), 0);
  send_one(t, own);
  receive_blocks(t, blocks, false);
  CALL(A, a, llgatherv, t.in(), t.w.in_place ? kGarbage : (int)t.w.send.elements(own),
       t.w.in_place ? kNoType : t.send_type(), t.receive.address(), blocks.counts.data(), blocks.displacements.data(),
       t.receive_type());
}

void alltoall(Test& t) {
  send_to_all(t);
  receive_from_all(t, true);
  CALL(A, a, lltoall, t.in(), t.w.in_place ? kGarbage : t.sends(), t.w.in_place ? kNoType : t.send_type(),
       t.receive.address(), t.receives(), t.receive_type());
}

void alltoallv(Test& t) {
  const Blocks out(t.w.send, to_send(t)), in(t.w.receive, to_receive(t));
  send_blocks(t, out);
  receive_blocks(t, in, true);
  const bool none = t.w.in_place;
  CALL(A, a, lltoallv, t.in(), none ? nullptr : out.counts.data(), none ? nullptr : out.displacements.data(),
       none ? kNoType : t.send_type(), t.receive.address(), in.counts.data(), in.displacements.data(),
       t.receive_type());
}

void alltoallw(Test& t) {
  Blocks out(t.w.send, to_send(t)), in(t.w.receive, to_receive(t));
  out.in_bytes(t.w.send);
  in.in_bytes(t.w.receive);
  send_blocks(t, out, true);
  receive_blocks(t, in, true, true);
  const bool none = t.w.in_place;
  CALL(A, a, lltoallw, t.in(), none ? nullptr : out.counts.data(), none ? nullptr : out.displacements.data(),
       none ? nullptr : out.types.data(), t.receive.address(), in.counts.data(), in.displacements.data(),
       in.types.data());
}

void bcast(Test& t) {
  const bool root = is_root(t);
  if (root || is_leaf(t)) {
    t.receive = Operand(t.w.receive);
    t.receive.add(0, t.w.triples, root ? sent(t.p.me(), 0) : Value(), sent(root ? t.p.me() : root_id(t), 0));
  }
  CALL(B, b, cast, t.receive.address(), t.receives(), t.receive_type(), root_argument(t));
}

void gather(Test& t) {
  const AtRoot at(t);
  if (at.leaf && !at.in_place) t.send = Operand(t.w.send), t.send.add(0, t.w.triples, sent(t.p.me(), 0), Value());
  if (at.root) receive_from_all(t, false);
  CALL(G, g, ather, at.in_place ? MPI_IN_PLACE : t.send.address(), at.in_place ? kGarbage : t.sends(),
       at.in_place ? kNoType : t.send_type(), t.receive.address(), at.root ? t.receives() : kGarbage,
       at.root ? t.receive_type() : kNoType, root_argument(t));
}

void gatherv(Test& t) {
  const AtRoot at(t);
  std::vector<size_t> triples;
  for (const int from : t.p.from) triples.push_back(uneven(t.w, from, 0));
  const Blocks blocks(t.w.receive, triples);
  const size_t own = uneven(t.w, t.p.me(), 0);
  if (at.leaf && !at.in_place) t.send = Operand(t.w.send), t.send.add(0, own, sent(t.p.me(), 0), Value());
  if (at.root) receive_blocks(t, blocks, false);
  CALL(G, g, atherv, at.in_place ? MPI_IN_PLACE : t.send.address(),
       at.in_place ? kGarbage : (int)t.w.send.elements(own), at.in_place ? kNoType : t.send_type(), t.receive.address(),
       at.root ? blocks.counts.data() : nullptr, at.root ? blocks.displacements.data() : nullptr,
       at.root ? t.receive_type() : kNoType, root_argument(t));
}

void scatter(Test& t) {
  const AtRoot at(t);
  if (at.root) {
    t.send = Operand(t.w.send);
    for (size_t i = 0; i < t.p.to.size(); ++i)
      t.send.add(ptrdiff_t(i * t.w.send.elements(t.w.triples)), t.w.triples, sent(t.p.me(), t.p.to[i]), Value());
  }
  if (at.leaf && !at.in_place) {
    t.receive = Operand(t.w.receive);
    t.receive.add(0, t.w.triples, Value(), sent(root_id(t), t.p.me()));
  }
  CALL(S, s, catter, t.send.address(), at.root ? t.sends() : kGarbage, at.root ? t.send_type() : kNoType,
       at.in_place ? MPI_IN_PLACE : t.receive.address(), at.in_place ? kGarbage : t.receives(),
       at.in_place ? kNoType : t.receive_type(), root_argument(t));
}

void scatterv(Test& t) {
  const AtRoot at(t);
  std::vector<size_t> triples;
  for (const int to : t.p.to) triples.push_back(uneven(t.w, to, 0));
  const Blocks blocks(t.w.send, triples);
  const size_t own = uneven(t.w, t.p.me(), 0);
  if (at.root) {
    t.send = Operand(t.w.send);
    for (size_t i = 0; i < t.p.to.size(); ++i)
      t.send.add(blocks.displacements[i], triples[i], sent(t.p.me(), t.p.to[i]), Value());
  }
  if (at.leaf && !at.in_place) {
    t.receive = Operand(t.w.receive);
    t.receive.add(0, own, Value(), sent(root_id(t), t.p.me()));
  }
  CALL(S, s, catterv, t.send.address(), at.root ? blocks.counts.data() : nullptr,
       at.root ? blocks.displacements.data() : nullptr, at.root ? t.send_type() : kNoType,
       at.in_place ? MPI_IN_PLACE : t.receive.address(), at.in_place ? kGarbage : (int)t.w.receive.elements(own),
       at.in_place ? kNoType : t.receive_type(), root_argument(t));
}

// Both operands of a reduction have the type of the receive buffer. (So must they in Open MPI's MPI_Scatterv between
// groups, which takes counts of one for counts of the other.)
Way of_one_type(const Way& w) {
  return {w.call, w.in_place, w.receive, w.receive, w.triples, w.root, w.root_group, w.send_kind, w.receive_kind};
}

void reduce_to(Test& t, std::vector<int> whose) {
  send_one(t, t.w.triples);
  t.receive = Operand(t.w.receive);
  t.receive.add(0, t.w.triples, t.w.in_place ? sent(t.p.me(), 0) : Value(), whose.empty() ? Value() : summed(whose));
}

void allreduce(Test& t) {
  reduce_to(t, t.p.from);
  CALL(A, a, llreduce, t.in(), t.receive.address(), t.receives(), t.receive_type(), op_for(t.w.receive));
}

void scan(Test& t) {
  reduce_to(t, {t.p.group.begin(), t.p.group.begin() + t.p.rank + 1});
  CALL(S, s, can, t.in(), t.receive.address(), t.receives(), t.receive_type(), op_for(t.w.receive));
}

void exscan(Test& t) {
  reduce_to(t, {t.p.group.begin(), t.p.group.begin() + t.p.rank});
  CALL(E, e, xscan, t.in(), t.receive.address(), t.receives(), t.receive_type(), op_for(t.w.receive));
}

void reduce(Test& t) {
  const AtRoot at(t);
  if (at.leaf && !at.in_place) t.send = Operand(t.w.send), t.send.add(0, t.w.triples, sent(t.p.me(), 0), Value());
  if (at.root) {
    t.receive = Operand(t.w.receive);
    t.receive.add(0, t.w.triples, at.in_place ? sent(t.p.me(), 0) : Value(), summed(t.p.from));
  }
  CALL(R, r, educe, at.in_place ? MPI_IN_PLACE : t.send.address(), t.receive.address(), t.receives(), t.receive_type(),
       op_for(t.w.receive), root_argument(t));
}

// The whole vector is sent; in place it is in the receive buffer, of which the first part is written.
void scatter_sum(Test& t, size_t all, size_t first, size_t own) {
  const size_t skipped = first * 3;
  if (!t.w.in_place) t.send = Operand(t.w.send), t.send.add(0, all, sent(t.p.me(), 0), Value());
  t.receive = Operand(t.w.receive);
  if (t.w.in_place) t.receive.add(0, all, sent(t.p.me(), 0), Value());
  t.receive.add(0, own, Value(), summed(t.p.from, skipped));
}

void reduce_scatter(Test& t) {
  std::vector<int> counts;
  size_t all = 0, first = 0, own = 0;
  for (size_t i = 0; i < t.p.group.size(); ++i) {
    // Between two groups both have to scatter as much.
    const size_t triples = t.p.inter ? t.w.triples * t.p.from.size() : uneven(t.w, t.p.group[i], 1);
    if ((int)i < t.p.rank) first += triples;
    if ((int)i == t.p.rank) own = triples;
    all += triples;
    counts.push_back((int)t.w.receive.elements(triples));
  }
  scatter_sum(t, all, first, own);
  CALL(R, r, educe_scatter, t.in(), t.receive.address(), counts.data(), t.receive_type(), op_for(t.w.receive));
}

void reduce_scatter_block(Test& t) {
  const size_t own = t.w.triples * (t.p.inter ? t.p.from.size() : 1);
  scatter_sum(t, own * t.p.group.size(), own * size_t(t.p.rank), own);
  CALL(R, r, educe_scatter_block, t.in(), t.receive.address(), (int)t.w.receive.elements(own), t.receive_type(),
       op_for(t.w.receive));
}

void neighbor_allgather(Test& t) {
  send_one(t, t.w.triples);
  receive_from_all(t, false);
  CALL(N, n, eighbor_allgather, t.send.address(), t.sends(), t.send_type(), t.receive.address(), t.receives(),
       t.receive_type());
}

void neighbor_allgatherv(Test& t) {
  std::vector<size_t> triples;
  for (const int from : t.p.from) triples.push_back(from < 0 ? 1 : uneven(t.w, from, 0));
  const Blocks blocks(t.w.receive, triples);
  const size_t own = uneven(t.w, t.p.me(), 0);
  send_one(t, own);
  receive_blocks(t, blocks, false);
  CALL(N, n, eighbor_allgatherv, t.send.address(), (int)t.w.send.elements(own), t.send_type(), t.receive.address(),
       blocks.counts.data(), blocks.displacements.data(), t.receive_type());
}

void neighbor_alltoall(Test& t) {
  send_to_all(t);
  receive_from_all(t, true);
  CALL(N, n, eighbor_alltoall, t.send.address(), t.sends(), t.send_type(), t.receive.address(), t.receives(),
       t.receive_type());
}

void neighbor_alltoallv(Test& t) {
  const Blocks out(t.w.send, to_send(t)), in(t.w.receive, to_receive(t));
  send_blocks(t, out);
  receive_blocks(t, in, true);
  CALL(N, n, eighbor_alltoallv, t.send.address(), out.counts.data(), out.displacements.data(), t.send_type(),
       t.receive.address(), in.counts.data(), in.displacements.data(), t.receive_type());
}

void neighbor_alltoallw(Test& t) {
  Blocks out(t.w.send, to_send(t)), in(t.w.receive, to_receive(t));
  out.in_bytes(t.w.send);
  in.in_bytes(t.w.receive);
  send_blocks(t, out, true);
  receive_blocks(t, in, true, true);
  CALL(N, n, eighbor_alltoallw, t.send.address(), out.counts.data(), out.far.data(), out.types.data(),
       t.receive.address(), in.counts.data(), in.far.data(), in.types.data());
}

struct Collective {
  const char* name;
  void (*run)(Test& test);
  bool rooted, reduces, in_place, between_groups;
};

const Collective kCollectives[] = {
    {"allgather", allgather, false, false, true, true},
    {"allgatherv", allgatherv, false, false, true, true},
    {"allreduce", allreduce, false, true, true, true},
    {"alltoall", alltoall, false, false, true, true},
    {"alltoallv", alltoallv, false, false, true, true},
    {"alltoallw", alltoallw, false, false, true, true},
    {"bcast", bcast, true, false, false, true},
    {"exscan", exscan, false, true, true, false},
    {"gather", gather, true, false, true, true},
    {"gatherv", gatherv, true, false, true, true},
    {"reduce", reduce, true, true, true, true},
    {"reduce_scatter", reduce_scatter, false, true, true, true},
    {"reduce_scatter_block", reduce_scatter_block, false, true, true, true},
    {"scan", scan, false, true, true, false},
    {"scatter", scatter, true, false, true, true},
    {"scatterv", scatterv, true, false, true, true},
};

const Collective kNeighbors[] = {
    {"neighbor_allgather", neighbor_allgather, false, false, false, false},
    {"neighbor_allgatherv", neighbor_allgatherv, false, false, false, false},
    {"neighbor_alltoall", neighbor_alltoall, false, false, false, false},
    {"neighbor_alltoallv", neighbor_alltoallv, false, false, false, false},
    {"neighbor_alltoallw", neighbor_alltoallw, false, false, false, false},
};

// ---- all ways ----

struct Kinds {
  const char* name;
  int kind;  // -1: mixed
};
const Kinds kKinds[] = {{"device", 3}, {"managed", 2}, {"pinned", 1}, {"host", 0}, {"mixed", -1}};

Kind kind_of(const Kinds& kinds, int buffer) {
  if (kinds.kind >= 0) return Kind(kinds.kind);
  check::Random random(check::mix(check::seed + uint64_t(salt), uint64_t(check::rank), uint64_t(buffer)));
  return Kind(random.below(device::kKinds));
}

// Open MPI's own algorithms for commutative ops on types whose lower bound is not zero write outside of their memory,
// and it mistakes the extent of interleaved elements.
bool safe(const Collective& c, const Layout& receive) {
  return !c.reduces || (receive.lower == 0 && receive.offsets[0] == 0 && receive.most == SIZE_MAX);
}

// Whether elements of blocks for so many peers, with gaps between them, do not overlap. Alike on all ranks.
bool fits(const Layout& layout, size_t triples, size_t peers) {
  return layout.most == SIZE_MAX || layout.elements(triples + 1) * peers + 1 < layout.most;
}

void run_ways(const Collective& c, const Peers& peers, const Kinds& kinds) {
  const auto& list = layouts::all();
  const bool brief = check::flag("--brief");
  const int roots = c.rooted ? (int)(peers.inter ? peers.from.size() + peers.group.size() : peers.group.size()) : 1;
  for (size_t pair = 0; pair < list.size(); ++pair)
    for (const size_t triples : {0, 1, 7, 3000}) {
      if ((triples == 3000 || brief) && pair % 3 != 0) continue;
      const Layout &send = list[pair], &receive = list[(pair * 3 + (c.reduces ? 0 : 2)) % list.size()];
      const size_t most_peers = size_t(check::size) + 2;
      if (!safe(c, receive) || !fits(send, triples, most_peers) || !fits(receive, triples, most_peers)) continue;
      for (int root = 0; root < roots; ++root)
        for (const bool in_place : {false, true}) {
          if (in_place && (!c.in_place || peers.inter)) continue;
          for (const Call call : {Call::blocking, Call::nonblocking, Call::persistent}) {
            // Between groups a root is in either: the ranks of the lower group first.
            const bool lower = peers.inter && peers.group[0] < peers.from[0];
            const int low = (int)(lower ? peers.group.size() : peers.from.size());
            const bool in_lower = root < low;
            Way way{call,
                    in_place,
                    send,
                    receive,
                    triples,
                    peers.inter && !in_lower ? root - low : root,
                    lower == in_lower,
                    kind_of(kinds, 0),
                    kind_of(kinds, 1)};
            const Way same = of_one_type(way);
            Test test(c.name, peers, c.reduces || (peers.inter && c.run == scatterv) ? same : way);
            c.run(test);
          }
        }
    }
}

template <size_t N>
void run_all(const Collective (&collectives)[N], const Peers& peers) {
  const std::string only = check::text("--only"), kind = check::text("--kind");
  for (const Kinds& kinds : kKinds) {
    if (!kind.empty() && kind != kinds.name) continue;
    for (const Collective& c : collectives) {
      if (!only.empty() && only != c.name) continue;
      if (peers.inter && !c.between_groups) continue;
      run_ways(c, peers, kinds);
    }
  }
}

std::vector<int> range(int from, int to) {
  std::vector<int> list;
  for (int i = from; i < to; ++i) list.push_back(i);
  return list;
}

void within_a_group() {
  const std::vector<int> all = range(0, check::size);
  run_all(kCollectives, {MPI_COMM_WORLD, all, all, all, check::rank});
}

void between_groups() {
  const int half = (check::size - 1) / 2 + 1;
  const bool low = check::rank < half;
  if (check::size < 2) return;
  MPI_Comm local, inter;
  MPI_Comm_split(MPI_COMM_WORLD, low, check::rank, &local);
  MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, low ? half : 0, 3, &inter);
  const std::vector<int> lower = range(0, half), upper = range(half, check::size);
  Peers peers{inter, low ? lower : upper, low ? upper : lower, low ? upper : lower,
              low ? check::rank : check::rank - half};
  peers.inter = true;
  run_all(kCollectives, peers);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&local);
}

void among_neighbors() {
  const std::vector<int> all = range(0, check::size);
  const int p = check::size, r = check::rank, ends = 0;
  MPI_Comm line, graph;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &p, &ends, 0, &line);
  const std::vector<int> beside = {r - 1, r + 1 < p ? r + 1 : -1};
  run_all(kNeighbors, {line, all, beside, beside, r});
  MPI_Comm_free(&line);
  std::vector<int> to = {r}, from = {r};
  if (p > 1) to.push_back((r + 1) % p), from.push_back((r + p - 1) % p);
  if (p > 2) to.insert(to.begin(), (r + 2) % p), from.push_back((r + p - 2) % p);
  if (r == 0 && p > 1) to.pop_back();  // uneven numbers of neighbours
  if (r == 1) from.erase(from.begin() + 1);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, (int)from.size(), from.data(), MPI_UNWEIGHTED, (int)to.size(),
                                 to.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  run_all(kNeighbors, {graph, all, to, from, r});
  MPI_Comm_free(&graph);
}

void reduce_local() {
  const std::string only = check::text("--only"), kind = check::text("--kind");
  if (!only.empty() && only != "reduce_local") return;
  for (const Kinds& kinds : kKinds)
    for (const Layout& layout : layouts::all())
      for (const size_t triples : {0, 1, 7, 3000}) {
        if (layout.elements(triples) > layout.most || (!kind.empty() && kind != kinds.name)) continue;
        check::Random random(check::mix(check::seed, uint64_t(++salt), uint64_t(check::rank)));
        Operand in(layout), out(layout);
        in.add(0, triples, sent(1, 0), Value());
        out.add(0, triples, sent(2, 0), summed({1, 2}));
        in.make(kind_of(kinds, 0), random), out.make(kind_of(kinds, 1), random);
        in.put(), out.put();
        MPI_Reduce_local(in.address(), out.address(), (int)layout.elements(triples), layout.type, op_for(layout));
        in.check_after("MPI_Reduce_local", "first");
        out.check_after("MPI_Reduce_local", "second");
      }
}

}  // namespace

int tests::collectives() {
  const bool no_gpu = check::text("--kind") == "host";
  if (no_gpu)
    check::start();
  else
    device::start();
  layouts::commit();
  MPI_Op_create(add, 1, &user_op);
  within_a_group();
  between_groups();
  among_neighbors();
  reduce_local();
  MPI_Op_free(&user_op);
  layouts::release();
  return no_gpu ? check::finish() : device::finish();
}
