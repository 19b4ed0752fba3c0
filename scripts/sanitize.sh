#!/usr/bin/env bash
# Runs the tests under sanitizers: all of tests/unit, tests/ranks/comm, and a sample of
# tests/ranks/engine and tests/ranks/train.
#
#   scripts/sanitize.sh [asan] [tsan]        both where none is named
set -euo pipefail
cd "$(dirname "$0")/.."

# LibTorch, OpenMP's and OpenBLAS's threads are not instrumented: one thread a rank, so that the
# thread sanitizer sees our own synchronisation and nothing else.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
export ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS="suppressions=$PWD/scripts/tsan.supp:halt_on_error=0:exitcode=66:ignore_noninstrumented_modules=1:history_size=7"

# Children that are forked to be killed are slow under the thread sanitizer, and find nothing there.
unit="-*Kill*:*Damage*"
ranks="AllReduceTest*:Collectives*:Decorators*:Diagnosis*:PointToPoint*:RunRanks*:Forecast*"
ranks+=":SharedNorm*:Collect*:GradientNorm*:Predict*:Training*:*ZooBattery*/*3:*ZooStages*/*5"

presets=("$@")
if [ $# -eq 0 ]; then presets=(asan tsan); fi
status=0
for preset in "${presets[@]}"; do
  cmake --preset "$preset"
  cmake --build --preset "$preset" -j "$(nproc)"
  echo "== $preset: unit"
  "build-$preset/unit_test" --gtest_brief=1 --gtest_filter="$unit" || status=1
  echo "== $preset: ranks"
  "build-$preset/ranks_test" --gtest_brief=1 --gtest_filter="$ranks" || status=1
done
exit $status
