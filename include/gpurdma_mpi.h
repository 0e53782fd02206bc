/* Sixteen-bit floats for MPI programs: datatypes that every MPI call accepts, and the ops to reduce them with.
 *
 *     MPI_Datatype half = gpurdma_mpi_float16();                 IEEE binary16; gpurdma_mpi_bfloat16(): bfloat16
 *     MPI_Op sum = gpurdma_mpi_op(MPI_SUM, half);                MPI_SUM, MPI_PROD, MPI_MIN or MPI_MAX
 *     MPI_Allreduce(MPI_IN_PLACE, gradient, n, half, sum, comm);
 *
 * MPI allows its predefined ops on its predefined types only, so MPI_SUM itself is an error here. The ops are user ops
 * that work with any MPI, on host memory, whether gpurdma is there or not; where it is active it knows type and op, and
 * reduces them as it does floats, in device memory too.
 *
 * The rules: both operands become float, the op is done in float, the result is rounded once, to nearest even. A NaN
 * operand makes the result NaN; of equal operands of MIN and MAX, +0 and -0 included, that of the lower rank is taken.
 *
 * Between MPI_Init and MPI_Finalize, from any thread. The handles are the same at each call, and belong to this header:
 * they go with MPI_Finalize, and must not be freed. For C and C++; libgpurdma_mpi offers the same to other languages
 * (gpurdma_mpi.f90 for Fortran). The compiler must know __attribute__ and __atomic, as gcc, clang, icx, nvcc, nvc do.
 */
#ifndef GPURDMA_MPI_H
#define GPURDMA_MPI_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- one number, by its bits ---- */

static inline float gpurdma_mpi_float_of_bits(uint32_t bits) {
  float number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

static inline uint32_t gpurdma_mpi_bits_of_float(float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}

/* Without branches, so that compilers vectorize loops over these. */
static inline uint32_t gpurdma_mpi_choose(int condition, uint32_t yes, uint32_t no) {
  const uint32_t mask = 0u - (uint32_t)(condition != 0);
  return (yes & mask) | (no & ~mask);
}

static inline float gpurdma_mpi_float16_to_float(uint16_t half) {
  const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, magnitude = half & 0x7fffu;
  /* The exponent's bias is 127 instead of 15; infinity and NaN have the highest exponent of either format. */
  const uint32_t normal = (magnitude << 13) + gpurdma_mpi_choose(magnitude >= 0x7c00u, 224u << 23, 112u << 23);
  const uint32_t subnormal = gpurdma_mpi_bits_of_float((float)(int32_t)magnitude * (1.0f / 16777216));
  return gpurdma_mpi_float_of_bits(sign | gpurdma_mpi_choose(magnitude < 0x400u, subnormal, normal));
}

static inline uint16_t gpurdma_mpi_float16_from_float(float number) {
  const uint32_t bits = gpurdma_mpi_bits_of_float(number), magnitude = bits & 0x7fffffffu;
  /* Adding a little less than half a unit, and the unit's own last bit, rounds to nearest even. */
  const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  /* The sum with 0.5 is rounded by the addition to a multiple of 2^-24, the least subnormal. */
  const uint32_t subnormal =
      gpurdma_mpi_bits_of_float(gpurdma_mpi_float_of_bits(magnitude) + 0.5f) - gpurdma_mpi_bits_of_float(0.5f);
  uint32_t half = gpurdma_mpi_choose(magnitude < 0x38800000u, subnormal, normal); /* 2^-14 */
  half = gpurdma_mpi_choose(magnitude >= 0x477ff000u, 0x7c00u, half);             /* 65520 and more: infinity */
  half = gpurdma_mpi_choose(magnitude > 0x7f800000u, 0x7e00u, half);              /* NaN */
  return (uint16_t)(half | (bits >> 16 & 0x8000u));
}

static inline float gpurdma_mpi_bfloat16_to_float(uint16_t number) {
  return gpurdma_mpi_float_of_bits((uint32_t)number << 16);
}

static inline uint16_t gpurdma_mpi_bfloat16_from_float(float number) {
  const uint32_t bits = gpurdma_mpi_bits_of_float(number);
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return (uint16_t)gpurdma_mpi_choose((bits & 0x7fffffffu) > 0x7f800000u, bits >> 16 | 0x40u, rounded);
}

/* NaN by its bits, so that programs built with -ffast-math find it too. */
static inline int gpurdma_mpi_float16_is_nan(uint16_t half) { return (half & 0x7fffu) > 0x7c00u; }
static inline int gpurdma_mpi_bfloat16_is_nan(uint16_t number) { return (number & 0x7fffu) > 0x7f80u; }

/* ---- the functions of the ops: the left operand, of the lower rank, comes in `in`, the right one in `inout` ---- */

#define GPURDMA_MPI_FUNCTION(name, result)                                          \
  static inline void name(void *in, void *inout, int *length, MPI_Datatype *type) { \
    const uint16_t *left = (const uint16_t *)in;                                    \
    uint16_t *right = (uint16_t *)inout;                                            \
    const int count = *length;                                                      \
    int i;                                                                          \
    (void)type;                                                                     \
    for (i = 0; i < count; ++i) right[i] = (uint16_t)(result);                      \
  }
#define GPURDMA_MPI_ARITHMETIC(format, operation)                            \
  gpurdma_mpi_##format##_from_float(gpurdma_mpi_##format##_to_float(left[i]) \
                                        operation gpurdma_mpi_##format##_to_float(right[i]))
#define GPURDMA_MPI_CHOICE(format, operation)                                                               \
  gpurdma_mpi_choose(                                                                                       \
      gpurdma_mpi_##format##_is_nan(right[i]) |                                                             \
          (!gpurdma_mpi_##format##_is_nan(left[i]) &                                                        \
           (gpurdma_mpi_##format##_to_float(right[i]) operation gpurdma_mpi_##format##_to_float(left[i]))), \
      right[i], left[i])

GPURDMA_MPI_FUNCTION(gpurdma_mpi_float16_sum, GPURDMA_MPI_ARITHMETIC(float16, +))
GPURDMA_MPI_FUNCTION(gpurdma_mpi_float16_prod, GPURDMA_MPI_ARITHMETIC(float16, *))
GPURDMA_MPI_FUNCTION(gpurdma_mpi_float16_min, GPURDMA_MPI_CHOICE(float16, <))
GPURDMA_MPI_FUNCTION(gpurdma_mpi_float16_max, GPURDMA_MPI_CHOICE(float16, >))
GPURDMA_MPI_FUNCTION(gpurdma_mpi_bfloat16_sum, GPURDMA_MPI_ARITHMETIC(bfloat16, +))
GPURDMA_MPI_FUNCTION(gpurdma_mpi_bfloat16_prod, GPURDMA_MPI_ARITHMETIC(bfloat16, *))
GPURDMA_MPI_FUNCTION(gpurdma_mpi_bfloat16_min, GPURDMA_MPI_CHOICE(bfloat16, <))
GPURDMA_MPI_FUNCTION(gpurdma_mpi_bfloat16_max, GPURDMA_MPI_CHOICE(bfloat16, >))

#undef GPURDMA_MPI_FUNCTION
#undef GPURDMA_MPI_ARITHMETIC
#undef GPURDMA_MPI_CHOICE

/* ---- types and ops: made when first asked for ---- */

typedef struct gpurdma_mpi_format {
  MPI_Datatype type;
  MPI_Op ops[4]; /* SUM, PROD, MIN, MAX */
} gpurdma_mpi_format;

typedef struct gpurdma_mpi_formats {
  gpurdma_mpi_format float16, bfloat16;
} gpurdma_mpi_formats;

/* One in the program, or in each library that is loaded later: weak definitions are joined. */
extern gpurdma_mpi_formats *gpurdma_mpi_made __attribute__((weak, visibility("default")));
gpurdma_mpi_formats *gpurdma_mpi_made __attribute__((weak, visibility("default")));

static inline void gpurdma_mpi_format_free(gpurdma_mpi_format *format) {
  int i;
  if (format->type != MPI_DATATYPE_NULL) MPI_Type_free(&format->type);
  for (i = 0; i < 4; ++i)
    if (format->ops[i] != MPI_OP_NULL) MPI_Op_free(&format->ops[i]);
}

static inline void gpurdma_mpi_formats_free(gpurdma_mpi_formats *formats) {
  gpurdma_mpi_format_free(&formats->float16);
  gpurdma_mpi_format_free(&formats->bfloat16);
  free(formats);
}

/* A duplicate of two bytes. gpurdma knows it, and which op is which, by its name: a word of 12 letters and the
 * addresses of the four functions in 12 hexadecimal digits each. The name says nothing to other processes, which have
 * addresses of their own. Addresses that are longer are left out, and such a type is not known. */
static inline int gpurdma_mpi_format_make(gpurdma_mpi_format *format, const char *word,
                                          MPI_User_function *const functions[4]) {
  char name[MPI_MAX_OBJECT_NAME];
  int i, length = snprintf(name, sizeof name, "%s", word);
  format->type = MPI_DATATYPE_NULL;
  for (i = 0; i < 4; ++i) format->ops[i] = MPI_OP_NULL;
  if (MPI_Type_dup(MPI_UINT16_T, &format->type) != MPI_SUCCESS) return 0;
  for (i = 0; i < 4; ++i) {
    const unsigned long long address = (unsigned long long)(uintptr_t)functions[i];
    if (MPI_Op_create(functions[i], 1, &format->ops[i]) != MPI_SUCCESS) return 0;
    if (address >> 48 == 0) length += snprintf(name + length, sizeof name - (size_t)length, "%012llx", address);
  }
  return MPI_Type_set_name(format->type, name) == MPI_SUCCESS;
}

static inline int gpurdma_mpi_at_finalize(MPI_Comm comm, int key, void *value, void *state) {
  gpurdma_mpi_formats *made = (gpurdma_mpi_formats *)value;
  (void)comm;
  (void)key;
  (void)state;
  __atomic_compare_exchange_n(&gpurdma_mpi_made, &made, (gpurdma_mpi_formats *)0, 0, __ATOMIC_SEQ_CST,
                              __ATOMIC_SEQ_CST);
  gpurdma_mpi_formats_free((gpurdma_mpi_formats *)value);
  return MPI_SUCCESS;
}

/* Lets MPI_Finalize free them: it deletes the attributes of MPI_COMM_SELF first of all. */
static inline int gpurdma_mpi_keep(gpurdma_mpi_formats *formats) {
  int key, kept, world = 0;
  MPI_Initialized(&world);
  if (!world) return 1; /* a program with sessions only: gpurdma_mpi_free() is its own affair */
  if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, gpurdma_mpi_at_finalize, &key, NULL) != MPI_SUCCESS) return 0;
  kept = MPI_Comm_set_attr(MPI_COMM_SELF, key, formats) == MPI_SUCCESS;
  MPI_Comm_free_keyval(&key); /* stays until the attribute goes */
  return kept;
}

/* NULL: MPI returned an error, or there is no memory. */
static inline const gpurdma_mpi_formats *gpurdma_mpi_get(void) {
  static MPI_User_function *const float16[4] = {gpurdma_mpi_float16_sum, gpurdma_mpi_float16_prod,
                                                gpurdma_mpi_float16_min, gpurdma_mpi_float16_max};
  static MPI_User_function *const bfloat16[4] = {gpurdma_mpi_bfloat16_sum, gpurdma_mpi_bfloat16_prod,
                                                 gpurdma_mpi_bfloat16_min, gpurdma_mpi_bfloat16_max};
  gpurdma_mpi_formats *made = __atomic_load_n(&gpurdma_mpi_made, __ATOMIC_ACQUIRE), *mine;
  int works;
  if (made) return made;
  mine = (gpurdma_mpi_formats *)malloc(sizeof *mine);
  if (!mine) return NULL;
  works = gpurdma_mpi_format_make(&mine->float16, "gpurdma_fp16", float16);
  works = gpurdma_mpi_format_make(&mine->bfloat16, "gpurdma_bf16", bfloat16) && works;
  /* Another thread may have been faster. */
  if (!works || !__atomic_compare_exchange_n(&gpurdma_mpi_made, &made, mine, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    gpurdma_mpi_formats_free(mine);
    return made;
  }
  return gpurdma_mpi_keep(mine) ? mine : NULL;
}

/* ---- what programs call ---- */

/* MPI_DATATYPE_NULL: MPI returned an error (where its handlers return at all). */
static inline MPI_Datatype gpurdma_mpi_float16(void) {
  const gpurdma_mpi_formats *formats = gpurdma_mpi_get();
  return formats ? formats->float16.type : MPI_DATATYPE_NULL;
}

static inline MPI_Datatype gpurdma_mpi_bfloat16(void) {
  const gpurdma_mpi_formats *formats = gpurdma_mpi_get();
  return formats ? formats->bfloat16.type : MPI_DATATYPE_NULL;
}

/* What does on `type` what `op` does on predefined types: for the two types above one of our ops, or MPI_OP_NULL where
 * op is none of MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX; for all other types op itself. */
static inline MPI_Op gpurdma_mpi_op(MPI_Op op, MPI_Datatype type) {
  const gpurdma_mpi_formats *formats = gpurdma_mpi_get();
  const gpurdma_mpi_format *format;
  if (!formats) return MPI_OP_NULL;
  if (type == formats->float16.type)
    format = &formats->float16;
  else if (type == formats->bfloat16.type)
    format = &formats->bfloat16;
  else
    return op;
  if (op == MPI_SUM) return format->ops[0];
  if (op == MPI_PROD) return format->ops[1];
  if (op == MPI_MIN) return format->ops[2];
  if (op == MPI_MAX) return format->ops[3];
  return MPI_OP_NULL;
}

/* Only for a program that has MPI sessions and no MPI_Init: before it finalizes the last session. */
static inline void gpurdma_mpi_free(void) {
  int world = 0;
  MPI_Initialized(&world);
  if (!world) {
    gpurdma_mpi_formats *made = __atomic_exchange_n(&gpurdma_mpi_made, (gpurdma_mpi_formats *)0, __ATOMIC_SEQ_CST);
    if (made) gpurdma_mpi_formats_free(made);
  }
}

#ifdef __cplusplus
}
#endif
#endif
