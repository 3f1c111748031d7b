#!/usr/bin/env bash
# bleu against sacreBLEU on an adversarial text, where Python has the version that is compared with.
python=${PYTHON:-python3}
if ! command -v "$python" >/dev/null; then
  echo "skipped: no $python"
  exit 77
fi
exec "$python" "$HEED_SOURCE/scripts/bleu-oracle" --bleu "$HEED_BIN/bleu" --lines 20
