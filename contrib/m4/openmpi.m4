# GPURDMA_OPENMPI: finds Open MPI and all that a component needs of it.
#
#   MPICC, MPIRUN, OMPI_INFO         its commands
#   OMPI_VERSION, OMPI_SERIES        4.1.4, 4.1
#   OMPI_PREFIX, OMPI_PLUGINDIR      where it lives, where it looks for components
#   MPI_CPPFLAGS, MPI_LIBS           to compile and link an MPI program
#   OMPI_CPPFLAGS, OMPI_LIBS         to compile and link a component, which sees the internal headers
AC_DEFUN([GPURDMA_OPENMPI], [
  AC_ARG_WITH([ompi],
    [AS_HELP_STRING([--with-ompi=PREFIX], [the Open MPI to build for; default: the one in PATH])],
    [gpurdma_ompi_path=$withval/bin], [gpurdma_ompi_path=$PATH:/usr/lib64/openmpi/bin])
  AS_CASE([$with_ompi], [yes|no], [AC_MSG_ERROR([--with-ompi needs the prefix of an Open MPI])])
  AC_ARG_WITH([mpicc], [AS_HELP_STRING([--with-mpicc=PATH], [Open MPI's mpicc])], [MPICC=$withval])
  AC_ARG_WITH([ompi-info], [AS_HELP_STRING([--with-ompi-info=PATH], [Open MPI's ompi_info])], [OMPI_INFO=$withval])
  gpurdma_ompi_hint="Debian: openmpi-bin libopenmpi-dev, RPM: openmpi-devel;
or load its module, or give --with-ompi=PREFIX"

  # Debian's plain names may belong to another MPI, so its qualified ones come first.
  AC_PATH_PROGS([MPICC], [mpicc.openmpi mpicc], [], [$gpurdma_ompi_path])
  AS_IF([test "x$MPICC" = x], [AC_MSG_ERROR([Open MPI's mpicc was not found. $gpurdma_ompi_hint])])
  gpurdma_mpicc_version=`"$MPICC" --showme:version 2>/dev/null | sed -n 's/.*Open MPI \([[0-9][0-9a-z.]]*\).*/\1/p'`
  AS_IF([test "x$gpurdma_mpicc_version" = x],
    [AC_MSG_ERROR([$MPICC is not Open MPI's mpicc. $gpurdma_ompi_hint])])
  gpurdma_ompi_path=`AS_DIRNAME(["$MPICC"])`:$gpurdma_ompi_path
  AC_PATH_PROGS([OMPI_INFO], [ompi_info], [], [$gpurdma_ompi_path])
  AS_IF([test "x$OMPI_INFO" = x], [AC_MSG_ERROR([Open MPI's ompi_info was not found. $gpurdma_ompi_hint])])
  AC_PATH_PROGS([MPIRUN], [mpirun.openmpi mpirun], [], [$gpurdma_ompi_path])

  AC_MSG_CHECKING([for Open MPI's version])
  OMPI_VERSION=`"$OMPI_INFO" --parsable 2>/dev/null | sed -n 's/^ompi:version:full://p'`
  AC_MSG_RESULT([$OMPI_VERSION])
  AS_IF([test "x$OMPI_VERSION" != "x$gpurdma_mpicc_version"],
    [AC_MSG_ERROR([$MPICC belongs to Open MPI $gpurdma_mpicc_version, but
$OMPI_INFO to $OMPI_VERSION: give --with-ompi=PREFIX])])
  OMPI_SERIES=`AS_ECHO(["$OMPI_VERSION"]) | sed 's/^\([[0-9]]*\.[[0-9]]*\).*/\1/'`
  AS_CASE([$OMPI_SERIES],
    [4.1|5.0|6.0], [OMPI_NOTE=],
    [0.*|1.*|2.*|3.*|4.*], [AC_MSG_ERROR([Open MPI $OMPI_VERSION is too old: gpurdma supports 4.1, 5.0 and 6.0])],
    [OMPI_NOTE="Open MPI $OMPI_VERSION is untested: gpurdma is tested with 4.1, 5.0 and 6.0"
     AC_MSG_WARN([$OMPI_NOTE])])

  gpurdma_ompi_directory() {
    "$OMPI_INFO" --parsable --path $[]1 2>/dev/null | sed -n "s/^path:$[]1://p" | sed 1q
  }
  OMPI_PREFIX=`gpurdma_ompi_directory prefix`
  OMPI_PLUGINDIR=`gpurdma_ompi_directory pkglibdir`
  gpurdma_incdir=`gpurdma_ompi_directory incdir`
  AC_MSG_CHECKING([for Open MPI's plugin directory])
  AC_MSG_RESULT([$OMPI_PLUGINDIR])
  AS_IF([test ! -f "$gpurdma_incdir/mpi.h"],
    [AC_MSG_ERROR([$gpurdma_incdir/mpi.h is missing. Debian: libopenmpi-dev, RPM: openmpi-devel])])
  AS_IF([test ! -f "$gpurdma_incdir/openmpi/ompi/mca/coll/coll.h"],
    [AC_MSG_ERROR([$gpurdma_incdir/openmpi has no component headers. Debian: libopenmpi-dev, RPM: openmpi-devel;
an Open MPI that you build yourself: configure it with --with-devel-headers])])

  # coll.h of 5.0 and later includes pmix.h.
  AS_CASE([$OMPI_SERIES], [4.1], [PMIX_CFLAGS=], [GPURDMA_PMIX])

  gpurdma_libdirs=
  for gpurdma_dir in `"$MPICC" --showme:libdirs 2>/dev/null`; do
    gpurdma_libdirs="$gpurdma_libdirs -L$gpurdma_dir"
  done
  MPI_CPPFLAGS="-isystem $gpurdma_incdir"
  MPI_LIBS=`"$MPICC" --showme:link 2>/dev/null`
  OMPI_CPPFLAGS="-isystem $gpurdma_incdir -isystem $gpurdma_incdir/openmpi $PMIX_CFLAGS"
  # On 6.0 a program built for the standard ABI loads libmpi_abi and not libmpi; the component must suit both.
  AS_CASE([$OMPI_SERIES],
    [4.1|5.0], [OMPI_LIBS="$gpurdma_libdirs -lmpi -lopen-pal"],
    [OMPI_LIBS="$gpurdma_libdirs -lopen_mpi -lopen-pal"])
  AS_CASE([$OMPI_SERIES], [4.1], [], [GPURDMA_PMIX_LIBS])
  GPURDMA_OPENMPI_THREADS
  GPURDMA_OPENMPI_LINK
  AC_SUBST([OMPI_VERSION])
  AC_SUBST([OMPI_SERIES])
  AC_SUBST([OMPI_PREFIX])
  AC_SUBST([OMPI_PLUGINDIR])
  AC_SUBST([MPI_CPPFLAGS])
  AC_SUBST([MPI_LIBS])
  AC_SUBST([OMPI_CPPFLAGS])
  AC_SUBST([OMPI_LIBS])
])

AC_DEFUN([GPURDMA_PMIX], [
  AC_MSG_CHECKING([for PMIx headers])
  gpurdma_save_CPPFLAGS=$CPPFLAGS
  # An Open MPI that brings its own PMIx has the headers beside its own.
  AS_IF([test -f "$gpurdma_incdir/pmix.h"], [PMIX_CFLAGS=],
    [PMIX_CFLAGS=`test "x$PKG_CONFIG" = x || "$PKG_CONFIG" --cflags pmix 2>/dev/null`])
  CPPFLAGS="$CPPFLAGS -isystem $gpurdma_incdir $PMIX_CFLAGS"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <pmix.h>]], [])], [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no])
    AC_MSG_ERROR([pmix.h was not found, which Open MPI $OMPI_VERSION's component headers include.
Debian: libpmix-dev pkg-config, RPM: pmix-devel pkgconf-pkg-config])])
  CPPFLAGS=$gpurdma_save_CPPFLAGS
])

# The library that Open MPI itself uses: within libopen-pal, beside it, or the system's.
AC_DEFUN([GPURDMA_PMIX_LIBS], [
  AC_MSG_CHECKING([for the PMIx library])
  gpurdma_save_LIBS=$LIBS
  gpurdma_found=no
  for gpurdma_pmix in "" "-lpmix" "`test "x$PKG_CONFIG" = x || "$PKG_CONFIG" --libs pmix 2>/dev/null`"; do
    LIBS="$OMPI_LIBS $gpurdma_pmix $gpurdma_save_LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[int PMIx_Get(void);]], [[return PMIx_Get();]])], [gpurdma_found=yes; break])
  done
  LIBS=$gpurdma_save_LIBS
  AC_MSG_RESULT([$gpurdma_found])
  AS_IF([test $gpurdma_found = no],
    [AC_MSG_ERROR([PMIx was not found. Debian: libpmix-dev pkg-config, RPM: pmix-devel pkgconf-pkg-config])])
  OMPI_LIBS="$OMPI_LIBS $gpurdma_pmix"
])

# The headers of 5.0 and later name their thread header by macro; the stand-in in mca/compat is for pthreads.
AC_DEFUN([GPURDMA_OPENMPI_THREADS], [
  AS_CASE([$OMPI_SERIES], [4.1], [], [
    AC_MSG_CHECKING([that Open MPI uses POSIX threads])
    gpurdma_save_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $OMPI_CPPFLAGS"
    AC_EGREP_CPP([threads_pthreads_mutex], [
#include "opal_config.h"
MCA_threads_mutex_base_include_HEADER
      ], [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no])
      AC_MSG_ERROR([this Open MPI was built with --with-threads other than pthreads, which gpurdma does not support])])
    CPPFLAGS=$gpurdma_save_CPPFLAGS])
])

AC_DEFUN([GPURDMA_OPENMPI_LINK], [
  AC_MSG_CHECKING([whether a component links with Open MPI])
  gpurdma_save_LIBS=$LIBS
  LIBS="$OMPI_LIBS $LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[extern int opal_progress_register(void *), ompi_coll_base_framework;]],
    [[return ompi_coll_base_framework + opal_progress_register(0);]])], [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no])
    AC_MSG_ERROR([$OMPI_LIBS does not link. Debian: libopenmpi-dev, RPM: openmpi-devel])])
  LIBS=$gpurdma_save_LIBS
])
