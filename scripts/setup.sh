#!/usr/bin/env bash
# Installs what building and testing need on Debian 12 and is missing. Run as root, or as a user with sudo.
set -euo pipefail

packages=(g++ cmake ninja-build pkg-config ccache binutils ca-certificates
  libboost-program-options-dev libsqlite3-dev zlib1g-dev nlohmann-json3-dev
  libgtest-dev libgmock-dev libopenblas0-pthread
  clang-19 libclang-rt-19-dev lld-19 llvm-19)  # clang-19 compiles for AMD GPUs without ROCm, and the fuzz targets with its run-time library

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if ((${#missing[@]})); then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "setup: missing ${missing[*]}; run as root or install sudo" >&2; exit 1; }
    as_root=(sudo)
  fi
  echo "setup: installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
