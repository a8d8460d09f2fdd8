#!/usr/bin/env bash
# "make pictures": runs a notebook in JupyterLab in Chromium and takes screenshots of it for the documentation, in
# the light and the dark theme: docs/{panel,monitor,sweep,scaling}.png and -dark.png. The panel shows ogbn-arxiv if
# GNB_DATA has it; keep the machine idle meanwhile, since workers wait for each other if another program takes a CPU.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go python
bash scripts/browser.sh
source=${GNB_DATA:-../shared/data}/ogbn_arxiv
if [ -d "$source" ]; then
  export GNB_PANEL=$PWD/build/pictures/arxiv
  rm -rf "$GNB_PANEL"
  mkdir -p build/pictures
  go run ./gnb/cmd/gnb data convert "$source/graphsaint" "$GNB_PANEL" --undirected --features "one-hot:$source/gpt_preds/ogbn-arxiv.csv"
fi
GNB_PICTURES=$PWD/docs go test ./internal/labtest -run '^TestJupyterLab$/^Pictures$' -count 1
ls docs/*.png
