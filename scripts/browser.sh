#!/usr/bin/env bash
# Installs JupyterLab, Node.js and playwright-core (internal/labtest) into .venv, and Chromium: the
# browser tests of notebooks and "make pictures" need them. It skips installed parts. On Debian and
# Ubuntu, Chromium comes from the distribution, which requires root; GNB_CHROMIUM names another one.
# If Chromium is unavailable, the script says so, and the tests that need it are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/venv.sh
bash docker/install.sh python .venv docker/requirements.txt
bash docker/install.sh python .venv internal/labtest/requirements.txt

modules=$PWD/.venv/share/gnb-browser
if ! cmp -s internal/labtest/package-lock.json "$modules/package-lock.json" || ! [ -d "$modules/node_modules/playwright-core" ]; then
  echo "getting playwright-core"
  rm -rf "$modules"
  mkdir -p "$modules"
  cp internal/labtest/package.json "$modules"
  # npm starts the first node on PATH; its messages matter only if it fails.
  log=$(PATH=$PWD/.venv/bin:$PATH; cp internal/labtest/package-lock.json "$modules" && npm ci --prefix "$modules" --no-audit --no-fund --ignore-scripts 2>&1) || {
    rm -rf "$modules"
    printf '%s\n' "$log" "npm could not install what internal/labtest/package-lock.json lists; it needs npm's package registry, or a mirror set in npm's configuration" >&2
    exit 1
  }
fi

for exe in "${GNB_CHROMIUM:-}" chromium chromium-browser google-chrome; do
  if [ -n "$exe" ] && command -v "$exe" >/dev/null; then exit 0; fi
done
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "there is no Chromium for the tests of notebooks in a browser; Debian, Ubuntu: apt install chromium; elsewhere set GNB_CHROMIUM" >&2
  exit 1
fi
echo "installing Chromium (half a minute)"
export DEBIAN_FRONTEND=noninteractive
log=$({ apt-get update -q || true; } 2>&1; apt-get install -y -q --no-install-recommends chromium 2>&1) || {
  printf '%s\n' "$log" | tail -n 20 >&2
  echo "apt could not install Chromium" >&2
  exit 1
}
