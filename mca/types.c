/* MPI's predefined ops and datatypes to gpurdma's numbers.
 *
 * A handle is looked up by a small index that Open MPI keeps in it and verified by its address, so nothing but the
 * predefined object itself is ever taken for it: a duplicate made by MPI_Type_dup, a derived type or a user op is not
 * found and goes beneath. What a type is follows from its size and kind, not from its name: Fortran's INTEGER and
 * LOGICAL vary with the compiler, and types that the build lacks have size 0.
 *
 * The exception are the 16-bit floats of include/gpurdma_mpi.h, which MPI has not: those are known by their name, which
 * also tells the functions of the ops that go with them. Asked only where something is not predefined. */
#include <limits.h>
#include <string.h>

#include "mca/gpurdma_mca.h"

enum { kTypes = 256 }; /* Fortran handles of predefined types are below 100 in all three releases */

static struct {
  const ompi_op_t *op;
  int number;
} ops[OMPI_OP_NUM_OF_TYPES];

static struct {
  const ompi_datatype_t *type;
  int number;
} types[kTypes];

static void add_op(const ompi_predefined_op_t *predefined, int number) {
  const ompi_op_t *op = &predefined->op;
  ops[op->op_type].op = op;
  ops[op->op_type].number = number;
}

static void add(const ompi_predefined_datatype_t *predefined, int number) {
  const ompi_datatype_t *type = &predefined->dt;
  const int index = type->d_f_to_c_index;
  if (number < 0 || index < 0 || index >= kTypes || !ompi_datatype_is_predefined(type)) return;
  types[index].type = type;
  types[index].number = number;
}

/* The number among `of_size` (for 1, 2, 4 and 8 bytes) that fits the type's size. */
static void add_sized(const ompi_predefined_datatype_t *predefined, const int of_size[4]) {
  switch (predefined->dt.super.size) {
    case 1:
      add(predefined, of_size[0]);
      break;
    case 2:
      add(predefined, of_size[1]);
      break;
    case 4:
      add(predefined, of_size[2]);
      break;
    case 8:
      add(predefined, of_size[3]);
      break;
    default:
      break;
  }
}

static void add_signed(const ompi_predefined_datatype_t *type) {
  static const int of_size[4] = {GPURDMA_TYPE_INT8, GPURDMA_TYPE_INT16, GPURDMA_TYPE_INT32, GPURDMA_TYPE_INT64};
  add_sized(type, of_size);
}

static void add_unsigned(const ompi_predefined_datatype_t *type) {
  static const int of_size[4] = {GPURDMA_TYPE_UINT8, GPURDMA_TYPE_UINT16, GPURDMA_TYPE_UINT32, GPURDMA_TYPE_UINT64};
  add_sized(type, of_size);
}

static void add_logical(const ompi_predefined_datatype_t *type) {
  static const int of_size[4] = {GPURDMA_TYPE_LOGICAL8, GPURDMA_TYPE_LOGICAL16, GPURDMA_TYPE_LOGICAL32,
                                 GPURDMA_TYPE_LOGICAL64};
  add_sized(type, of_size);
}

/* IEEE numbers of 2, 4 and 8 bytes. Fortran's REAL*16 is neither those nor a long double, and goes beneath. */
static void add_real(const ompi_predefined_datatype_t *type) {
  static const int of_size[4] = {-1, GPURDMA_TYPE_FLOAT16, GPURDMA_TYPE_FLOAT32, GPURDMA_TYPE_FLOAT64};
  add_sized(type, of_size);
}

static void add_complex(const ompi_predefined_datatype_t *type) {
  if (type->dt.super.size == 8) add(type, GPURDMA_TYPE_COMPLEX32);
  if (type->dt.super.size == 16) add(type, GPURDMA_TYPE_COMPLEX64);
}

static void add_long_double_complex(const ompi_predefined_datatype_t *type) {
  if (type->dt.super.size == 2 * sizeof(long double)) add(type, GPURDMA_TYPE_COMPLEX_LONG_DOUBLE);
}

static void add_c_types(void) {
  /* MPI does no arithmetic on MPI_CHAR, but Open MPI does and programs rely on it: as on the C type that it is. */
  if (CHAR_MIN < 0)
    add_signed(&ompi_mpi_char);
  else
    add_unsigned(&ompi_mpi_char);
  add_signed(&ompi_mpi_signed_char);
  add_signed(&ompi_mpi_short);
  add_signed(&ompi_mpi_int);
  add_signed(&ompi_mpi_long);
  add_signed(&ompi_mpi_long_long_int);
  add_signed(&ompi_mpi_int8_t);
  add_signed(&ompi_mpi_int16_t);
  add_signed(&ompi_mpi_int32_t);
  add_signed(&ompi_mpi_int64_t);
  add_signed(&ompi_mpi_aint);
  add_signed(&ompi_mpi_offset);
  add_signed(&ompi_mpi_count);
  add_unsigned(&ompi_mpi_unsigned_char);
  add_unsigned(&ompi_mpi_unsigned_short);
  add_unsigned(&ompi_mpi_unsigned);
  add_unsigned(&ompi_mpi_unsigned_long);
  add_unsigned(&ompi_mpi_unsigned_long_long);
  add_unsigned(&ompi_mpi_uint8_t);
  add_unsigned(&ompi_mpi_uint16_t);
  add_unsigned(&ompi_mpi_uint32_t);
  add_unsigned(&ompi_mpi_uint64_t);
  add_real(&ompi_mpi_float);
  add_real(&ompi_mpi_double);
#if defined(HAVE_SHORT_FLOAT) || defined(HAVE_OPAL_SHORT_FLOAT_T)
  add_real(&ompi_mpi_short_float);
#endif
  add(&ompi_mpi_long_double, GPURDMA_TYPE_LONG_DOUBLE);
  add_complex(&ompi_mpi_c_float_complex);
  add_complex(&ompi_mpi_c_double_complex);
  add_long_double_complex(&ompi_mpi_c_long_double_complex);
  add(&ompi_mpi_c_bool, GPURDMA_TYPE_CXX_BOOL);
  add(&ompi_mpi_byte, GPURDMA_TYPE_BYTE);
}

static void add_cxx_types(void) {
  add(&ompi_mpi_cxx_bool, GPURDMA_TYPE_CXX_BOOL);
  add_complex(&ompi_mpi_cxx_cplex);
  add_complex(&ompi_mpi_cxx_dblcplex);
  add_long_double_complex(&ompi_mpi_cxx_ldblcplex);
}

static void add_fortran_types(void) {
  add_signed(&ompi_mpi_integer);
  add_signed(&ompi_mpi_integer1);
  add_signed(&ompi_mpi_integer2);
  add_signed(&ompi_mpi_integer4);
  add_signed(&ompi_mpi_integer8);
  add_real(&ompi_mpi_real);
  add_real(&ompi_mpi_dblprec);
  add_real(&ompi_mpi_real2);
  add_real(&ompi_mpi_real4);
  add_real(&ompi_mpi_real8);
  add_complex(&ompi_mpi_cplex);
  add_complex(&ompi_mpi_dblcplex);
  add_complex(&ompi_mpi_complex8);
  add_complex(&ompi_mpi_complex16);
  add_logical(&ompi_mpi_logical);
  add_logical(&ompi_mpi_logical1);
  add_logical(&ompi_mpi_logical2);
  add_logical(&ompi_mpi_logical4);
  add_logical(&ompi_mpi_logical8);
}

/* Value and index, for MAXLOC and MINLOC. */
static void add_pairs(void) {
  add(&ompi_mpi_float_int, GPURDMA_TYPE_LOC_FLOAT_INT);
  add(&ompi_mpi_double_int, GPURDMA_TYPE_LOC_DOUBLE_INT);
  add(&ompi_mpi_long_int, GPURDMA_TYPE_LOC_LONG_INT);
  add(&ompi_mpi_2int, GPURDMA_TYPE_LOC_INT_INT);
  add(&ompi_mpi_short_int, GPURDMA_TYPE_LOC_SHORT_INT);
  add(&ompi_mpi_longdbl_int, GPURDMA_TYPE_LOC_LONG_DOUBLE_INT);
  if (ompi_mpi_2integer.dt.super.size == 2 * sizeof(int)) add(&ompi_mpi_2integer, GPURDMA_TYPE_LOC_INT_INT);
  if (ompi_mpi_2real.dt.super.size == 2 * sizeof(float)) add(&ompi_mpi_2real, GPURDMA_TYPE_TWO_FLOAT);
  if (ompi_mpi_2dblprec.dt.super.size == 2 * sizeof(double)) add(&ompi_mpi_2dblprec, GPURDMA_TYPE_TWO_DOUBLE);
}

void gpurdma_mca_types_open(void) {
  add_op(&ompi_mpi_op_max, GPURDMA_OP_MAX);
  add_op(&ompi_mpi_op_min, GPURDMA_OP_MIN);
  add_op(&ompi_mpi_op_sum, GPURDMA_OP_SUM);
  add_op(&ompi_mpi_op_prod, GPURDMA_OP_PROD);
  add_op(&ompi_mpi_op_land, GPURDMA_OP_LAND);
  add_op(&ompi_mpi_op_band, GPURDMA_OP_BAND);
  add_op(&ompi_mpi_op_lor, GPURDMA_OP_LOR);
  add_op(&ompi_mpi_op_bor, GPURDMA_OP_BOR);
  add_op(&ompi_mpi_op_lxor, GPURDMA_OP_LXOR);
  add_op(&ompi_mpi_op_bxor, GPURDMA_OP_BXOR);
  add_op(&ompi_mpi_op_maxloc, GPURDMA_OP_MAXLOC);
  add_op(&ompi_mpi_op_minloc, GPURDMA_OP_MINLOC);
  add_c_types();
  add_cxx_types();
  add_fortran_types();
  add_pairs();
}

/* The word that the header begins the type's name with. */
static int narrow_type(const char *name) {
  if (0 == strncmp(name, "gpurdma_fp16", 12)) return GPURDMA_TYPE_FLOAT16;
  if (0 == strncmp(name, "gpurdma_bf16", 12)) return GPURDMA_TYPE_BFLOAT16;
  return -1;
}

/* Whether these are a type and an op of gpurdma_mpi.h. Behind the word, the type's name has the addresses of four
 * functions, each in 12 hexadecimal digits; whoever has that function has that op. */
static bool narrow_numbers(const ompi_op_t *op, const ompi_datatype_t *type, int *op_number, int *type_number) {
  static const int numbers[4] = {GPURDMA_OP_SUM, GPURDMA_OP_PROD, GPURDMA_OP_MIN, GPURDMA_OP_MAX};
  const char *name = type->name; /* an array, or from 6.0 on a pointer */
  const int number = NULL == name || 2 != type->super.size ? -1 : narrow_type(name);
  if (number < 0 || 12 + 4 * 12 != strlen(name) || ompi_op_is_intrinsic((ompi_op_t *)op)) return false;
  char address[12];
  uintptr_t rest = (uintptr_t)op->o_func.c_fn;
  for (int digit = 11; digit >= 0; --digit, rest /= 16) address[digit] = "0123456789abcdef"[rest % 16];
  if (0 != rest) return false;
  for (int i = 0; i < 4; ++i) {
    if (0 != memcmp(name + 12 + 12 * i, address, sizeof address)) continue;
    *op_number = numbers[i];
    *type_number = number;
    return true;
  }
  return false;
}

bool gpurdma_mca_numbers(const ompi_op_t *op, const ompi_datatype_t *type, int *op_number, int *type_number) {
  const unsigned op_index = (unsigned)op->op_type;
  const unsigned type_index = (unsigned)type->d_f_to_c_index;
  if (op_index >= OMPI_OP_NUM_OF_TYPES || ops[op_index].op != op || type_index >= kTypes ||
      types[type_index].type != type)
    return narrow_numbers(op, type, op_number, type_number);
  *op_number = ops[op_index].number;
  *type_number = types[type_index].number;
  return true;
}
