#!/usr/bin/env bash
# Puts JupyterLab, Node.js and playwright-core (internal/labtest) into .venv, and sees that there is a
# Chromium: the tests of notebooks in a browser and "make pictures" run on them. What is there stays,
# and then it takes no time. Chromium comes from the distribution, which takes root, on Debian and
# Ubuntu; GNB_CHROMIUM names one elsewhere. Where it cannot be had this says so, and those tests skip.
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
  # npm starts the node that it finds first, and its messages are of no use when it works.
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
