// What a tool sees and what wrong arguments give: MPI_T settings and counters, and MPI errors.
#include "check.h"
#include "tests.h"

namespace {

using check::expect;

// Finds a setting by name; -1: there is none.
int setting(const char* name) {
  int index = -1;
  return MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS ? index : -1;
}

}  // namespace

// MPI_T may be initialised before MPI and be in use after it.
int tests::tool() {
  int provided;
  expect(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS, "MPI_T_init_thread before MPI_Init failed");
  check::start();
  if (check::expect_active()) {
    for (const char* name :
         {"coll_gpurdma_scope", "coll_gpurdma_priority", "coll_gpurdma_algorithm", "coll_gpurdma_piece",
          "coll_gpurdma_depth", "coll_gpurdma_deadline", "coll_gpurdma_stall_warning", "coll_gpurdma_verbose",
          "coll_gpurdma_summary", "coll_gpurdma_radix", "coll_gpurdma_tuning"})
      expect(setting(name) >= 0, "there is no setting %s", name);
    check::Counters calls("_calls"), bytes("_bytes"), time("_time_ns");
    expect(calls.variables() > 0 && bytes.variables() > 0 && time.variables() > 0,
           "counters: %zu calls, %zu bytes, %zu times", calls.variables(), bytes.variables(), time.variables());
    std::vector<float> data(1000, 1);
    for (int i = 0; i < 10; ++i) MPI_Allreduce(MPI_IN_PLACE, data.data(), 1000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (check::size > 1) {
      expect(calls.sum() == 10, "10 calls were counted as %llu", calls.sum());
      expect(bytes.sum() >= 40000, "40000 bytes were counted as %llu", bytes.sum());
      expect(time.sum() > 0, "no time was counted");
    }
  }
  int mine = 1, sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect(sum == check::size, "sum %d", sum);
  check::expect_calls();
  MPI_T_finalize();  // MPI allows it after MPI_Finalize too, but there Open MPI 4.1 itself crashes
  return check::finish();
}

int tests::errors() {
  check::start();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  double in[4] = {1, 1, 1, 1}, out[4] = {0};
  const auto fails = [](int status, int wanted, const char* what) {
    int kind = MPI_SUCCESS;
    MPI_Error_class(status, &kind);
    expect(kind == wanted, "%s: error class %d instead of %d", what, kind, wanted);
  };
  MPI_Request request = MPI_REQUEST_NULL;
  fails(MPI_Allreduce(in, out, 4, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD), MPI_ERR_OP, "bitwise and of doubles");
  fails(MPI_Allreduce(in, out, 4, MPI_DOUBLE, MPI_MAXLOC, MPI_COMM_WORLD), MPI_ERR_OP, "MAXLOC of doubles");
  fails(MPI_Iallreduce(in, out, 4, MPI_C_BOOL, MPI_SUM, MPI_COMM_WORLD, &request), MPI_ERR_OP, "sum of truths");
  fails(MPI_Allreduce(in, out, 4, MPI_DOUBLE, MPI_OP_NULL, MPI_COMM_WORLD), MPI_ERR_OP, "no op");
  fails(MPI_Allreduce(in, out, -1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_COUNT, "negative count");
  expect(MPI_Allreduce(in, out, 4, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS, "no type: no error");
  fails(MPI_Allreduce(in, MPI_IN_PLACE, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER, "output in place");

  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
  MPI_Type_commit(&pair);
  fails(MPI_Allreduce(in, out, 2, pair, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_OP, "predefined op on a derived type");
  MPI_Type_free(&pair);

  fails(MPI_Allreduce(in, out, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS, "a right call after all these");
  expect(out[0] == check::size && out[3] == check::size, "a right call after all these: wrong sum");
  return check::finish();
}
