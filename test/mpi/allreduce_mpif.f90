! A Fortran program that reduces through mpif.h, whose MPI_IN_PLACE is a common block and whose requests are integers.
program allreduce_mpif
  implicit none
  include 'mpif.h'
  integer, parameter :: n = 5000
  integer :: rank, ranks, i, wrong, error, request
  real :: x(n), y(n)
  integer*8 :: k(n)

  call MPI_INIT(error)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, error)
  call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, error)
  wrong = 0
  do i = 1, n
    x(i) = rank + i
    k(i) = 2_8**40 * rank + i
  end do
  call MPI_ALLREDUCE(x, y, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, error)
  wrong = wrong + count(y /= [(real(ranks) * i + ranks * (ranks - 1) / 2, i = 1, n)])
  call MPI_IALLREDUCE(MPI_IN_PLACE, k, n, MPI_INTEGER8, MPI_MAX, MPI_COMM_WORLD, request, error)
  call MPI_WAIT(request, MPI_STATUS_IGNORE, error)
  wrong = wrong + count(k /= [(2_8**40 * (ranks - 1) + i, i = 1, n)])

  if (wrong /= 0) print '(a, i0, a, i0, a)', 'FAIL mpif, rank ', rank, ': ', wrong, ' elements are wrong'
  if (wrong == 0 .and. rank == 0) print '(a, i0, a)', 'ok mpif: ', ranks, ' ranks'
  call MPI_FINALIZE(error)
  if (wrong /= 0) stop 1
end program
