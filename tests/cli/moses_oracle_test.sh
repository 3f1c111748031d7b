#!/usr/bin/env bash
# tokenize against the output of the real Moses scripts, where that lies beside the project.
if ! command -v python3 >/dev/null; then
  echo "skipped: no python3"
  exit 77
fi
exec "$HEED_SOURCE/scripts/moses-oracle" --tokenize "$HEED_BIN/tokenize"
