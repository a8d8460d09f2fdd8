#!/usr/bin/env bash
# Makes .venv, this checkout's private Python, with what scripts/requirements.txt lists. Once it is
# there and the list has not changed, this takes no time.
set -euo pipefail
cd "$(dirname "$0")/.."
stamp=.venv/requirements.stamp
if [ -x .venv/bin/python3 ] && cmp -s scripts/requirements.txt "$stamp"; then exit 0; fi
bash scripts/need.sh python
echo "making .venv (about ten seconds)"
rm -f "$stamp"
if ! [ -x .venv/bin/python3 ] || ! .venv/bin/python3 -c 'import pip' 2>/dev/null; then
  rm -rf .venv
  python3 -m venv .venv
fi
if ! .venv/bin/python3 -m pip install --quiet --disable-pip-version-check --requirement scripts/requirements.txt; then
  echo "pip could not install what scripts/requirements.txt lists; it needs the Python Package Index, or a mirror set with PIP_INDEX_URL" >&2
  exit 1
fi
cp scripts/requirements.txt "$stamp"
