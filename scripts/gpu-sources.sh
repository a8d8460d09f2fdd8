#!/usr/bin/env bash
# Prints a digest of the sources of a GPU bundle, with or without git: it is the same for two checkouts with the same
# Go files and kernels.
set -euo pipefail
cd "$(dirname "$0")/.."
find . \( -path ./build -o -path './.?*' \) -prune -o \
  \( -name '*.go' -o -name '*.cu' -o -name '*.cuh' -o -name '*.ptx' -o -name '*.s' -o -name '*.c' -o -name '*.h' -o -name go.mod -o -name go.sum \) -type f -print0 |
  LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-64
