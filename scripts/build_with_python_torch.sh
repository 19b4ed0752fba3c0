#!/usr/bin/env bash
# Builds against the LibTorch inside python3's torch package, where Debian's libtorch-dev is not what
# one wants (a CUDA machine, say). Header-only libraries come from the system or from third_party/.
#
#   scripts/build_with_python_torch.sh [BUILD_DIR] [CMAKE OPTIONS...]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
shift || true
prefix=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" \
  -DTESSERA_HEADERS="$PWD/third_party" "$@"
cmake --build "$build" -j "$(nproc)"
