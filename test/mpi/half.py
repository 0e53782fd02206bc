"""A Python program that reduces 16-bit floats with mpi4py, given libgpurdma_mpi. Run under mpirun by test/mpi/run."""
import ctypes
import sys

import numpy
from mpi4py import MPI

library = ctypes.CDLL(sys.argv[1])
comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
half = MPI.Datatype.f2py(library.gpurdma_mpi_float16_f())
total, product, least, most = (MPI.Op.f2py(library.gpurdma_mpi_op_f(op.py2f(), half.py2f()))
                               for op in (MPI.SUM, MPI.PROD, MPI.MIN, MPI.MAX))
bad = 0
for count in (1, 7, 1000, 50000):
    mine = ((numpy.arange(count) + rank) % 5 - 2).astype(numpy.float16)
    all_of_them = numpy.array([(numpy.arange(count) + r) % 5 - 2 for r in range(size)], numpy.float64)
    for op, want in ((total, all_of_them.sum(0)), (product, all_of_them.prod(0)),
                     (least, all_of_them.min(0)), (most, all_of_them.max(0))):
        out = numpy.empty_like(mine)
        comm.Allreduce([mine, count, half], [out, count, half], op=op)
        bad += not numpy.array_equal(out, want)
        data = mine.copy()
        comm.Iallreduce(MPI.IN_PLACE, [data, count, half], op=op).Wait()
        bad += not numpy.array_equal(data, want)
    comm.Bcast([mine, count, half], root=0)
    bad += not numpy.array_equal(mine, all_of_them[0])
if bad:
    print(f"FAIL half, mpi4py, rank {rank} of {size}: {bad} results are wrong")
elif rank == 0:
    print(f"ok half, mpi4py: {size} ranks")
sys.stdout.flush()
MPI.Finalize()
sys.exit(1 if bad else 0)
