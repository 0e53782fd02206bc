// Many nonblocking and persistent collectives in flight on one communicator, on device and on host memory in turn, and
// a communicator made after them; completed in an order of each rank's own. Types, ops and communicators freed early.
// Bytes in gaps that the program changes meanwhile. And a driver whose functions fail.
#include "operand.h"
#include "tests.h"

namespace {

using check::expect;
using device::Kind;
using device::Operand;
using device::Value;
using layouts::Layout;

Value from(int rank, int round) {
  return [=](size_t i) { return rank * 1009 + round * 31 + int(i); };
}
Value sum(int ranks, int round) {
  return [=](size_t i) {
    int total = 0;
    for (int r = 0; r < ranks; ++r) total += from(r, round)(i);
    return total;
  };
}

enum class What { bcast, allgather, alltoall, reduce, scan, allreduce, barrier };
constexpr int kWhats = 7;
const char* const kNames[] = {"bcast", "allgather", "alltoall", "reduce", "scan", "allreduce", "barrier"};

#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#define INIT(name) MPIX_##name##_init
#else
#define INIT(name) MPI_##name##_init
#endif
#define CALL(A, a, rest, ...) \
  (persistent_ ? INIT(A##rest)(__VA_ARGS__, MPI_INFO_NULL, &request) : MPI_I##a##rest(__VA_ARGS__, &request))

// One operation: integers, or for what moves data only any layout.
class Operation {
 public:
  Operation(What what, const Layout& layout, size_t triples, int root, bool persistent, Kind send, Kind receive,
            int round)
      : what_(what),
        layout_(layout),
        triples_(triples),
        root_(root),
        persistent_(persistent),
        send_(layout),
        receive_(layout),
        round_(round) {
    const int me = check::rank, p = check::size, elements = (int)layout.elements(triples);
    const Value mine = from(me, round);
    const auto each = [&](Operand& operand, const std::function<Value(int)>& before,
                          const std::function<Value(int)>& after) {
      for (int r = 0; r < p; ++r) operand.add(ptrdiff_t(r) * elements, triples, before(r), after(r));
    };
    const auto nothing = [](int) { return Value(); };
    switch (what) {
      case What::bcast:
        receive_.add(0, triples, me == root ? mine : Value(), from(root, round));
        break;
      case What::allgather:
        send_.add(0, triples, mine, Value());
        each(receive_, nothing, [&](int r) { return from(r, round); });
        break;
      case What::alltoall:
        each(
            send_, [&](int r) { return from(me * 100 + r, round); }, nothing);
        each(receive_, nothing, [&](int r) { return from(r * 100 + me, round); });
        break;
      case What::reduce:
        send_.add(0, triples, mine, Value());
        receive_.add(0, triples, Value(), me == root ? sum(p, round) : Value());
        break;
      case What::scan:
        send_.add(0, triples, mine, Value());
        receive_.add(0, triples, Value(), sum(me + 1, round));
        break;
      case What::allreduce:
        send_.add(0, triples, mine, Value());
        receive_.add(0, triples, Value(), sum(p, round));
        break;
      case What::barrier:
        break;
    }
    check::Random random(check::mix(check::seed, uint64_t(round), uint64_t(me)));
    send_.make(send, random), receive_.make(receive, random);
    put();
  }

  // Calls MPI, and starts what is persistent.
  int start(MPI_Comm comm, MPI_Datatype type, MPI_Op op = MPI_SUM) {
    const int n = (int)layout_.elements(triples_);
    const int error = call(comm, type, op, n);
    return error == MPI_SUCCESS && persistent_ ? MPI_Start(&request) : error;
  }
  int start(MPI_Comm comm) { return start(comm, layout_.type); }
  int wait() {
    const int error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (persistent_ && request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    return error;
  }
  void put() { send_.put(), receive_.put(); }
  void check_after() {
    char what[100];
    snprintf(what, sizeof what, "round %d, %s%s, %zu triples", round_, persistent_ ? "persistent " : "",
             kNames[int(what_)], triples_);
    send_.check_after(what, "send");
    receive_.check_after(what, "receive");
  }

  MPI_Request request = MPI_REQUEST_NULL;

 private:
  int call(MPI_Comm comm, MPI_Datatype type, MPI_Op op, int n) {
    switch (what_) {
      case What::bcast:
        return CALL(B, b, cast, receive_.address(), n, type, root_, comm);
      case What::allgather:
        return CALL(A, a, llgather, send_.address(), n, type, receive_.address(), n, type, comm);
      case What::alltoall:
        return CALL(A, a, lltoall, send_.address(), n, type, receive_.address(), n, type, comm);
      case What::reduce:
        return CALL(R, r, educe, send_.address(), receive_.address(), n, type, op, root_, comm);
      case What::scan:
        return CALL(S, s, can, send_.address(), receive_.address(), n, type, op, comm);
      case What::allreduce:
        return CALL(A, a, llreduce, send_.address(), receive_.address(), n, type, op, comm);
      default:
        return CALL(B, b, arrier, comm);
    }
  }

  const What what_;
  const Layout& layout_;
  const size_t triples_;
  const int root_;
  const bool persistent_;
  Operand send_, receive_;
  const int round_;
};

bool reduces(What what) { return what == What::reduce || what == What::scan || what == What::allreduce; }

// What all ranks draw alike, and what each draws for itself.
std::unique_ptr<Operation> draw(check::Random& all, check::Random& own, int round) {
  const What what = What(all.below(kWhats));
  const Layout& layout = layouts::all()[reduces(what) ? 0 : all.below(6)];
  const size_t triples = all.below(4) ? all.below(40) : 5000;
  const int root = (int)all.below(size_t(check::size));
  const bool persistent = all.below(4) == 0;
  const auto kind = [&] { return Kind(own.below(device::kKinds)); };
  const Kind send = kind(), receive = kind();
  return std::make_unique<Operation>(what, layout, triples, root, persistent, send, receive, round);
}

void in_flight(int round) {
  check::Random all(check::mix(check::seed, uint64_t(round))), own(all.next() + uint64_t(check::rank));
  MPI_Comm comm, made;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<std::unique_ptr<Operation>> list;
  MPI_Request making = MPI_REQUEST_NULL;
  for (int i = 0; i < 12; ++i) {
    list.push_back(draw(all, own, round));
    expect(list.back()->start(comm) == MPI_SUCCESS, "round %d: operation %d does not start", round, i);
  }
  // Last, since Open MPI makes it by reductions on `comm` that it starts in progress: they would take their place among
  // operations started later in another order on each rank.
  MPI_Comm_idup(comm, &made, &making);
  own.shuffle(list);
  for (auto& operation : list) {
    for (int tests = (int)own.below(3), done = 0; tests > 0 && !done; --tests)
      MPI_Test(&making, &done, MPI_STATUS_IGNORE);
    expect(operation->wait() == MPI_SUCCESS, "round %d: an operation failed", round);
    operation->check_after();
  }
  MPI_Wait(&making, MPI_STATUS_IGNORE);
  Operation last(What::allreduce, layouts::all()[0], 100, 0, false, Kind::device, Kind::device, round);
  expect(last.start(made) == MPI_SUCCESS && last.wait() == MPI_SUCCESS, "round %d: on the new communicator", round);
  last.check_after();
  MPI_Comm_free(&made);
  MPI_Comm_free(&comm);
}

void add(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

// Everything but the memory is freed while the operation lives.
void freed_early(What what, bool persistent) {
  MPI_Comm comm;
  MPI_Datatype type = MPI_INT;
  MPI_Op op = MPI_SUM;
  const Layout& layout = layouts::all()[reduces(what) ? 0 : 2];
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (reduces(what))
    MPI_Op_create(add, 1, &op);
  else
    MPI_Type_dup(layout.type, &type);
  Operation operation(what, layout, 1000, 0, persistent, Kind::device, Kind::device, int(what));
  expect(operation.start(comm, type, op) == MPI_SUCCESS, "it does not start");
  if (op != MPI_SUM) MPI_Op_free(&op);
  if (type != MPI_INT) MPI_Type_free(&type);
  MPI_Comm_free(&comm);
  expect(operation.wait() == MPI_SUCCESS, "%s, with all freed early, failed", kNames[int(what)]);
  operation.check_after();
}

// The program may write into gaps at any time.
void changed_gaps() {
  const Layout& layout = layouts::all()[2];
  const int elements = 100;
  check::Random random(7);
  device::Buffer buffer(Kind::device, size_t(elements * layout.extent), random);
  buffer.put();
  MPI_Request request;
  MPI_Ibcast(buffer.address(), elements, layout.type, 0, MPI_COMM_WORLD, &request);
  const int gap = 4;  // behind the first integer of each
  for (int i = 0; i < elements; ++i) {
    const int changed = 1000 + i;
    memcpy(buffer.image() + i * layout.extent + gap, &changed, sizeof changed);
    device::driver.put(Kind::device, (char*)buffer.address() + i * layout.extent + gap, &changed, sizeof changed);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(buffer.wrong() == device::Buffer::none, "a gap that was changed during MPI_Ibcast did not stay as it was");
}

}  // namespace

int tests::chains() {
  device::start();
  layouts::commit();
  for (int round = 0; round < check::number("--rounds", 15); ++round) in_flight(round);
  for (const What what : {What::bcast, What::allgather, What::reduce, What::scan})
    for (const bool persistent : {false, true}) freed_early(what, persistent);
  changed_gaps();
  layouts::release();
  return device::finish();
}

// One rank's driver fails in one function, at its Nth call: calls on that rank may return an error, none hangs, and
// afterwards all is well again.
int tests::gpu_failures() {
  device::start();
  layouts::commit();
  const auto fail = (void (*)(const char*))device::driver.symbol("emu_fail");
  if (!fail) {
    if (check::rank == 0) printf("SKIP gpu_failures: this driver does not fail on request\n");
    MPI_Finalize();
    return 77;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int victim = check::size - 1;
  int errors = 0, round = 0;
  for (const char* function : {"cuMemcpyAsync", "cuMemcpy2DAsync", "cuEventRecord", "cuEventQuery", "cuStreamWaitEvent",
                               "cuMemHostAlloc", "cuStreamIsCapturing", "cuCtxPushCurrent"})
    for (const int call : {1, 2, 5})
      for (const bool failing : {true, false}) {
        std::vector<std::unique_ptr<Operation>> list;
        ++round;
        for (const What what : {What::bcast, What::allgather, What::alltoall, What::reduce})
          for (const bool persistent : {false, true})
            list.push_back(std::make_unique<Operation>(what, layouts::all()[what == What::reduce ? 0 : 2], 200, 0,
                                                       persistent, Kind::device, Kind::device, round));
        const std::string what = std::string(function) + ":" + std::to_string(call) + ":999";
        if (failing && check::rank == victim) fail(what.c_str());
        for (auto& operation : list) {
          int error = operation->start(MPI_COMM_WORLD);
          if (error == MPI_SUCCESS) error = operation->wait();
          errors += error != MPI_SUCCESS;
          expect(error == MPI_SUCCESS || (failing && check::rank == victim), "%s%s: error %d", what.c_str(),
                 failing ? "" : ", afterwards", error);
        }
        if (check::rank == victim) fail("");
        if (!failing)
          for (auto& operation : list) operation->check_after();
      }
  if (check::rank == victim) expect(errors > 0, "nothing failed");
  layouts::release();
  return device::finish();
}
