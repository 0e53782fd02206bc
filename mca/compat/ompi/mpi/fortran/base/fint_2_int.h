/* Stands in for a header that Open MPI's development packages leave out and ompi/op/op.h includes. It converts between
 * Fortran INTEGER and C int; every platform that gpurdma supports has both of one size. */
#ifndef GPURDMA_COMPAT_FINT_2_INT_H
#define GPURDMA_COMPAT_FINT_2_INT_H

#include "ompi_config.h"

#if defined(OMPI_SIZEOF_FORTRAN_INTEGER) && OMPI_SIZEOF_FORTRAN_INTEGER != SIZEOF_INT
#error "Fortran's INTEGER and C's int differ in size, which gpurdma does not support"
#endif

#ifndef OMPI_INT_2_FINT
#define OMPI_INT_2_FINT(value) (value)
#define OMPI_FINT_2_INT(value) (value)
#endif

#endif
