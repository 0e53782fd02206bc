! A Fortran program that reduces through mpi_f08: the types and the buffers that C has no name for.
program allreduce_f08
  use mpi_f08
  implicit none
  integer, parameter :: n = 20000
  integer :: rank, ranks, i, wrong
  double precision :: x(n), y(n)
  complex :: z(n)
  integer :: pair(2, n), best(2, n)
  logical :: mine, found
  type(MPI_Request) :: request

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  wrong = 0

  x = [(dble(rank + i), i = 1, n)]
  call MPI_Allreduce(x, y, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  wrong = wrong + count(y /= [(dble(ranks) * i + ranks * (ranks - 1) / 2, i = 1, n)])
  call MPI_Iallreduce(MPI_IN_PLACE, x, n, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  wrong = wrong + count(x /= [(dble(ranks - 1 + i), i = 1, n)])
  z = cmplx(1, -rank)
  call MPI_Allreduce(MPI_IN_PLACE, z, n, MPI_COMPLEX, MPI_SUM, MPI_COMM_WORLD)
  wrong = wrong + count(z /= cmplx(ranks, -ranks * (ranks - 1) / 2))
  pair(1, :) = mod([(i + rank, i = 1, n)], ranks)
  pair(2, :) = rank
  call MPI_Allreduce(pair, best, n, MPI_2INTEGER, MPI_MAXLOC, MPI_COMM_WORLD)
  wrong = wrong + count(best(1, :) /= ranks - 1) + count(mod([(i, i = 1, n)] + best(2, :), ranks) /= ranks - 1)
  mine = rank == ranks - 1
  call MPI_Allreduce(mine, found, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD)
  if (.not. found) wrong = wrong + 1

  if (wrong /= 0) print '(a, i0, a, i0, a)', 'FAIL f08, rank ', rank, ': ', wrong, ' elements are wrong'
  if (wrong == 0 .and. rank == 0) print '(a, i0, a)', 'ok f08: ', ranks, ' ranks'
  call MPI_Finalize()
  if (wrong /= 0) stop 1
end program
