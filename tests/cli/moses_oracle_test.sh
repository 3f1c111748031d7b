#!/usr/bin/env bash
# Compares tokenize with the recorded output of the real Moses scripts, if the recordings lie beside the project.
if ! command -v python3 >/dev/null; then
  echo "skipped: no python3"
  exit 77
fi
exec "$HEED_SOURCE/scripts/moses-oracle" --tokenize "$HEED_BIN/tokenize"
