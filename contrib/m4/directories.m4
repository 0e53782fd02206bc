# GPURDMA_DIRECTORIES: where things are installed; sets plugindir and moduledir.
#
# The component goes to the plugin directory of the Open MPI found, unless the user names a prefix that is not Open
# MPI's own: then everything stays below that prefix, and the module file points Open MPI there.
AC_DEFUN([GPURDMA_DIRECTORIES], [
  AS_CASE([$prefix], [NONE|"$OMPI_PREFIX"|"$OMPI_PREFIX/"], [gpurdma_private=no], [gpurdma_private=yes])
  AC_ARG_WITH([plugindir],
    [AS_HELP_STRING([--with-plugindir=DIR],
      [where the component is installed; default: Open MPI's plugin directory, or LIBDIR/openmpi-plugins when --prefix]dnl
[ names another place than Open MPI's])],
    [AS_CASE([$withval], [/*|'$'*], [plugindir=$withval],
       [AC_MSG_ERROR([--with-plugindir needs an absolute directory])])
     AS_IF([test "x$plugindir" = "x$OMPI_PLUGINDIR"], [gpurdma_private=no], [gpurdma_private=yes])],
    [AS_IF([test $gpurdma_private = yes], [plugindir='${libdir}/openmpi-plugins'], [plugindir=$OMPI_PLUGINDIR])])
  AC_SUBST([plugindir])
  # Needed only where Open MPI does not look by itself.
  AC_SUBST([moduledir], ['${datadir}/modulefiles/gpurdma'])
  AM_CONDITIONAL([INSTALL_MODULEFILES], [test $gpurdma_private = yes])

  # The same, written out for the summary.
  gpurdma_save_prefix=$prefix
  gpurdma_save_exec_prefix=$exec_prefix
  test "x$prefix" != xNONE || prefix=$ac_default_prefix
  test "x$exec_prefix" != xNONE || exec_prefix=$prefix
  gpurdma_expand() {
    gpurdma_value=$[]1
    while :; do
      AS_CASE([$gpurdma_value], [*'$'*], [eval "gpurdma_value=\"$gpurdma_value\""], [break])
    done
    AS_ECHO(["$gpurdma_value"])
  }
  gpurdma_show_plugindir=`gpurdma_expand "$plugindir"`
  gpurdma_show_bindir=`gpurdma_expand "$bindir"`
  gpurdma_show_moduledir=`gpurdma_expand '${datadir}/modulefiles'`
  prefix=$gpurdma_save_prefix
  exec_prefix=$gpurdma_save_exec_prefix
])
