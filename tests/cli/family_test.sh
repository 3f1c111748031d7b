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

# After two updates exact search is too much work: its line has dashes, and the picture ends before it.
UPDATES=2 BEAMS='1 2' EXPANSIONS=5 "$HEED_SOURCE/scripts/family" search "$folder/search" > "$folder/out" 2> "$folder/err" || fail "family search failed"
for beam in 1 2; do
  grep -qE "^$beam( +-[0-9]+\.[0-9]{3} +[0-9.]+){2} +[0-9.]+ +[0-9.]+$" "$folder/out" || fail "no line of beam $beam: $(cat "$folder/out")"
done
grep -qE '^exact( +-){6}$' "$folder/out" && grep -q 'search exhaustive: more than 5 prefixes' "$folder/err" || fail "no refusal of exact search"
[ "$(grep -c '<circle' "$folder/search/search.svg")" -eq 8 ] || fail "search.svg has not 8 points"

for run in first again; do
  UPDATES=2 "$HEED_SOURCE/scripts/family" norms "$folder/family" > "$folder/out" || fail "family norms failed ($run run)"
  for name in {layer,rms,batch}-{post,pre}; do
    grep -qE "^$name +[0-9]+\.[0-9]{4} +[0-9]+\.[0-9]{2} +[0-9.]+$" "$folder/out" || fail "no line of $name ($run run)"
    grep -q ">$name<" "$folder/family/norms.svg" || fail "no curve of $name ($run run)"
  done
done
