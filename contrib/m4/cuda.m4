# GPURDMA_CUDA: finds the CUDA toolkit (--with-cuda=DIR, else the nvcc in PATH, else /usr/local/cuda, else the compiler's
# own paths): cuda.h for everything that has to do with GPUs, nvcc for the kernels. No driver is needed. Sets
#
#   HAVE_CUDA, CUDA_CPPFLAGS     cuda.h
#   HAVE_NVCC, NVCC, NVCC_ARCH   nvcc, and the flags that say for which GPUs it compiles (--with-cuda-arch=LIST)
AC_DEFUN([GPURDMA_CUDA], [
  AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda=DIR],
      [the CUDA toolkit to build with; default: the one of the nvcc in PATH, or /usr/local/cuda. ]dnl
[--without-cuda: no GPU memory])], [], [with_cuda=])
  AC_ARG_WITH([cuda-arch],
    [AS_HELP_STRING([--with-cuda-arch=LIST],
      [compute capabilities to build kernels for, as 80,90; default: all that nvcc knows])], [], [with_cuda_arch=])
  AC_ARG_VAR([NVCC], [the compiler of the CUDA toolkit])
  AC_ARG_VAR([NVCCFLAGS], [flags for it, as -ccbin g++-12])

  gpurdma_cuda_dirs=
  AS_CASE([$with_cuda],
    [no], [],
    [""|yes], [
      gpurdma_nvcc_in_path=`command -v "${NVCC:-nvcc}" 2>/dev/null`
      AS_IF([test "x$gpurdma_nvcc_in_path" != x], [
        gpurdma_nvcc_in_path=`readlink -f "$gpurdma_nvcc_in_path"`
        gpurdma_nvcc_bin=`AS_DIRNAME(["$gpurdma_nvcc_in_path"])`
        gpurdma_cuda_dirs=`AS_DIRNAME(["$gpurdma_nvcc_bin"])`])
      gpurdma_cuda_dirs="$gpurdma_cuda_dirs /usr/local/cuda"],
    [AS_IF([test ! -f "$with_cuda/include/cuda.h"],
       [AC_MSG_ERROR([--with-cuda=$with_cuda: $with_cuda/include/cuda.h is missing])])
     gpurdma_cuda_dirs=$with_cuda])

  AC_MSG_CHECKING([for cuda.h])
  CUDA_CPPFLAGS=
  gpurdma_have_cuda=no
  gpurdma_cuda_dir=
  for gpurdma_dir in $gpurdma_cuda_dirs; do
    AS_IF([test -f "$gpurdma_dir/include/cuda.h"],
      [gpurdma_have_cuda=yes; gpurdma_cuda_dir=$gpurdma_dir; CUDA_CPPFLAGS="-isystem $gpurdma_dir/include"; break])
  done
  gpurdma_save_CPPFLAGS=$CPPFLAGS
  CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS"
  AS_IF([test "x$with_cuda" != xno], [
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <cuda.h>
#if CUDA_VERSION < 11020
#error too old
#endif
      ]], [[return CUDA_SUCCESS;]])], [gpurdma_have_cuda=yes], [
      AS_IF([test "x$with_cuda" != x || test "x$gpurdma_have_cuda" = xyes],
        [gpurdma_have_cuda=unusable], [gpurdma_have_cuda=no])])])
  CPPFLAGS=$gpurdma_save_CPPFLAGS
  AC_MSG_RESULT([$gpurdma_have_cuda${gpurdma_cuda_dir:+ ($gpurdma_cuda_dir)}])
  AS_IF([test "$gpurdma_have_cuda" = unusable], [
    AS_IF([test "x$with_cuda" != x], [AC_MSG_ERROR([--with-cuda: no usable cuda.h of CUDA 11.2 or newer was found])])
    AC_MSG_WARN([$gpurdma_cuda_dir/include/cuda.h is not usable: CUDA 11.2 or newer is needed])
    gpurdma_have_cuda=no])
  AC_SUBST([CUDA_CPPFLAGS])
  AM_CONDITIONAL([HAVE_CUDA], [test $gpurdma_have_cuda = yes])

  gpurdma_have_nvcc=no
  AS_IF([test $gpurdma_have_cuda = yes], [GPURDMA_NVCC])
  AM_CONDITIONAL([HAVE_NVCC], [test $gpurdma_have_nvcc = yes])
  AS_IF([test $gpurdma_have_cuda = no],
      [gpurdma_cuda="NOT supported, cuda.h is missing: device pointers would be taken for host memory
                (any CUDA toolkit of 11.2 or newer; no driver is needed: --with-cuda=DIR)"
       AS_IF([test "x$with_cuda" = xno],
         [gpurdma_cuda="NOT supported, as --without-cuda says: device pointers would be taken for host memory"])],
    [test $gpurdma_have_nvcc = no],
      [gpurdma_cuda="supported, but reduced by the CPU: $gpurdma_nvcc_lacks"],
    [gpurdma_cuda="supported, kernels for compute capability $gpurdma_cuda_arch ($NVCC)"])
])

# Machine code runs on GPUs of the same major number and of no lower minor one, so the lowest of each major serves all
# of them. PTX of the oldest is there for GPUs that are newer than nvcc, and for those on a board with the CPU, where
# that rule does not hold: the driver compiles it when it is loaded.
AC_DEFUN([GPURDMA_NVCC], [
  AC_PATH_PROG([NVCC], [nvcc], [], [${gpurdma_cuda_dir:+$gpurdma_cuda_dir/bin:}$PATH])
  gpurdma_nvcc_lacks="nvcc is missing"
  gpurdma_cuda_arch=
  AS_IF([test "x$NVCC" != x], [
    AC_MSG_CHECKING([which compute capabilities nvcc compiles for])
    gpurdma_cuda_known=`"$NVCC" --list-gpu-code 2>/dev/null | sed -n 's/^sm_\([[0-9]][[0-9]]*\)$/\1/p' | sort -un | tr '\n' ' '`
    AS_IF([test "x$with_cuda_arch" != x], [gpurdma_cuda_arch=`AS_ECHO(["$with_cuda_arch"]) | tr -s ', ' '  '`], [
      gpurdma_major=
      for gpurdma_arch in $gpurdma_cuda_known; do
        AS_IF([test "x${gpurdma_arch%?}" != "x$gpurdma_major"], [
          gpurdma_major=${gpurdma_arch%?}
          gpurdma_cuda_arch="$gpurdma_cuda_arch${gpurdma_cuda_arch:+ }$gpurdma_arch"])
      done])
    AC_MSG_RESULT([$gpurdma_cuda_arch])
    for gpurdma_arch in $gpurdma_cuda_arch; do
      AS_CASE([" $gpurdma_cuda_known"], [*" ${gpurdma_arch%@<:@af@:>@} "*], [],
        [AC_MSG_ERROR([--with-cuda-arch=$with_cuda_arch: $NVCC knows $gpurdma_cuda_known])])
    done
    NVCC_ARCH=
    gpurdma_oldest=
    for gpurdma_arch in $gpurdma_cuda_arch; do
      test "x$gpurdma_oldest" != x || gpurdma_oldest=$gpurdma_arch
      NVCC_ARCH="$NVCC_ARCH -gencode arch=compute_$gpurdma_arch,code=sm_$gpurdma_arch"
    done
    NVCC_ARCH="$NVCC_ARCH -gencode arch=compute_$gpurdma_oldest,code=compute_$gpurdma_oldest"

    # -U_GNU_SOURCE, here and for the kernels: glibc 2.42 declares functions that headers of CUDA 13.0 declare too.
    AC_MSG_CHECKING([whether nvcc makes fat binaries])
    AS_ECHO(['extern "C" __global__ void nothing(int *x) { *x = 1; }']) > conftest.cu
    AS_IF(["$NVCC" $NVCCFLAGS -std=c++17 -U_GNU_SOURCE $NVCC_ARCH --fatbin -o conftest.fatbin conftest.cu >&AS_MESSAGE_LOG_FD 2>&1],
      [gpurdma_have_nvcc=yes],
      [gpurdma_nvcc_lacks="$NVCC does not compile (config.log says why; NVCCFLAGS='-ccbin g++-N' names a host
                compiler that it accepts)"])
    rm -f conftest.cu conftest.fatbin
    AC_MSG_RESULT([$gpurdma_have_nvcc])])
  AC_SUBST([NVCC])
  AC_SUBST([NVCC_ARCH])
])
