#!/usr/bin/env bash
# Makes the locks of Python packages, docker/requirements.txt and scripts/requirements.txt, from the .in files
# beside them: one lock for every Python from 3.10 on, with markers where Pythons need different versions.
# Locked versions stay as long as the .in files allow them; --upgrade takes the newest of all.
#   scripts/locks.sh [--upgrade]
#   scripts/locks.sh --check      writes nothing: fails if a lock does not match its .in file
#   scripts/locks.sh --resolve PYTHON LOCK…
#                                 writes nothing: fails if the locks together cannot be installed, as wheels
#                                 for Linux, with that version of Python, which need not be installed
set -euo pipefail
cd "$(dirname "$0")/.."
bash docker/install.sh python build/uv scripts/requirements-uv.txt
uv=build/uv/bin/uv
# uv uses pip's mirror.
mirror=${PIP_INDEX_URL:-$(build/uv/bin/python3 -m pip config get global.index-url 2>/dev/null || true)}
if [ -n "$mirror" ]; then export UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$mirror}; fi
check='' upgrade=()
case ${1:-} in
  --check) check=1 ;;
  --upgrade) upgrade=(--upgrade) ;;
  --resolve)
    version=$2 lists=()
    shift 2
    for list; do lists+=(--requirement "$list"); done
    exec $uv pip install --quiet --dry-run --target build/uv/none --python-version "$version" --python-platform "$(uname -m)-unknown-linux-gnu" \
      --only-binary :all: "${lists[@]}"
    ;;
  '') ;;
  *) sed -n 's/^#   \(scripts\)/\1/p' "$0" >&2; exit 2 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

lock() { # the .in file, the lock, a constraint ("-c FILE") …
  local in=$1 out=$2 new
  new=$work/$(tr / - <<<"$out")
  shift 2
  if [ -e "$out" ]; then cp "$out" "$new"; fi # pins that are there stay
  $uv pip compile --quiet --universal --python-version 3.10 --no-annotate --no-header ${upgrade[@]+"${upgrade[@]}"} "$@" "$in" -o "$new" >/dev/null
  {
    echo "# Made by scripts/locks.sh from $in, for Python 3.10 and newer."
    cat "$new"
  } >"$new.whole"
  if [ -n "$check" ]; then
    diff -u "$out" "$new.whole" || { echo "$out is not what $in gives; run scripts/locks.sh" >&2; exit 1; }
  else
    cp "$new.whole" "$out"
  fi
}

lock docker/requirements.in docker/requirements.txt
lock scripts/requirements.in scripts/requirements.txt -c docker/requirements.txt
