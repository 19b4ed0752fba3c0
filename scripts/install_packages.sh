#!/usr/bin/env bash
# Installs what Tessera needs on Debian 12. Does nothing, and needs no rights, when all is there.
#
#   scripts/install_packages.sh          what the program is built with
#   scripts/install_packages.sh tests    also what the tests want: further formats, PyTorch
set -euo pipefail

packages=(
  g++ cmake ninja-build
  libtorch-dev
  libopenblas0-pthread # without it LibTorch's matrix products are about 30 times slower
  libfmt-dev libcli11-dev nlohmann-json3-dev libtomlplusplus-dev
  libgtest-dev
  libpng-dev libtiff-dev libjpeg-dev zlib1g-dev # images; each is optional for the build
  libopenmpi-dev openmpi-bin # ranks as processes; optional for the build
)
if [ "${1:-}" = tests ]; then
  packages+=(
    libopenslide-dev libhdf5-dev libgdcm-dev libgdal-dev # more formats; each is optional for the build
    python3-numpy python3-torch python3-torchvision # tests compare with PyTorch and torchvision
  )
fi

missing=()
for package in "${packages[@]}"; do
  if ! dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed; then
    missing+=("$package")
  fi
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

if ! command -v apt-get >/dev/null; then
  echo "install_packages: apt-get not found; install yourself: ${missing[*]}" >&2
  exit 2
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
echo "install_packages: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
