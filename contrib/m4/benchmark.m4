# GPURDMA_BENCHMARK: finds Google Benchmark, which `make bench` needs and nothing else does; sets BENCHMARK_LIBS and
# HAVE_BENCHMARK.
AC_DEFUN([GPURDMA_BENCHMARK], [
  AC_MSG_CHECKING([for Google Benchmark])
  AC_LANG_PUSH([C++])
  gpurdma_save_CXXFLAGS=$CXXFLAGS
  gpurdma_save_LIBS=$LIBS
  BENCHMARK_LIBS="-lbenchmark_main -lbenchmark -lpthread"
  CXXFLAGS="$CXXFLAGS -std=c++17"
  LIBS="$BENCHMARK_LIBS $LIBS"
  AC_LINK_IFELSE([AC_LANG_SOURCE([[#include <benchmark/benchmark.h>
    static void nothing(benchmark::State& state) { for (auto _ : state) {} }
    BENCHMARK(nothing);]])],
    [gpurdma_have_benchmark=yes; gpurdma_benchmark="built by make bench"],
    [gpurdma_have_benchmark=no
     gpurdma_benchmark="NOT built, Google Benchmark is missing
                (Debian: libbenchmark-dev, RPM: google-benchmark-devel)"])
  CXXFLAGS=$gpurdma_save_CXXFLAGS
  LIBS=$gpurdma_save_LIBS
  AC_LANG_POP([C++])
  AC_MSG_RESULT([$gpurdma_have_benchmark])
  AC_SUBST([BENCHMARK_LIBS])
  AM_CONDITIONAL([HAVE_BENCHMARK], [test $gpurdma_have_benchmark = yes])
])
