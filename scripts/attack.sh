#!/usr/bin/env bash
# The long form of tests/attack: builds the program and the attack drivers with the address and
# undefined-behaviour sanitizers, and runs every driver with many random cases on all cores.
#
#   scripts/attack.sh [CASES] [FAULTS]      default: 100000 mutated inputs, 1000 faults
#
# CASES is for drivers that call the library, thousands of times a second (a tenth of it for model
# files, which take a process each); FAULTS for those that start the program for every case. From the environment:
#   BUILD=build            an existing tree, sanitized or not, which is brought up to date
#   JOBS=8                 cores to use; all by default
#   CMAKE_OPTIONS="..."    further options of cmake
#   PYTHON_TORCH=1         against python3's torch, as scripts/build_with_python_torch.sh does
#   DRIVERS="faults ..."   only these surfaces
#   TESSERA_ATTACK_SEED    the first seed; 1 by default
# What the drivers print is in $BUILD/attack/. Exit code 0: no driver found anything.
set -euo pipefail
cd "$(dirname "$0")/.."
cases=${1:-100000}
faults=${2:-1000}
jobs=${JOBS:-$(nproc)}
seed=${TESSERA_ATTACK_SEED:-1}

if [ -z "${BUILD:-}" ]; then
  BUILD=build-asan
  read -r -a options <<<"${CMAKE_OPTIONS:-}"
  if [ -n "${PYTHON_TORCH:-}" ]; then
    prefix=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')
    options+=("-DCMAKE_PREFIX_PATH=$prefix" "-DTESSERA_HEADERS=$PWD/third_party")
  fi
  cmake --preset asan ${options[@]+"${options[@]}"}
fi

# A finding of a sanitizer ends a program with a code that it has for nothing else. Leaks are not
# looked for: LibTorch and MPI leave much to the end of the process.
export ASAN_OPTIONS=exitcode=99:detect_leaks=0:detect_odr_violation=0:allocator_may_return_null=1
export UBSAN_OPTIONS=exitcode=99:print_stacktrace=1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

mapfile -t drivers < <(ctest --test-dir "$BUILD" -N -L '^attack$' |
                       sed -nE 's/.*: (attack_[a-z_]+_test).*/\1/p' | sort -u)
if [ -n "${DRIVERS:-}" ]; then
  # shellcheck disable=SC2086  # several words are meant
  mapfile -t drivers < <(printf 'attack_%s_test\n' $DRIVERS)
fi
if [ ${#drivers[@]} -eq 0 ]; then
  echo "attack.sh: no test in $BUILD has the label attack; configure it with -DTESSERA_TESTS=ON" >&2
  exit 2
fi
cmake --build "$BUILD" -j "$jobs" --target tessera "${drivers[@]}"

# Runs a driver in several processes, each with its share of the cases and seeds of its own. The
# driver of faults does that by itself.
run_driver() {
  local driver=$1 amount=$2 shares=$jobs
  if [ "$driver" = attack_faults_test ]; then shares=1; fi
  if [ "$shares" -gt "$amount" ]; then shares=$amount; fi
  local pids=() failed=0 share
  for ((share = 0; share < shares; ++share)); do
    TESSERA_ATTACK_JOBS=$jobs TESSERA_ATTACK_CASES=$(((amount + shares - 1) / shares)) \
      TESSERA_ATTACK_SEED=$((seed + share * 1000000)) \
      "$BUILD/$driver" >"$BUILD/attack/$driver.$share.log" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  return $failed
}

mkdir -p "$BUILD/attack"
rm -f "$BUILD"/attack/*.log
status=0
summary=""
for driver in "${drivers[@]}"; do
  amount=$faults
  case $driver in
    attack_readers_test | attack_images_test) amount=$cases ;;
    attack_models_test) amount=$((cases / 10)) ;; # each starts a process, but not the program
  esac
  echo "== $driver: $amount cases"
  result=ok
  run_driver "$driver" "$amount" || result="FAILED, see $BUILD/attack/$driver.*.log"
  if [ "$result" != ok ]; then status=1; fi
  summary+="$driver: $result"$'\n'
  summary+=$(grep -hE '[0-9] cases' "$BUILD/attack/$driver".*.log | sed 's/^/  /' || true)$'\n'
done
echo "== counts"
printf '%s' "$summary"
exit $status
