#!/usr/bin/env bash
# Prints the Python that environments are made with: python3, or, where that is older than 3.10 or has no venv,
# the newest one beside it on PATH that serves. Prints nothing, with status 1, where there is none.
set -u
for exe in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
  if command -v "$exe" >/dev/null && "$exe" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && "$exe" -c 'import venv, ensurepip' 2>/dev/null; then
    command -v "$exe"
    exit 0
  fi
done
exit 1
