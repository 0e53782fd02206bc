// Another file with gpurdma_mpi.h: half.cc compares its handles.
#include "gpurdma_mpi.h"

MPI_Datatype float16_of_the_other_file();
MPI_Op sum_of_the_other_file();

MPI_Datatype float16_of_the_other_file() { return gpurdma_mpi_float16(); }
MPI_Op sum_of_the_other_file() { return gpurdma_mpi_op(MPI_SUM, gpurdma_mpi_float16()); }
