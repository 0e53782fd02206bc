# GPURDMA_UCX: finds UCX (--with-ucx=PREFIX, else pkg-config, else the compiler's own paths); sets UCX_CPPFLAGS,
# UCX_LIBS, UCX_VERSION.
AC_DEFUN([GPURDMA_UCX], [
  AC_ARG_WITH([ucx], [AS_HELP_STRING([--with-ucx=PREFIX], [the UCX to use; default: the system's])], [], [with_ucx=])
  AS_CASE([$with_ucx], [yes|no], [AC_MSG_ERROR([--with-ucx needs the prefix of a UCX])])
  AC_MSG_CHECKING([for UCX])
  UCX_CPPFLAGS=
  gpurdma_ucx_libdir=
  AS_IF([test "x$with_ucx" != x], [
      AS_IF([test ! -f "$with_ucx/include/ucp/api/ucp.h"],
        [AC_MSG_ERROR([--with-ucx=$with_ucx: $with_ucx/include/ucp/api/ucp.h is missing])])
      UCX_CPPFLAGS="-isystem $with_ucx/include"
      AS_IF([test -e "$with_ucx/lib64/libucp.so"], [gpurdma_ucx_libdir=$with_ucx/lib64],
        [gpurdma_ucx_libdir=$with_ucx/lib])
    ], [test "x$PKG_CONFIG" != x && "$PKG_CONFIG" --exists ucx 2>/dev/null], [
      UCX_CPPFLAGS=`"$PKG_CONFIG" --cflags ucx`
    ])
  UCX_LIBS="-lucp -lucs"
  # A UCX outside the system's paths is found at run time by the path written into the component.
  AS_IF([test "x$gpurdma_ucx_libdir" != x],
    [UCX_LIBS="-L$gpurdma_ucx_libdir -Wl,-rpath,$gpurdma_ucx_libdir $UCX_LIBS"],
    [test "x$PKG_CONFIG" != x && "$PKG_CONFIG" --exists ucx 2>/dev/null],
    [UCX_LIBS="`"$PKG_CONFIG" --libs-only-L ucx` $UCX_LIBS"])

  gpurdma_save_CPPFLAGS=$CPPFLAGS
  gpurdma_save_LIBS=$LIBS
  CPPFLAGS="$CPPFLAGS $UCX_CPPFLAGS"
  LIBS="$UCX_LIBS $LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <ucp/api/ucp.h>
#if UCP_API_VERSION < UCP_VERSION(1, 12)
#error too old
#endif
    ]], [[ucp_get_version_string();]])], [], [AC_MSG_RESULT([no])
    AC_MSG_ERROR([UCX 1.12 or newer was not found. Debian: libucx-dev, RPM: ucx-devel; or give --with-ucx=PREFIX])])
  AC_COMPUTE_INT([gpurdma_ucx_major], [UCP_API_MAJOR], [[#include <ucp/api/ucp_version.h>]])
  AC_COMPUTE_INT([gpurdma_ucx_minor], [UCP_API_MINOR], [[#include <ucp/api/ucp_version.h>]])
  UCX_VERSION=$gpurdma_ucx_major.$gpurdma_ucx_minor
  AC_MSG_RESULT([$UCX_VERSION])
  CPPFLAGS=$gpurdma_save_CPPFLAGS
  LIBS=$gpurdma_save_LIBS
  AC_SUBST([UCX_CPPFLAGS])
  AC_SUBST([UCX_LIBS])
  AC_SUBST([UCX_VERSION])
])
