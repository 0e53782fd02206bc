# GPURDMA_SANITIZER: --enable-sanitizer=address|undefined|thread|address,undefined, for all objects; sets
# SANITIZER_FLAGS and NO_UNDEFINED.
AC_DEFUN([GPURDMA_SANITIZER], [
  AC_ARG_ENABLE([sanitizer],
    [AS_HELP_STRING([--enable-sanitizer=KIND],
      [build everything with a sanitizer: address, undefined, thread, or address,undefined])],
    [gpurdma_sanitizer=$enableval], [gpurdma_sanitizer=no])
  AS_CASE([$gpurdma_sanitizer],
    [no], [SANITIZER_FLAGS=],
    [address|thread|undefined|address,undefined],
    [SANITIZER_FLAGS="-fsanitize=$gpurdma_sanitizer -fno-omit-frame-pointer"],
    [AC_MSG_ERROR([--enable-sanitizer=$gpurdma_sanitizer: expected address, undefined, thread, or address,undefined])])
  # vptr needs RTTI, which we do without; a finding must end the test.
  AS_CASE([$gpurdma_sanitizer],
    [*undefined], [SANITIZER_FLAGS="$SANITIZER_FLAGS -fno-sanitize=vptr -fno-sanitize-recover=undefined"])
  AS_IF([test "x$SANITIZER_FLAGS" != x], [
    AC_MSG_CHECKING([whether $CXX links with $SANITIZER_FLAGS])
    AC_LANG_PUSH([C++])
    gpurdma_save_CXXFLAGS=$CXXFLAGS
    CXXFLAGS="$CXXFLAGS $SANITIZER_FLAGS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no])
      AC_MSG_ERROR([the sanitizer's library is missing. Debian: part of g++, RPM: libasan, libubsan or libtsan])])
    CXXFLAGS=$gpurdma_save_CXXFLAGS
    AC_LANG_POP([C++])])
  AC_SUBST([SANITIZER_FLAGS])
  # The linker then finds what the component lacks; clang's sanitizers leave their own symbols to the program.
  AS_IF([test "x$SANITIZER_FLAGS" = x], [NO_UNDEFINED="-Wl,-z,defs"], [NO_UNDEFINED=])
  AC_SUBST([NO_UNDEFINED])
  AC_SUBST([SANITIZER], [$gpurdma_sanitizer])
])
