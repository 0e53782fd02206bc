"""The list of tests that test/mpi/run runs: what, on how many ranks, with which settings.

A row stands for one test, or with `each` for one test per algorithm of the catalogue, drawn from gpurdma_info, so that
a new algorithm is tested at once: all of them, those that have a RADIX, or those that follow the NODES. QUICK fits
continuous integration, about four minutes on two cores; FULL is for nights.
"""
import os

HERE = os.path.dirname(os.path.abspath(__file__))
TUNING = os.path.join(HERE, "tuning.txt")

ALL, RADIX, NODES = "allreduce", "has a radix", "follows the nodes"  # what gpurdma_info's line of an algorithm holds


class Test:
    """program: a test of mpi_tests, or tune, or one in another language (FOREIGN in test/mpi/run). active: whether gpurdma must have run something on
    every rank, or nothing. expect: patterns of lines that must appear; allow: of lines that may. releases: where it
    can run. emulator: None, or the settings of the software CUDA driver that it runs on (GPURDMA_EMU_*, as DELAY=100).
    """

    def __init__(self, name, program, ranks, arguments="", mca=None, active=True, each="", timeout_s=60, expect=(),
                 allow=(), releases=("4.1", "5.0", "6.0"), why_not="", emulator=None):
        self.name, self.program, self.ranks, self.arguments = name, program, ranks, arguments.split()
        self.active, self.each, self.timeout_s = active, each, timeout_s
        self.expect, self.allow, self.releases, self.why_not = list(expect), list(allow), releases, why_not
        self.mca = {"coll": "gpurdma"} if mca is None else mca
        self.emulator = emulator
        if emulator is not None:
            self.mca = dict({"coll_gpurdma_gpu": "yes"}, **self.mca)

    def forced(self, algorithm):
        """The same test with one algorithm."""
        copy = Test(f"{self.name}, {algorithm}", self.program, self.ranks, timeout_s=self.timeout_s)
        copy.__dict__.update({k: v for k, v in self.__dict__.items() if k not in ("name", "mca")})
        copy.mca = dict(self.mca, coll_gpurdma_algorithm=algorithm)
        return copy

    def skip_reason(self, series):
        return "" if series in self.releases else self.why_not


def gpurdma(**settings):
    """The MCA settings of a run with gpurdma and these of its settings."""
    return dict({"coll": "gpurdma"}, **{f"coll_gpurdma_{name}": value for name, value in settings.items()})


def expand(rows, algorithms):
    """One test per row, or per row and algorithm; algorithms: name to line."""
    return [test for row in rows for test in
            ([row.forced(name) for name, line in algorithms.items() if row.each in line] if row.each else [row])]


ACTIVE_LINE = r"gpurdma: .*: active: "
INACTIVE_LINE = r"gpurdma: .*: not active: "
INFO_LINE = r"gpurdma: .* ranks\): (not )?active: "

# Whether gpurdma is active, and that the job goes on where it is not.
ACTIVATION = [
    Test("nodes that make no sense", "finalize", 3, mca=gpurdma(test_nodes="2,x"), active=False,
         expect=[r"gpurdma: .*test_nodes is .2,x.; allowed"]),
    Test("other nodes on one rank", "finalize", 3, "--other 1 --setting test_nodes --value 2", active=False,
         expect=[r"gpurdma: .*not active: rank 1 has other settings"]),
    Test("active when named", "finalize", 2, mca=gpurdma(verbose=2), expect=[ACTIVE_LINE], allow=[INFO_LINE]),
    Test("scope always, not named", "finalize", 3, mca={"coll_gpurdma_scope": "always"}),
    Test("scope never, named", "finalize", 3, mca=gpurdma(scope="never"), active=False),
    Test("not named, no GPU", "finalize", 3, mca={"coll_gpurdma_verbose": 2}, active=False, expect=[INFO_LINE]),
    Test("an explicit list", "comms", 3, mca={"coll": "gpurdma,tuned,basic,libnbc,self,inter"}),
    Test("without gpurdma", "finalize", 3, mca={"coll": "^gpurdma"}, active=False),
    Test("without tuned", "comms", 3, mca={"coll": "^tuned", "coll_gpurdma_scope": "always"}),
    Test("one rank", "comms", 1),
    Test("a rank that cannot start", "finalize", 4, mca=gpurdma(test_unable=2, verbose=2), active=False,
         expect=[r"gpurdma: .*test_unable", INACTIVE_LINE]),
    Test("a scope that does not exist", "finalize", 3, mca=gpurdma(scope="sometimes"), active=False,
         expect=[r"gpurdma: .*sometimes.*auto, always, never"]),
    Test("an algorithm that does not exist", "finalize", 3, mca=gpurdma(algorithm="magic"), active=False,
         expect=[r"gpurdma: .*magic"]),
    Test("a radix of one", "finalize", 3, mca=gpurdma(radix=1), active=False, expect=[r"gpurdma: .*radix is 1; allowed"]),
    Test("a summary that is neither yes nor no", "finalize", 3, mca=gpurdma(summary="maybe"), active=False,
         expect=[r"gpurdma: .*summary is .maybe.; allowed"]),
    Test("a GPU that is neither there nor not", "finalize", 3, mca=gpurdma(gpu="maybe"), active=False,
         expect=[r"gpurdma: .*gpu is .maybe.; allowed are detect, yes, no"]),
    Test("a path to GPUs that does not exist", "finalize", 3, mca=gpurdma(gpu_path="fast"), active=False,
         expect=[r"gpurdma: .*gpu_path is .fast.; allowed are auto, mirror, staged, direct"]),
    Test("a readiness that does not exist", "finalize", 3, mca=gpurdma(input_ready="soon"), active=False,
         expect=[r"gpurdma: .*input_ready is .soon.; allowed are default_stream, none"]),
    Test("pinned memory that is no number", "finalize", 3, mca=gpurdma(pinned_memory="lots"), active=False,
         expect=[r"gpurdma: .*pinned_memory is .lots.; a number of bytes"]),
    Test("settings for GPUs", "finalize", 3, mca=gpurdma(gpu="no", gpu_path="staged", gpu_mirror="8k", gpu_kernels="no",
                                                         pinned_memory="16m", device_memory="8m", input_ready="none")),
    Test("a tuning file that is none", "finalize", 3, mca=gpurdma(tuning=os.path.join(HERE, "tests.py")), active=False,
         expect=[r"gpurdma: setting coll_gpurdma_tuning: .*tests.py:1:1: unknown collective"]),
    Test("a tuning file that is not there", "finalize", 3, mca=gpurdma(tuning="/none/there"), active=False,
         expect=[r"gpurdma: setting coll_gpurdma_tuning: /none/there: cannot be opened: No such file"]),
    Test("a negative depth", "finalize", 3, mca=gpurdma(depth=-3), active=False, expect=[r"gpurdma: .*depth"]),
]

# Lines of the summary: one that says that something ran, and all others.
RAN, SUMMARY = r"allreduce +\w+ +\S.* +[1-9]\d* ", [r"^(gpurdma|collective|allreduce|sent over)"]

# The life of a job, and what it sees.
LIFE = [
    Test("sessions", "sessions", 3, releases=("5.0", "6.0"), why_not="Open MPI has sessions from 5.0 on"),
    Test("spawn", "spawn", 2),
    Test("fork", "forks", 3),
    Test("finalize right after", "finalize", 4),
    Test("progress while in MPI_Recv", "progress", 4),
    Test("MPI_T", "tool", 3),
    Test("wrong arguments", "errors", 3),
    Test("memory returns", "memory", 2, "--mib 64", timeout_s=120),
    Test("summary", "finalize", 3, mca=gpurdma(summary=1), expect=[RAN], allow=SUMMARY),
    Test("Fortran, mpi_f08", "f08", 3),
    Test("Fortran, mpif.h", "mpif", 3),
    Test("Python, mpi4py", "mpi4py", 3),
    Test("16-bit floats", "half", 4),
    Test("16-bit floats, 7 ranks", "half", 7),
    Test("16-bit floats, beneath", "half", 4, mca={"coll": "^gpurdma"}, active=False),
    Test("16-bit floats, Fortran", "half_f08", 3, mca=gpurdma(summary=1), expect=[RAN], allow=SUMMARY),
    Test("16-bit floats, mpi4py", "half_mpi4py", 3, mca=gpurdma(summary=1), expect=[RAN], allow=SUMMARY),
    Test("16-bit floats, mpi4py, beneath", "half_mpi4py", 3, mca={"coll": "^gpurdma"}, active=False),
]

COMMUNICATORS = [
    Test("communicators", "comms", 4),
    Test("communicators, 7 ranks", "comms", 7),
    Test("a thousand communicators", "churn", 3, timeout_s=90),
    Test("ten thousand communicators", "churn", 2, "--rounds 5000", timeout_s=90),
    Test("threads", "threads", 3, timeout_s=120),
    # User ops run in the component beneath.
    Test("user ops", "userop", 3, active=False),
    Test("user ops, 4 ranks", "userop", 4, active=False),
    Test("types that go beneath", "beneath", 3, active=False),
    Test("op and type freed early", "early_free", 3, active=False),
]

# The line names the operation, the peer and the path, save where ULFM knew first, which does not tell.
LOST = [r"gpurdma: .*(operation \d+ .*peer rank \d+ over \w+|closed to gpurdma after a failure)"]
FAULT = [
    Test("a rank is killed", "fault", 3, "--seconds 30", timeout_s=60, expect=LOST),
    Test("a rank is killed, nonblocking", "fault", 3, "--seconds 30 --nonblocking", timeout_s=60, expect=LOST),
    Test("a rank is killed, small", "fault", 4, "--seconds 30 --count 10", timeout_s=60, expect=LOST),
]

# A rank that comes late, and what the settings make of it.
LATE = [
    Test("a late rank", "late", 3, "--seconds 2"),
    Test("a late rank, stall warning", "late", 3, "--seconds 3", mca=gpurdma(stall_warning=1),
         expect=[r"gpurdma: .*has waited .*for rank 0"], allow=[r"gpurdma: .*has waited .*for rank \d"]),
    Test("a late rank, deadline", "late", 3, "--seconds 6 --error", mca=gpurdma(deadline=2),
         expect=[r"gpurdma: .*the deadline; it waits for rank \d"], allow=[r"gpurdma: .*(deadline|closed|fails)"]),
]

# What is forced is what runs; the debugging line says it.
FORCED = [
    Test("piece and depth, forced", "finalize", 2, mca=gpurdma(verbose=3, algorithm="ring", piece=64, depth=3),
         expect=[r"gpurdma: .*by ring, pieces of (8|16|64) elements, depth 3"], allow=[r"gpurdma: "]),
    # With two leaders, rank 3 talks to nobody but its own leader.
    Test("nodes, forced", "finalize", 4, mca=gpurdma(verbose=3, algorithm="leaders", test_nodes=2),
         expect=[r"on 2 nodes: allreduce of 4 bytes by leaders", r"rank 3 reaches rank 2"],
         allow=[r"gpurdma: (?!.*rank 3 reaches rank [01])"]),
    Test("nodes in turn, forced", "finalize", 4, mca=gpurdma(verbose=3, algorithm="leaders", test_nodes="%2"),
         expect=[r"on 2 nodes: allreduce of 4 bytes by leaders", r"rank 3 reaches rank 1"],
         allow=[r"gpurdma: (?!.*rank 3 reaches rank [02])"]),
    Test("another priority on one rank", "finalize", 3, "--other 1 --setting priority --value 5", active=False,
         expect=[r"gpurdma: .*not active: rank 1 has other settings"]),
    Test("a tuning file", "finalize", 3, mca=gpurdma(verbose=3, tuning=TUNING),
         expect=[r"gpurdma: .* 4 bytes by ring, pieces of 16 elements, depth 3, radix 5"], allow=[r"gpurdma: "]),
    Test("a tuning file and a forced depth", "finalize", 3, mca=gpurdma(verbose=3, tuning=TUNING, depth=2, radix=4),
         expect=[r"gpurdma: .* 4 bytes by ring, pieces of 16 elements, depth 2, radix 4"], allow=[r"gpurdma: "]),
    Test("a tuning file on one rank", "finalize", 3, f"--other 1 --setting tuning --value {TUNING}", active=False,
         expect=[r"gpurdma: .*not active: rank 1 has other settings .*tuning"]),
]

# Device memory, on the software CUDA driver. In the last ones the component beneath runs allreduce as well.
# Device memory, on the software CUDA driver: allreduce, and each operand in memory of some kind.
KINDS = "--memory device,device1,managed,pinned,host"
TYPES = "--types MPI_INT,MPI_FLOAT,MPI_LONG_DOUBLE,MPI_DOUBLE_INT,float16"
RESIDENT = [
    Test("matrix, device memory", "matrix", 3, "--brief --memory device", emulator={}, timeout_s=240),
    Test("matrix, all kinds of memory", "matrix", 4, f"{TYPES} {KINDS}", timeout_s=240,
         emulator={"DEVICES": 2, "DELAY": 100, "SEED": 3}),
] + [
    Test(f"matrix, device memory, {path}", "matrix", 3, f"--brief {TYPES} {KINDS}", each=ALL, timeout_s=240,
         mca=gpurdma(gpu_path=path, **others), emulator={"DEVICES": 2})
    for path, others in (("mirror", {}), ("staged", {"piece": 1024, "depth": 2}))
] + [
    Test("matrix, device memory, little of it", "matrix", 3, f"--brief {TYPES} {KINDS}", timeout_s=240,
         mca=gpurdma(gpu_path="staged", pinned_memory="1m", device_memory="1m"), emulator={"DEVICES": 2}),
    Test("matrix, device memory, no kernels", "matrix", 3, f"--brief {TYPES} --memory device", timeout_s=240,
         emulator={"REFUSE_IMAGES": 1}, allow=[r"gpurdma: GPU .*kernels"]),
    Test("matrix, device memory, nodes of 2", "matrix", 4, f"--brief {TYPES} --memory device", each=NODES,
         mca=gpurdma(test_nodes="2", gpu_path="staged"), emulator={}, timeout_s=240),
    Test("copies of a mirror", "gpu_copies", 2, "--path mirror", mca=gpurdma(gpu_path="mirror"), emulator={}),
    Test("copies of staged messages", "gpu_copies", 4, mca=gpurdma(gpu_path="staged", algorithm="ring"), emulator={}),
    Test("a thousand rounds in device memory", "gpu_rounds", 2, emulator={"DELAY": 5}, timeout_s=240),
    Test("failures of a driver", "gpu_faults", 3, emulator={}, timeout_s=280, allow=[r"gpurdma: "]),
]

DEVICES = [
    Test("collectives, host memory", "collectives", 4, "--kind host"),
    Test("collectives, device memory", "collectives", 3, "--kind device", emulator={}, timeout_s=120),
    Test("collectives, managed memory", "collectives", 4, "--kind managed --brief", emulator={}, timeout_s=120),
    Test("collectives, pinned memory", "collectives", 3, "--kind pinned --brief", emulator={}, timeout_s=120),
    Test("collectives, mixed memory", "collectives", 5, "--kind mixed --brief", timeout_s=120,
         emulator={"DELAY": 100, "SEED": 3, "LEAKS": 1}),
    Test("collectives, two ranks", "collectives", 2, "--kind device --brief", emulator={}),
    Test("collectives, one rank", "collectives", 1, "--kind device", emulator={}),
    Test("chains", "chains", 4, emulator={"DELAY": 200, "LEAKS": 1}),
    Test("chains, two GPUs", "chains", 3, "--seed 2", emulator={"DEVICES": 2, "DELAY": 50}),
    Test("chains, not active", "chains", 3, mca=gpurdma(scope="never"), active=False, emulator={"DELAY": 100}),
    Test("a GPU's functions fail", "gpu_failures", 3, active=False, emulator={}, allow=[r"gpurdma: "]),
    Test("collectives, not active", "collectives", 4, "--kind mixed", mca=gpurdma(scope="never"), active=False,
         emulator={"DELAY": 100}, timeout_s=120),
]

# The program that makes tuning files; it prints what it writes.
ROW = r"^allreduce  ranks {ranks}  nodes {nodes}  bytes 0-.*  piece "
TUNE = [
    Test("tune", "tune", 2, "--quick --max 16384", mca={"coll": "^gpurdma"}, timeout_s=60, allow=[""],
         expect=[ROW.format(ranks="2", nodes=1), r"^written to "]),
    Test("tune, over nodes", "tune", 4, "--quick --max 16384 --nodes 3,1 --ranks 4-7", mca={"coll": "^gpurdma"},
         timeout_s=60, allow=[""], expect=[ROW.format(ranks="4-7", nodes=2), r"^written to "]),
]

UCX = {"pml": "ucx", "pml_ucx_tls": "any", "pml_ucx_devices": "any"}

FEW = "--types MPI_INT,MPI_DOUBLE --ops MPI_SUM,MPI_MAX --counts 0,1,5,37,1000,40003"

QUICK = [
    Test("matrix", "matrix", 4, timeout_s=120),
    Test("matrix, 3 ranks", "matrix", 3, "--brief", each=ALL),
    Test("matrix, 8 ranks", "matrix", 8, "--brief --types MPI_INT,MPI_DOUBLE,MPI_SHORT_INT", each=ALL, timeout_s=120),
] + [
    Test(f"matrix, {ranks} ranks, odd counts", "matrix", ranks,
         "--types MPI_INT,MPI_DOUBLE --ops MPI_SUM --counts 37,10007", each=ALL) for ranks in (5, 6, 7, 9)
] + [
    Test("matrix, a million and three", "matrix", 5, "--types MPI_INT --ops MPI_SUM --counts 1000003", each=ALL),
    Test("matrix, equal buffers", "matrix", 3, "--brief --equal", mca=dict(gpurdma(), mpi_param_check=0)),
    Test("matrix, tiny pieces", "matrix", 5,
         "--types MPI_INT,MPI_DOUBLE --ops MPI_SUM,MPI_MAX --counts 0,1,5,1000,4099",
         mca=gpurdma(piece=64, depth=1), each=ALL),
    Test("matrix, odd pieces", "matrix", 2, "--types MPI_INT,MPI_FLOAT_INT,MPI_SIGNED_CHAR",
         mca=gpurdma(piece=1000, depth=3), each=ALL),
    # Pretended nodes: equal, uneven, one rank each, dealt out in turn.
    Test("matrix, nodes of 2", "matrix", 6, FEW, mca=gpurdma(test_nodes="2"), each=NODES),
    Test("matrix, nodes of 3 and 1", "matrix", 5, FEW, mca=gpurdma(test_nodes="3,1", radix=3, piece=256), each=NODES),
    Test("matrix, nodes of 1", "matrix", 3, FEW, mca=gpurdma(test_nodes="1"), each=NODES),
    Test("matrix, nodes in turn", "matrix", 7, FEW, mca=gpurdma(test_nodes="%3", depth=1), each=NODES),
    Test("in flight, nodes in turn", "flight", 5, "--rounds 20", mca=gpurdma(test_nodes="%2"), each=NODES),
    Test("communicators, nodes of 2", "comms", 5, mca=gpurdma(test_nodes="2"), each=NODES),
    Test("a thousand communicators on nodes", "churn", 3, mca=gpurdma(test_nodes="2"), each=NODES, timeout_s=120),
    Test("matrix, radix 3", "matrix", 5, FEW, mca=gpurdma(radix=3), each=RADIX),
    Test("matrix, radix 8", "matrix", 9, FEW, mca=gpurdma(radix=8, test_nodes="5,1"), each=RADIX),
    Test("matrix, pml ucx", "matrix", 2, "--brief", mca=dict(gpurdma(), **UCX)),
    Test("in flight", "flight", 4, each=ALL),
    Test("in flight, 7 ranks", "flight", 7, "--rounds 20"),
    Test("in flight, tiny pieces", "flight", 3, mca=gpurdma(piece=128, depth=1)),
] + COMMUNICATORS + LIFE + ACTIVATION + FAULT + LATE + FORCED + RESIDENT + DEVICES + TUNE + [
    Test("more than 2^31", "big", 2, timeout_s=900),
]

FULL = QUICK + [
    Test(f"matrix, all, {ranks} ranks", "matrix", ranks, each=ALL, timeout_s=900) for ranks in range(1, 10)
] + [
    Test(f"matrix, {ranks} ranks", "matrix", ranks, "--brief", each=ALL, timeout_s=900)
    for ranks in (13, 16, 24)
] + [
    Test(f"matrix, piece {piece}, depth {depth}", "matrix", 4, "--brief", mca=gpurdma(piece=piece, depth=depth),
         each=ALL, timeout_s=600) for piece in (64, 1000, 4096, 65536) for depth in (1, 2, 5)
] + [
    Test(f"in flight, {ranks} ranks, long", "flight", ranks, "--rounds 300", each=ALL, timeout_s=900)
    for ranks in (2, 3, 5, 9)
] + [
    Test("threads, long", "threads", 4, "--rounds 2000", timeout_s=900),
]
