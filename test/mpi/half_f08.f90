! A Fortran program that reduces 16-bit floats, whose bits it holds in integer(2).
program half_f08
  use mpi_f08
  use gpurdma_mpi
  implicit none
  integer, parameter :: n = 20000
  integer(2), parameter :: one = int(z'3c00', 2), two = int(z'4000', 2), one_brain = int(z'3f80', 2)
  integer(2), parameter :: ones(0:4) = [int(z'0000', 2), one, two, int(z'4200', 2), int(z'4400', 2)] ! 0 to 4
  integer(2) :: x(n), y(n)
  integer :: rank, ranks, wrong
  type(MPI_Datatype) :: half, brain
  type(MPI_Op) :: total, product, highest
  type(MPI_Request) :: request

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  half%MPI_VAL = gpurdma_mpi_float16()
  brain%MPI_VAL = gpurdma_mpi_bfloat16()
  total%MPI_VAL = gpurdma_mpi_op(MPI_SUM%MPI_VAL, half%MPI_VAL)
  product%MPI_VAL = gpurdma_mpi_op(MPI_PROD%MPI_VAL, brain%MPI_VAL)
  highest%MPI_VAL = gpurdma_mpi_op(MPI_MAX%MPI_VAL, half%MPI_VAL)
  wrong = 0

  x = one
  call MPI_Allreduce(x, y, n, half, total, MPI_COMM_WORLD)
  wrong = wrong + count(y /= ones(ranks))
  x = ones(mod(rank, 2))
  call MPI_Iallreduce(MPI_IN_PLACE, x, n, half, highest, MPI_COMM_WORLD, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  wrong = wrong + count(x /= one)
  x = one_brain
  call MPI_Allreduce(x, y, n, brain, product, MPI_COMM_WORLD)
  wrong = wrong + count(y /= one_brain)

  if (wrong /= 0) print '(a, i0, a, i0, a)', 'FAIL half_f08, rank ', rank, ': ', wrong, ' elements are wrong'
  if (wrong == 0 .and. rank == 0) print '(a, i0, a)', 'ok half_f08: ', ranks, ' ranks'
  call MPI_Finalize()
  if (wrong /= 0) stop 1
end program
