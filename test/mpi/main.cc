// mpi_tests NAME [options]: one program under mpirun that holds all tests, so that a build links once.
#include <stdlib.h>

#include "check.h"
#include "tests.h"

namespace {

struct Test {
  const char* name;
  int (*run)();
  const char* what;
};

const Test kTests[] = {
    {"matrix", tests::matrix, "every op on every type, counts, buffers, kinds of call"},
    {"flight", tests::flight, "many operations in flight, started and completed in different orders"},
    {"comms", tests::comms, "communicators of all kinds, freed in any order, also with an operation in flight"},
    {"churn", tests::churn, "a thousand communicators made and freed; memory stays flat"},
    {"threads", tests::threads, "MPI_THREAD_MULTIPLE: reductions beside communicator creation"},
    {"userop", tests::userop, "user ops, commutative and not, on derived types with gaps and any lower bound"},
    {"early_free", tests::early_free, "op, type and communicator freed before the operation ends"},
    {"beneath", tests::beneath, "types that gpurdma leaves to the component beneath"},
    {"half", tests::half, "16-bit floats: the header's types in other MPI calls, its ops with gpurdma and without"},
    {"big", tests::big, "more than 2^31 bytes, and on MPI 4 more than 2^31 elements"},
    {"sessions", tests::sessions, "MPI sessions instead of MPI_Init"},
    {"spawn", tests::spawn, "spawned processes and intercommunicators"},
    {"forks", tests::forks, "fork in the application"},
    {"finalize", tests::finalize, "MPI_Finalize right after the last operation"},
    {"progress", tests::progress, "a rank in MPI_Recv while the others need its progress"},
    {"tool", tests::tool, "MPI_T: settings and counters, before and after MPI_Init"},
    {"errors", tests::errors, "wrong arguments give MPI errors"},
    {"memory", tests::memory, "allocate, reduce, free: memory in use returns"},
    {"fault", tests::fault, "a rank is killed: the others get an error, not a hang"},
    {"collectives", tests::collectives, "every collective on device, managed, pinned and host memory"},
    {"chains", tests::chains, "nonblocking collectives on device and host memory, many in flight"},
    {"gpu_failures", tests::gpu_failures, "functions of one rank's CUDA driver that fail"},
    {"gpu_copies", tests::gpu_copies, "device memory: copies per byte are those of the path"},
    {"gpu_rounds", tests::gpu_rounds, "device memory: allocate, reduce, free; what gpurdma holds stays flat"},
    {"gpu_faults", tests::gpu_faults, "device memory: every driver function fails once: an error, no hang"},
    {"late", tests::late, "a rank is late: nothing but a wait, or an error where the deadline is passed"},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  for (const Test& test : kTests) {
    if (name != test.name) continue;
    check::program = test.name;
    check::arguments.assign(argv + 2, argv + argc);
    check::seed = (uint64_t)check::number("--seed", 1);
    // --other RANK --setting NAME --value VALUE: that rank has another setting than the rest.
    const char* rank = getenv("OMPI_COMM_WORLD_RANK");
    const std::string setting = "OMPI_MCA_coll_gpurdma_" + check::text("--setting");
    if (rank && atol(rank) == check::number("--other", -1)) setenv(setting.c_str(), check::text("--value").c_str(), 1);
    return test.run();
  }
  for (const Test& test : kTests) printf("%-12s %s\n", test.name, test.what);
  return name.empty() || name == "--list" ? 0 : 2;
}
