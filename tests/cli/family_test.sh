#!/usr/bin/env bash
# Tests scripts/family: the table and the picture that compare the kinds of normalisation, after very short trainings.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

if "$HEED_SOURCE/scripts/family" cellar > "$folder/out" 2> "$folder/err"; then fail "family accepts an unknown command"; fi
grep -q '^usage: scripts/family ' "$folder/err" || fail "family says no usage"

for run in first again; do
  UPDATES=2 "$HEED_SOURCE/scripts/family" norms "$folder/family" > "$folder/out" || fail "family norms failed ($run run)"
  for name in {layer,rms,batch}-{post,pre}; do
    grep -qE "^$name +[0-9]+\.[0-9]{4} +[0-9]+\.[0-9]{2} +[0-9.]+$" "$folder/out" || fail "no line of $name ($run run)"
    grep -q ">$name<" "$folder/family/norms.svg" || fail "no curve of $name ($run run)"
  done
done
