#!/usr/bin/env bash
# Checks that no forged checkpoint makes a program crash, hang or take much memory, with the first thousand files of
# scripts/forge-checkpoints.
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
keep=$(mktemp -d)
# Sanitizers need more address space than the usual limit.
memory=2048
grep -q __asan_init "$HEED_BIN/translate" && memory=0
"${HEED_SOURCE:?}/scripts/forge-checkpoints" --bin "$HEED_BIN" --count 1000 --seed 1 --memory "$memory" --keep "$keep" || exit 1
rmdir "$keep"
