#!/usr/bin/env bash
# Makes .venv, this checkout's private Python, with what scripts/requirements.txt lists. Once it is
# there and the list has not changed, this takes no time.
set -euo pipefail
cd "$(dirname "$0")/.."
exec bash docker/install.sh python .venv scripts/requirements.txt
