"""A Python program that reduces with mpi4py: buffers, in place, nonblocking. Run under mpirun by test/mpi/run."""
import sys

import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
ranks = size * (size - 1) // 2
bad = 0
for count in (1, 7, 1000, 50000):
    index = numpy.arange(count)
    out = numpy.empty(count)
    comm.Allreduce(index + float(rank), out, op=MPI.SUM)
    bad += not numpy.array_equal(out, index * float(size) + ranks)
    data = (index + rank).astype("int64")
    comm.Allreduce(MPI.IN_PLACE, data, op=MPI.MAX)
    bad += not numpy.array_equal(data, index + size - 1)
    mine = index * 1.0
    comm.Iallreduce(mine, out, op=MPI.SUM).Wait()
    bad += not numpy.array_equal(out, index * float(size))
bad += comm.allreduce(rank) != ranks  # pickled objects, a user function
if bad:
    print(f"FAIL mpi4py, rank {rank} of {size}: {bad} results are wrong")
elif rank == 0:
    print(f"ok mpi4py: {size} ranks")
sys.stdout.flush()
MPI.Finalize()
sys.exit(1 if bad else 0)
