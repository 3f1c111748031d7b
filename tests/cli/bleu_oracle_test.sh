#!/usr/bin/env bash
# Compares bleu with sacreBLEU on adversarial text. Needs a Python with the right version of sacreBLEU.
python=${PYTHON:-python3}
if ! command -v "$python" >/dev/null; then
  echo "skipped: no $python"
  exit 77
fi
exec "$python" "$HEED_SOURCE/scripts/bleu-oracle" --bleu "$HEED_BIN/bleu" --lines 20
