#!/usr/bin/env bash
# No forged checkpoint crashes a tool, stops it, or makes it take much memory: the first thousand of scripts/forge-checkpoints.
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
keep=$(mktemp -d)
# Sanitizers take more address space than a limit leaves.
memory=2048
grep -q __asan_init "$HEED_BIN/translate" && memory=0
"${HEED_SOURCE:?}/scripts/forge-checkpoints" --bin "$HEED_BIN" --count 1000 --seed 1 --memory "$memory" --keep "$keep" || exit 1
rmdir "$keep"
