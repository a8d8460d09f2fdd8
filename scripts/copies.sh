#!/usr/bin/env bash
# Copies notebooks/*.ipynb into my-notebooks, where "make lab" opens them, so that running a notebook does not change
# the checkout. A copy that you have changed, or that a kernel has run, is kept; an unchanged one follows the checkout.
# my-notebooks/.copied has the checksum of each notebook when it was copied. Usage: copies.sh [FROM TO]
set -euo pipefail
cd "$(dirname "$0")/.."
from=${1:-notebooks} to=${2:-my-notebooks}
mkdir -p "$to/.copied"
sum() { cksum <"$1"; }
kept=()
for file in "$from"/*.ipynb; do
  name=$(basename "$file") copy=$to/$(basename "$file") stamp=$to/.copied/$(basename "$file")
  now=$(sum "$file") was=
  if [ -f "$stamp" ]; then was=$(cat "$stamp"); fi
  if [ -e "$copy" ] && [ "$(sum "$copy")" != "$was" ]; then
    # The user's: kept. It is said when the checkout's notebook is not the one that was copied.
    if [ "$now" != "$was" ]; then kept+=("$name"); fi
    continue
  fi
  if [ -n "$was" ] && ! [ -e "$copy" ] && [ "$now" = "$was" ]; then continue; fi # the user has removed it
  # Replace it in one step: an editor or a kernel may read it.
  cp "$file" "$copy.part" && mv "$copy.part" "$copy"
  echo "$now" >"$stamp"
done
if [ ${#kept[@]} -gt 0 ]; then
  echo "kept your changed ${kept[*]} in $to, although the checkout has newer ones; move or delete yours to get those"
fi
