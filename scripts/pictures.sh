#!/usr/bin/env bash
# "make pictures": runs a notebook in JupyterLab in Chromium and takes screenshots of it for the documentation, in
# the light and the dark theme: docs/{panel,monitor,sweep,scaling}.png and -dark.png.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go python
bash scripts/browser.sh
GNB_PICTURES=$PWD/docs go test ./internal/labtest -run '^TestJupyterLab$/^Pictures$' -count 1
ls docs/*.png
