# What the scripts in contrib share. Sourced by bash, never run.
#
# Long commands write to a log file, show that they are alive, and show the end of the log when they fail. Packages are
# installed only where they are missing, and it is said which and why.
# shellcheck shell=bash

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
JOBS=${JOBS:-$(nproc)}
LOGS=${LOGS:-$TOP/build/logs}

# Open MPI refuses to run as root unless told that this is wanted.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Debian's own: a python3 that stands before it in PATH does not have Debian's packages.
PYTHON=/usr/bin/python3

say() { printf '%s\n' "$*"; }
title() { printf '\n== %s\n' "$*"; }
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo > /dev/null; then
    sudo "$@"
  else
    die "root is needed for: $*. Run this as root, or install sudo"
  fi
}

# logged NAME COMMAND...: runs it with its output in $LOGS/NAME.log, and returns its status. While it runs a terminal
# shows the seconds, anything else a sign of life every 20 s.
logged() {
  local name=$1 log=$LOGS/${1//[ \/]/-}.log start=$SECONDS sign=20 status=0 pid
  shift
  mkdir -p "$LOGS"
  [ ! -t 1 ] || printf '   %-40s' "$name"
  "$@" > "$log" 2>&1 < /dev/null &
  pid=$!
  while kill -0 "$pid" 2> /dev/null; do
    sleep 0.2
    if [ -t 1 ]; then
      printf '\r   %-40s %4d s' "$name" $((SECONDS - start))
    elif [ $((SECONDS - start)) -ge $sign ]; then
      printf '   %-40s %4d s ...\n' "$name" $sign
      sign=$((sign + 20))
    fi
  done
  wait "$pid" || status=$?
  [ ! -t 1 ] || printf '\r'
  printf '   %-40s' "$name"
  if [ $status = 0 ]; then
    printf ' %4d s    \n' $((SECONDS - start))
  else
    printf ' FAILED, status %d after %d s. The end of %s:\n' $status $((SECONDS - start)) "$log"
    tail -n 30 "$log" | sed 's/^/   | /'
  fi
  return $status
}

BUILD_PACKAGES=(g++ make autoconf automake libtool pkg-config openmpi-bin libopenmpi-dev libucx-dev)
TEST_PACKAGES=(libgtest-dev libbenchmark-dev python3 python3-mpi4py python3-numpy gfortran gdb)

# install_packages "what for" PACKAGE...: installs those that are missing.
install_packages() {
  local reason=$1 package missing=()
  shift
  command -v apt-get > /dev/null ||
    die "this system has no apt-get. Install what corresponds to $*; the README tells how to configure and make"
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2> /dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} != 0 ] || return 0
  say "   missing $reason: ${missing[*]}"
  update_package_lists
  logged "apt-get install" apt_get install --no-install-recommends "${missing[@]}" ||
    die "could not install ${missing[*]}. If the log speaks of a lock, wait for the other apt and run this again." \
      "If it cannot find a package, look at the apt sources: main of Debian 12 has them all"
}

# Once a run of a script is enough.
update_package_lists() {
  [ -z "${package_lists_updated:-}" ] || return 0
  package_lists_updated=yes
  logged "apt-get update" apt_get update || say "   not all package lists could be updated: going on with those at hand"
}

# The lists of a mirror that lags behind may have expired; all that is installed is checked by signature nevertheless.
apt_get() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o Acquire::Check-Valid-Until=false "$@"; }

# Open MPI 5.0 and later need PMIx's headers, which their own packages do not bring.
install_build_packages() {
  install_packages "to build" "${BUILD_PACKAGES[@]}"
  [ "$(openmpi_release)" = 4.1 ] || install_packages "to build for Open MPI $(openmpi_release)" libpmix-dev
}

# Prints the major.minor of the Open MPI in PATH.
openmpi_release() { ompi_info --parsable | sed -n 's/^ompi:version:full:v\{0,1\}\([0-9]*\.[0-9]*\).*/\1/p'; }

# configure_and_make NAME BUILD_DIR ARGUMENT...: out of tree; configures only where something changed.
configure_and_make() {
  local name=$1 build=$2
  shift 2
  mkdir -p "$build"
  autogen || return 1
  # Objects of another checkout would be mixed with ours.
  if [ -e "$build/config.status" ] && ! grep -qF "srcdir='$TOP'" "$build/config.status"; then
    die "$build was configured from another checkout than $TOP; remove it, or name another build directory"
  fi
  if [ "$TOP/configure" -nt "$build/config.status" ] || [ "$*" != "$(cat "$build/arguments" 2> /dev/null)" ]; then
    logged "$name: configure" env -C "$build" "$TOP/configure" "$@" || return 1
    echo "$*" > "$build/arguments"
  fi
  logged "$name: make" make -C "$build" -j"$JOBS"
}

autogen() {
  local input
  [ -w "$TOP" ] || return 0 # a read-only checkout, as in a chroot, has been through it
  if [ -e "$TOP/configure" ] && [ -e "$TOP/Makefile.in" ]; then
    input=$(find "$TOP" -path "$TOP/build*" -prune -o \( -name '*.m4' -o -name configure.ac -o -name '*.am' \) \
      -newer "$TOP/Makefile.in" -print -quit)
    [ -n "$input" ] || return 0
  fi
  logged "autogen" "$TOP/contrib/autogen"
}

# component_environment PREFIX: prints the settings, in the form of env(1), that tell Open MPI of a component which
# `make install` put below a private prefix. The module file does the same.
component_environment() { plugin_environment "$1/lib/openmpi-plugins"; }

# plugin_environment DIR: the same for a component that lies in DIR.
plugin_environment() {
  local plugins=$1
  case $(openmpi_release) in
    4.1) echo "OMPI_MCA_mca_base_component_path=SYS_DEFAULT:$plugins:USER_DEFAULT" ;;
    5.0) echo "OMPI_MCA_mca_base_component_path=$plugins PMIX_MCA_mca_base_component_show_load_errors=none" ;;
    *) echo "OMPI_MCA_mca_base_component_path=$plugins:$(ompi_info --parsable --path pkglibdir | cut -d : -f 3)" ;;
  esac
}

# can_emulate BUILD_DIR: whether it has what the software CUDA driver and its runtime library are built with.
can_emulate() { grep -q '^CUDA_RUNTIME = yes$' "$1/Makefile"; }
