! gpurdma_mpi.h for Fortran: compile this file with the program, and link libgpurdma_mpi.
!
!   use gpurdma_mpi
!   half = gpurdma_mpi_float16()              integer; with mpi_f08: half%MPI_VAL = gpurdma_mpi_float16()
!   total = gpurdma_mpi_op(MPI_SUM, half)     integer; with mpi_f08: total%MPI_VAL = gpurdma_mpi_op(MPI_SUM%MPI_VAL, ...)
!
! The rules for types and ops are told in gpurdma_mpi.h. Fortran has no 16-bit real as a rule: integer(2) holds the bits.
module gpurdma_mpi
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  interface
    integer(c_int) function gpurdma_mpi_float16() bind(c, name='gpurdma_mpi_float16_f')
      import :: c_int
    end function
    integer(c_int) function gpurdma_mpi_bfloat16() bind(c, name='gpurdma_mpi_bfloat16_f')
      import :: c_int
    end function
    integer(c_int) function gpurdma_mpi_op(op, datatype) bind(c, name='gpurdma_mpi_op_f')
      import :: c_int
      integer(c_int), value :: op, datatype
    end function
  end interface
end module
