#!/usr/bin/env bash
# Prints the Python that creates environments: python3, or, if that is older than 3.10 or has no venv, the newest
# suitable one on PATH. If there is none, it prints nothing and exits with status 1.
set -u
for exe in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
  if command -v "$exe" >/dev/null && "$exe" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && "$exe" -c 'import venv, ensurepip' 2>/dev/null; then
    command -v "$exe"
    exit 0
  fi
done
exit 1
