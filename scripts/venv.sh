#!/usr/bin/env bash
# Makes .venv, this checkout's private Python, with the packages of scripts/requirements.txt. It does
# nothing if the environment exists and the list has not changed.
set -euo pipefail
cd "$(dirname "$0")/.."
exec bash docker/install.sh python .venv scripts/requirements.txt
