// User ops, commutative and not, on derived types with gaps and with lower bounds above and below the address; and op,
// type freed before the operation ends.
#include "check.h"
#include "tests.h"

namespace {

using check::expect;

// ---- the op: composition of affine maps x -> a x + b modulo 2^32, which does not commute ----

struct Affine {
  uint32_t a, b;
};

Affine then(Affine f, Affine g) { return {g.a * f.a, g.a * f.b + g.b}; }

// A value of ours lies at `offset` bytes from where its element begins; elements are `extent` apart.
struct Layout {
  const char* what;
  MPI_Aint offset_a, offset_b, lower, extent;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

const Layout* layout_in_use;  // the op is called with a type handle only; one layout is tested at a time

void compose(void* in, void* inout, int* count, MPI_Datatype*) {
  const Layout& l = *layout_in_use;
  for (int i = 0; i < *count; ++i) {
    unsigned char *left = (unsigned char*)in + i * l.extent, *right = (unsigned char*)inout + i * l.extent;
    Affine f, g;
    memcpy(&f.a, left + l.offset_a, 4), memcpy(&f.b, left + l.offset_b, 4);
    memcpy(&g.a, right + l.offset_a, 4), memcpy(&g.b, right + l.offset_b, 4);
    const Affine both = then(f, g);
    memcpy(right + l.offset_a, &both.a, 4), memcpy(right + l.offset_b, &both.b, 4);
  }
}

void add(void* in, void* inout, int* count, MPI_Datatype*) {
  const Layout& l = *layout_in_use;
  for (int i = 0; i < *count; ++i)
    for (MPI_Aint offset : {l.offset_a, l.offset_b}) {
      uint32_t x, y;
      memcpy(&x, (unsigned char*)in + i * l.extent + offset, 4);
      memcpy(&y, (unsigned char*)inout + i * l.extent + offset, 4);
      y += x;
      memcpy((unsigned char*)inout + i * l.extent + offset, &y, 4);
    }
}

void commit(Layout& l) {
  int lengths[2] = {1, 1};
  MPI_Aint offsets[2] = {l.offset_a, l.offset_b};
  MPI_Datatype types[2] = {MPI_UINT32_T, MPI_UINT32_T}, plain;
  MPI_Type_create_struct(2, lengths, offsets, types, &plain);
  MPI_Type_create_resized(plain, l.lower, l.extent, &l.type);
  MPI_Type_commit(&l.type);
  MPI_Type_free(&plain);
}

Affine value(int rank, int i) { return {2u * rank + 3u + i, 7u * rank + i * i}; }

Affine expected(int i, bool commutative) {
  Affine all = value(0, i);
  for (int r = 1; r < check::size; ++r) {
    const Affine v = value(r, i);
    all = commutative ? Affine{all.a + v.a, all.b + v.b} : then(all, v);
  }
  return all;
}

enum class Call { blocking, nonblocking, persistent };
const char* const kCalls[] = {"blocking", "nonblocking", "persistent"};

void run(Layout l, bool commutative, Call call, bool in_place, bool free_early, int count) {
  commit(l);
  layout_in_use = &l;
  MPI_Op op;
  MPI_Op_create(commutative ? add : compose, commutative, &op);

  // Room for what lies before the buffer's address as well as behind; gaps hold a pattern.
  const MPI_Aint room = 64 + std::abs(l.extent) * (count + 1);
  std::vector<unsigned char> in(2 * room, 0x5a), out(2 * room, 0x5a);
  unsigned char* const from = in.data() + room;
  unsigned char* const to = out.data() + room;
  const auto place = [&l](unsigned char* base, int i, Affine v) {
    memcpy(base + i * l.extent + l.offset_a, &v.a, 4), memcpy(base + i * l.extent + l.offset_b, &v.b, 4);
  };
  for (int i = 0; i < count; ++i) place(in_place ? to : from, i, value(check::rank, i));
  std::vector<unsigned char> want = out;
  for (int i = 0; i < count; ++i) place(want.data() + room, i, expected(i, commutative));

  const void* const send = in_place ? MPI_IN_PLACE : from;
  MPI_Request request = MPI_REQUEST_NULL;
  if (call == Call::blocking) MPI_Allreduce(send, to, count, l.type, op, MPI_COMM_WORLD);
  if (call == Call::nonblocking) MPI_Iallreduce(send, to, count, l.type, op, MPI_COMM_WORLD, &request);
  if (call == Call::persistent) check::allreduce_init(send, to, count, l.type, op, MPI_COMM_WORLD, &request);
  if (free_early) MPI_Op_free(&op), MPI_Type_free(&l.type);
  if (call == Call::persistent) MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (call == Call::persistent) MPI_Request_free(&request);
  if (!free_early) MPI_Op_free(&op), MPI_Type_free(&l.type);

  const size_t at = std::mismatch(out.begin(), out.end(), want.begin()).first - out.begin();
  expect(at == out.size(), "%s op, %s%s, %s, %d elements of %s: byte %ld from the buffer's address is wrong",
         commutative ? "commutative" : "ordered", kCalls[(int)call], in_place ? " in place" : "",
         free_early ? "freed early" : "freed late", count, l.what, (long)at - (long)room);
}

const Layout kLayouts[] = {
    {"a pair without gaps", 0, 4, 0, 8},
    {"a pair with gaps", 0, 16, 0, 24},
    {"a pair above its address", 40, 44, 40, 8},
    {"a pair below its address", -20, -8, -20, 24},
    {"a pair in reverse order, resized to overlap nothing", 12, 4, -4, 32},
};

// User ops run in the component beneath, and there Open MPI's own ring, taken for commutative ops on long vectors,
// writes outside of its memory when the type's lower bound is not zero.
bool safe(const Layout& l, bool commutative, int count) { return !commutative || l.offset_a == 0 || count < 100; }

}  // namespace

int tests::userop() {
  check::start();
  for (const Layout& l : kLayouts)
    for (bool commutative : {false, true})
      for (Call call : {Call::blocking, Call::nonblocking, Call::persistent})
        for (bool in_place : {false, true})
          for (int count : {0, 1, 5, 3000})
            if (safe(l, commutative, count)) run(l, commutative, call, in_place, false, count);
  return check::finish();
}

// Open MPI itself crashes when op or type of a persistent operation is freed before it is started; gpurdma must not.
int tests::early_free() {
  check::start();
  for (const Layout& l : kLayouts)
    for (bool commutative : {false, true})
      for (int count : {1, 5, 3000}) {
        if (!safe(l, commutative, count)) continue;
        run(l, commutative, Call::nonblocking, false, true, count);
        if (!check::flag("--stock")) run(l, commutative, Call::persistent, false, true, count);
      }
  return check::finish();
}
