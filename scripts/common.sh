# SPDX-License-Identifier: BSD-3-Clause
# Paths and build functions that the scripts share. Sourced, never run.
set -euo pipefail

# --help prints the comment at the beginning of the script, before anything is set up or built.
for word in "$@"; do
  case $word in
    -h | --help)
      sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
  esac
done

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PYTHONDONTWRITEBYTECODE=1
QCTS_TORCH=${QCTS_TORCH:-ON}
venv=$PWD/build/venv

say() { printf '%s\n' "$*" >&2; }
die() {
  local code=$1
  shift
  say "$*"
  exit "$code"
}

# out_of DEFAULT [ARGUMENT ...]: prints the folder of the last --out among the arguments of `qcts run`.
out_of() {
  local out=$1
  while shift && (($#)); do
    case $1 in
      --out) out=${2:?--out needs a folder} ;;
      --out=*) out=${1#--out=} ;;
    esac
  done
  printf '%s\n' "$out"
}

# configure PRESET: configures once, and again when LibTorch or Python has changed.
configure() {
  local preset=$1 torch=$QCTS_TORCH
  case $preset in asan | notorch) torch=OFF ;; esac
  local want="$torch $venv"
  local stamp=build/$preset/.configured
  if [ ! -f build/"$preset"/build.ninja ] || [ "$(cat "$stamp" 2>/dev/null)" != "$want" ]; then
    say "configuring build/$preset"
    cmake --preset "$preset" -DQCTS_TORCH="$torch" -DPython3_EXECUTABLE="$venv/bin/python" >build/configure.log 2>&1 ||
      { cat build/configure.log >&2; die 5 "configure failed (build/configure.log)"; }
    printf '%s' "$want" >"$stamp"
  fi
}

# build PRESET [TARGET ...]
build() {
  local preset=$1
  shift
  configure "$preset"
  say "building build/$preset"
  # Compiling a LibTorch file takes over a gigabyte; QCTS_JOBS limits the number of jobs if memory is short.
  ninja -C build/"$preset" -j "${QCTS_JOBS:-$(nproc)}" "$@" >build/build.log 2>&1 ||
    { grep -aE 'error|FAILED|undefined' build/build.log | head -40 >&2; die 5 "build failed (build/build.log)"; }
}
