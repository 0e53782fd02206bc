# GPURDMA_GTEST: finds GoogleTest, which the unit tests need and nothing else does; sets GTEST_LIBS and HAVE_GTEST.
AC_DEFUN([GPURDMA_GTEST], [
  AC_MSG_CHECKING([for GoogleTest])
  AC_LANG_PUSH([C++])
  gpurdma_save_CXXFLAGS=$CXXFLAGS
  gpurdma_save_LIBS=$LIBS
  GTEST_LIBS="-lgtest_main -lgtest -lpthread"
  CXXFLAGS="$CXXFLAGS -std=c++17"
  LIBS="$GTEST_LIBS $LIBS"
  AC_LINK_IFELSE([AC_LANG_SOURCE([[#include <gtest/gtest.h>
    TEST(One, Two) { EXPECT_EQ(1, 1); }]])],
    [gpurdma_have_gtest=yes; gpurdma_gtest="built by make check"],
    [gpurdma_have_gtest=no; gpurdma_gtest="NOT built, GoogleTest is missing (Debian: libgtest-dev, RPM: gtest-devel)"])
  CXXFLAGS=$gpurdma_save_CXXFLAGS
  LIBS=$gpurdma_save_LIBS
  AC_LANG_POP([C++])
  AC_MSG_RESULT([$gpurdma_have_gtest])
  AC_SUBST([GTEST_LIBS])
  AM_CONDITIONAL([HAVE_GTEST], [test $gpurdma_have_gtest = yes])
])
