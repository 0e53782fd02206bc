# GPURDMA_COMPILER: checks for C++17 and C11, and sets the flags that all our objects share (GPURDMA_CFLAGS,
# GPURDMA_CXXFLAGS) and the conditional HAVE_X86.
AC_DEFUN([GPURDMA_COMPILER], [
  AC_LANG_PUSH([C++])
  gpurdma_save_CXXFLAGS=$CXXFLAGS
  CXXFLAGS="$CXXFLAGS -std=c++17"
  AC_CACHE_CHECK([whether $CXX compiles C++17], [gpurdma_cv_cxx17], [
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <string_view>
      #include <utility>
      ]], [[auto [a, b] = std::pair{1, std::string_view("x")};
      if constexpr (sizeof(long) >= 4) return a - static_cast<int>(b.size());]])],
      [gpurdma_cv_cxx17=yes], [gpurdma_cv_cxx17=no])])
  CXXFLAGS=$gpurdma_save_CXXFLAGS
  AC_LANG_POP([C++])
  AS_IF([test "x$gpurdma_cv_cxx17" = xno],
    [AC_MSG_ERROR([a C++17 compiler is needed (g++ 8 or newer, or clang++). Debian: g++, RPM: gcc-c++])])

  # Floating-point results must not depend on the compiler's choice to fuse a multiply with an add, on any CPU.
  gpurdma_common="-Wall -Wextra -fvisibility=hidden -ffp-contract=off"
  AC_SUBST([GPURDMA_CFLAGS], ["-std=gnu11 $gpurdma_common"])
  AC_SUBST([GPURDMA_CXXFLAGS], ["-std=c++17 -fno-rtti $gpurdma_common"])

  AS_CASE([$host_cpu], [x86_64], [gpurdma_x86=yes], [gpurdma_x86=no])
  AM_CONDITIONAL([HAVE_X86], [test "$gpurdma_x86" = yes])
])
