#!/usr/bin/env bash
# Says plainly what is missing on this machine. usage: scripts/need.sh go|python|make …
set -u
missing=0

lack() { # what is wrong, how to put it right
  printf 'missing: %s\n  to fix: %s\n' "$1" "$2" >&2
  missing=1
}

need_go() {
  local want=1.26 have
  if ! command -v go >/dev/null; then
    lack "Go $want or newer (there is no go command on PATH)" \
      "install it from https://go.dev/dl/ and put its bin directory on PATH"
    return
  fi
  have=$(go env GOVERSION | sed 's/^go//; s/[^0-9.].*//')
  if [ "$(printf '%s\n%s\n' "$want" "$have" | sort -V | head -n 1)" != "$want" ]; then
    lack "Go $want or newer (this is $have)" "install it from https://go.dev/dl/"
  fi
}

need_python() {
  if ! command -v python3 >/dev/null; then
    lack "Python 3.10 or newer (there is no python3 on PATH)" "Debian, Ubuntu: apt install python3 python3-venv"
  elif ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    lack "Python 3.10 or newer (this is $(python3 -V 2>&1))" "install a newer one, and put it first on PATH"
  elif ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
    lack "Python's venv module" "Debian, Ubuntu: apt install python3-venv"
  fi
}

need_make() {
  command -v make >/dev/null || lack "make" "Debian, Ubuntu: apt install make"
}

for what; do "need_$what"; done
exit $missing
