# GPURDMA_CUDA_RUNTIME: sees whether the toolkit that GPURDMA_CUDA found has the headers of CUDA 13's runtime API, which
# the software driver's own libcudart.so.13 is built with. Sets HAVE_CUDA_RUNTIME, and CUDA_RUNTIME=yes in the
# Makefile. For tests only.
AC_DEFUN([GPURDMA_CUDA_RUNTIME], [
  gpurdma_have_cuda_runtime=no
  AS_IF([test $gpurdma_have_cuda = yes], [
    AC_MSG_CHECKING([for the runtime API of CUDA 13])
    gpurdma_save_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <cuda_runtime_api.h>
#if CUDART_VERSION < 13000 || CUDART_VERSION >= 14000
#error another one
#endif
      ]], [[]])], [gpurdma_have_cuda_runtime=yes])
    CPPFLAGS=$gpurdma_save_CPPFLAGS
    AC_MSG_RESULT([$gpurdma_have_cuda_runtime])])
  AM_CONDITIONAL([HAVE_CUDA_RUNTIME], [test $gpurdma_have_cuda_runtime = yes])
  AC_SUBST([CUDA_RUNTIME], [$gpurdma_have_cuda_runtime])
])
