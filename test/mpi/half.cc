// 16-bit floats of gpurdma_mpi.h, whether gpurdma runs or not: the four ops in all kinds of call, on values that give
// the same in any order; pairs that must be rounded once; and the types in other MPI calls.
#include "gpurdma_mpi.h"
#include "sixteen.h"
#include "tests.h"

// half_too.cc: the same header in another file of the program.
MPI_Datatype float16_of_the_other_file();
MPI_Op sum_of_the_other_file();

namespace {

using check::expect;

const MPI_Op kOps[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
const char* const kNames[] = {"SUM", "PROD", "MIN", "MAX"};

// Whole numbers for SUM, MIN, MAX and powers of two for PROD, so small that no partial result is rounded.
double value(int op, int rank, int i) {
  if (op == 1) return (i + rank) % 3 == 0 ? -0.5 : (i + rank) % 3 == 1 ? 2 : 1;
  return (i * 7 + rank * 5) % 17 - 8;
}

double expected(int op, int i) {
  double all = value(op, 0, i);
  for (int r = 1; r < check::size; ++r) {
    const double x = value(op, r, i);
    all = op == 0 ? all + x : op == 1 ? all * x : op == 2 ? std::min(all, x) : std::max(all, x);
  }
  return all;
}

template <int Digits>
using Numbers = std::vector<typename oracle::Sixteen<Digits>::Value>;

template <int Digits>
void expect_numbers(const Numbers<Digits>& out, int op, const char* what) {
  for (size_t i = 0; i < out.size(); ++i) {
    const double got = oracle::Sixteen<Digits>::number(out[i]);
    if (!expect(got == expected(op, (int)i), "%s of %d digits, %s, %zu elements: element %zu is %g, not %g", kNames[op],
                Digits, what, out.size(), i, got, expected(op, (int)i)))
      return;
  }
}

template <int Digits>
void all_calls(MPI_Datatype type, int count) {
  for (int o = 0; o < 4; ++o) {
    const MPI_Op op = gpurdma_mpi_op(kOps[o], type);
    Numbers<Digits> in, out(count);
    for (int i = 0; i < count; ++i) in.push_back(oracle::Sixteen<Digits>::nearest(value(o, check::rank, i)));
    MPI_Allreduce(in.data(), out.data(), count, type, op, MPI_COMM_WORLD);
    expect_numbers<Digits>(out, o, "blocking");
    out = in;
    MPI_Allreduce(MPI_IN_PLACE, out.data(), count, type, op, MPI_COMM_WORLD);
    expect_numbers<Digits>(out, o, "in place");
    MPI_Request request;
    out.assign(count, {});
    MPI_Iallreduce(in.data(), out.data(), count, type, op, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_numbers<Digits>(out, o, "nonblocking");
    out.assign(count, {});
    check::allreduce_init(in.data(), out.data(), count, type, op, MPI_COMM_WORLD, &request);
    for (int round = 0; round < 2; ++round) {
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      expect_numbers<Digits>(out, o, "persistent");
    }
    MPI_Request_free(&request);
    // What runs beneath.
    out.assign(count, {});
    MPI_Reduce(in.data(), out.data(), count, type, op, 0, MPI_COMM_WORLD);
    if (check::rank == 0) expect_numbers<Digits>(out, o, "MPI_Reduce");
    out = in;
    MPI_Ireduce_scatter_block(MPI_IN_PLACE, out.data(), count / check::size, type, op, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < count / check::size; ++i) {
      const int at = check::rank * (count / check::size) + i;
      expect(oracle::Sixteen<Digits>::number(out[i]) == expected(o, at), "MPI_Ireduce_scatter_block of %s: element %d",
             kNames[o], at);
    }
  }
}

// Any two numbers, by MPI_Reduce_local: the result in double is exact or double enough, and is rounded once.
template <int Digits>
void pairs(MPI_Datatype type) {
  using S = oracle::Sixteen<Digits>;
  constexpr int kCount = 20000;
  check::Random random(check::seed);
  for (int o = 0; o < 4; ++o) {
    Numbers<Digits> left(kCount), right(kCount);
    for (int i = 0; i < kCount; ++i) left[i].bits = (uint16_t)random.next(), right[i].bits = (uint16_t)random.next();
    Numbers<Digits> out = right;
    MPI_Reduce_local(left.data(), out.data(), kCount, type, gpurdma_mpi_op(kOps[o], type));
    for (int i = 0; i < kCount; ++i) {
      const double x = S::number(left[i]), y = S::number(right[i]);
      // Through float, as the rule says: of distant bfloat16 a float does not hold the sum.
      const double joined = o == 0                     ? (double)((float)x + (float)y)
                            : o == 1                   ? (double)((float)x * (float)y)
                            : isnan(x) || isnan(y)     ? NAN
                            : (o == 2 ? y < x : y > x) ? y
                                                       : x;
      if (!expect(S::same(out[i], S::nearest(joined)), "%s of %d digits: %g and %g give %g", kNames[o], Digits, x, y,
                  S::number(out[i])))
        break;
    }
  }
}

// Messages, copies and derived types.
void other_calls(MPI_Datatype type) {
  int bytes = 0;
  MPI_Aint lower = 1, extent = 0;
  MPI_Type_size(type, &bytes);
  MPI_Type_get_extent(type, &lower, &extent);
  expect(bytes == 2 && lower == 0 && extent == 2, "size %d, from %ld on, extent %ld", bytes, (long)lower, (long)extent);

  const int count = 1000, p = check::size, next = (check::rank + 1) % p, previous = (check::rank + p - 1) % p;
  std::vector<uint16_t> mine(count), theirs(count), all((size_t)count * p);
  for (int i = 0; i < count; ++i) mine[i] = (uint16_t)(check::rank * 1000 + i);
  MPI_Status status;
  MPI_Sendrecv(mine.data(), count, type, next, 5, theirs.data(), count, type, previous, 5, MPI_COMM_WORLD, &status);
  int received = 0;
  MPI_Get_count(&status, type, &received);
  expect(received == count && theirs[7] == previous * 1000 + 7, "MPI_Sendrecv: %d elements", received);
  MPI_Allgather(mine.data(), count, type, all.data(), count, type, MPI_COMM_WORLD);
  for (int r = 0; r < p; ++r) expect(all[r * count + 9] == r * 1000 + 9, "MPI_Allgather: what rank %d sent", r);
  theirs = mine;
  MPI_Bcast(theirs.data(), count, type, 0, MPI_COMM_WORLD);
  expect(theirs[count - 1] == count - 1, "MPI_Bcast");

  MPI_Datatype column;
  MPI_Type_vector(count / 2, 1, 2, type, &column);
  MPI_Type_commit(&column);
  theirs.assign(count, 0);
  MPI_Sendrecv(mine.data(), 1, column, next, 6, theirs.data(), 1, column, previous, 6, MPI_COMM_WORLD, &status);
  expect(theirs[4] == previous * 1000 + 4 && theirs[5] == 0, "a vector of the type");
  MPI_Type_free(&column);
}

void handles() {
  const MPI_Datatype half = gpurdma_mpi_float16(), brain = gpurdma_mpi_bfloat16();
  expect(half != brain && half == gpurdma_mpi_float16(), "handles differ, and stay");
  expect(half == float16_of_the_other_file() && gpurdma_mpi_op(MPI_SUM, half) == sum_of_the_other_file(),
         "all files of a program have the same handles");
  expect(gpurdma_mpi_op(MPI_BAND, half) == MPI_OP_NULL, "no op for MPI_BAND");
  expect(gpurdma_mpi_op(MPI_BAND, MPI_INT) == MPI_BAND, "predefined types have predefined ops");
}

void bits_of_both(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) ((uint16_t*)inout)[i] = (uint16_t)(((uint16_t*)inout)[i] | ((uint16_t*)in)[i]);
}

// Makes the call and expects that gpurdma ran it, or did not.
uint16_t reduced(uint16_t bits, MPI_Datatype type, MPI_Op op, bool ours, const char* what) {
  uint16_t out = 0;
  const unsigned long long before = check::calls ? check::calls->sum() : 0;
  MPI_Allreduce(&bits, &out, 1, type, op, MPI_COMM_WORLD);
  const unsigned long long ran = check::calls ? check::calls->sum() - before : 0;
  if (check::calls) expect(ran == (ours && check::expect_active()), "%s: gpurdma ran %llu calls", what, ran);
  return out;
}

// gpurdma runs the header's ops, and goes by more than the type: an op that it does not know goes beneath, and so does
// an op of the other type.
void whose_op_it_is() {
  const MPI_Datatype half = gpurdma_mpi_float16(), brain = gpurdma_mpi_bfloat16();
  for (MPI_Datatype type : {half, brain})
    for (MPI_Op op : kOps) reduced(0, type, gpurdma_mpi_op(op, type), true, "an op of the header");
  reduced(0, half, gpurdma_mpi_op(MPI_SUM, brain), false, "an op of the other type");
  MPI_Op op;
  MPI_Op_create(bits_of_both, 1, &op);
  const uint16_t bits = reduced((uint16_t)(1 << check::rank), half, op, false, "a user's op");
  expect(bits == (1 << check::size) - 1, "a user's op gives %x", bits);
  MPI_Op_free(&op);
  // A duplicate is another type, with the same bits.
  MPI_Datatype twin;
  MPI_Type_dup(half, &twin);
  const uint16_t sum = reduced(0x3c00, twin, gpurdma_mpi_op(MPI_SUM, half), false, "a duplicate of the type");
  expect(oracle::Sixteen<11>::number({sum}) == check::size, "a duplicate of the type gives %x", sum);
  MPI_Type_free(&twin);
}

}  // namespace

int tests::half() {
  check::start();
  handles();
  whose_op_it_is();
  for (MPI_Datatype type : {gpurdma_mpi_float16(), gpurdma_mpi_bfloat16()}) other_calls(type);
  pairs<11>(gpurdma_mpi_float16());
  pairs<8>(gpurdma_mpi_bfloat16());
  for (int count : {0, 1, check::size + 1, 4099, 100003}) {
    all_calls<11>(gpurdma_mpi_float16(), count);
    all_calls<8>(gpurdma_mpi_bfloat16(), count);
  }
  // On a communicator that is made later, too.
  MPI_Comm half_of_them;
  MPI_Comm_split(MPI_COMM_WORLD, check::rank % 2, 0, &half_of_them);
  int p = 0;
  MPI_Comm_size(half_of_them, &p);
  uint16_t one = 0x3c00, sum = 0;
  MPI_Allreduce(&one, &sum, 1, gpurdma_mpi_float16(), gpurdma_mpi_op(MPI_SUM, gpurdma_mpi_float16()), half_of_them);
  expect(oracle::Sixteen<11>::number({sum}) == p, "the sum of %d ones on a communicator", p);
  MPI_Comm_free(&half_of_them);
  return check::finish();
}
