#!/usr/bin/env bash
# Reports missing prerequisites of this machine. usage: scripts/need.sh go|python|make …
set -u
cd "$(dirname "$0")/.."
missing=0

lack() { # what is wrong, how to put it right
  printf 'missing: %s\n  to fix: %s\n' "$1" "$2" >&2
  missing=1
}

older() { # two versions: whether the first is older than the second
  [ "$1" != "$2" ] && [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

need_go() {
  local want=1.26 have log
  local fix="install it from https://go.dev/dl/ and put its bin directory first on PATH"
  if ! command -v go >/dev/null; then
    lack "Go $want or newer (there is no go command on PATH)" "$fix"
    return
  fi
  # The installed version. From 1.21 on, Go downloads the version that go.mod requires.
  have=$(GOTOOLCHAIN=local go version | sed -E 's/^go version go([0-9.]+).*/\1/')
  if ! older "$have" $want; then return; fi
  if older "$have" 1.21; then
    lack "Go $want or newer (this is $have; from 1.21 on an older Go fetches a newer one by itself)" "$fix"
    return
  fi
  case $(go env GOTOOLCHAIN 2>/dev/null) in
    local | go1.*[0-9])
      lack "Go $want or newer (this is $have, and GOTOOLCHAIN keeps it from fetching a newer one)" "go env -w GOTOOLCHAIN=auto, and unset GOTOOLCHAIN; or $fix"
      return
      ;;
  esac
  if ! log=$(go env GOVERSION 2>&1) || older "$(sed -n 's/^go\([0-9.]*\).*/\1/p' <<<"${log##*$'\n'}")" $want; then
    lack "Go $want or newer (this is $have, and it could not fetch a newer one: ${log##*$'\n'})" "connect to the Go module proxy, or set GOPROXY to a mirror; or $fix"
  fi
}

need_python() {
  local newer="install a newer one beside it, as python3 or python3.10 to python3.14 on PATH: https://www.python.org/downloads/, \"uv python install --default\", conda or pyenv"
  if bash scripts/python.sh >/dev/null; then return; fi
  if ! command -v python3 >/dev/null; then
    lack "Python 3.10 or newer (there is no python3 on PATH)" "Debian, Ubuntu: apt install python3 python3-venv"
  elif ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    lack "Python 3.10 or newer (this is $(python3 -V 2>&1))" "$newer"
  else
    lack "Python's venv module" "Debian, Ubuntu: apt install python3-venv"
  fi
}

need_make() {
  command -v make >/dev/null || lack "make" "Debian, Ubuntu: apt install make"
}

for what; do "need_$what"; done
exit $missing
