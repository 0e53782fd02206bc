/* libgpurdma_mpi: gpurdma_mpi.h for languages that cannot include it. Handles go as the integers that MPI_Type_c2f and
 * MPI_Op_c2f make of them, which Fortran uses as they are, and mpi4py by f2py and py2f. */
#include "gpurdma_mpi.h"

#define OFFERED __attribute__((visibility("default")))

OFFERED MPI_Fint gpurdma_mpi_float16_f(void);
OFFERED MPI_Fint gpurdma_mpi_bfloat16_f(void);
OFFERED MPI_Fint gpurdma_mpi_op_f(MPI_Fint op, MPI_Fint type);

MPI_Fint gpurdma_mpi_float16_f(void) { return MPI_Type_c2f(gpurdma_mpi_float16()); }

MPI_Fint gpurdma_mpi_bfloat16_f(void) { return MPI_Type_c2f(gpurdma_mpi_bfloat16()); }

MPI_Fint gpurdma_mpi_op_f(MPI_Fint op, MPI_Fint type) {
  return MPI_Op_c2f(gpurdma_mpi_op(MPI_Op_f2c(op), MPI_Type_f2c(type)));
}
