#!/usr/bin/env bash
# Tests scripts/wmt14: the rehearsal goes through every step on data/, a second run goes on from what is there, a dry run
# prints the times, and raw files that do not fit are named.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HEED_BIN UPDATES=20 THREADS=2 DEVICE=cpu
wmt14=$HEED_SOURCE/scripts/wmt14

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

if "$wmt14" en-de huge > "$folder/out" 2> "$folder/err"; then fail "wmt14 accepts an unknown size"; fi
grep -q '^usage: scripts/wmt14 en-de' "$folder/err" || fail "wmt14 says no usage"
if "$wmt14" en-de base "$folder/nowhere" "$folder/x" 2> "$folder/err"; then fail "wmt14 needs no data"; fi
grep -q "^wmt14: no folder $folder/nowhere (" "$folder/err" || fail "the missing folder is not named: $(cat "$folder/err")"

for run in first again; do
  "$wmt14" rehearsal data "$folder/work" > "$folder/$run" 2> "$folder/err" || fail "the rehearsal failed ($run run): $(tail -n 3 "$folder/err")"
  grep -qE '^BLEU on newstest2014, raw text, 13a: [0-9.]+$' "$folder/$run" || fail "no BLEU of raw text ($run run)"
  grep -qE '^BLEU on newstest2014, tokens, compounds split: [0-9.]+$' "$folder/$run" || fail "no BLEU of tokens ($run run)"
done
grep -q '^wmt14: giga-fren.release2.fixed: 929 pairs$' "$folder/first" || fail "a part is not counted"
if grep -q 'pairs$' "$folder/again"; then fail "the second run reads the raw text again"; fi
cmp -s <(tail -n 2 "$folder/first") <(tail -n 2 "$folder/again") || fail "the second run prints another BLEU"
cmp "$HEED_SOURCE/data/test.fr" "$folder/work/test.fr" || fail "the segments of the SGML file are not the lines of the test"

# Tatoeba's form: pairs in one file, of which some sentences are held out.
mkdir "$folder/tatoeba"
paste "$HEED_SOURCE/data/train.en" "$HEED_SOURCE/data/train.fr" | gzip > "$folder/tatoeba/fra-eng.tsv.gz"
"$wmt14" rehearsal "$folder/tatoeba" "$folder/pairs" > "$folder/out" 2> "$folder/err" || fail "the rehearsal on pairs failed: $(tail -n 3 "$folder/err")"
grep -qE '^BLEU on newstest2014, raw text, 13a: [0-9.]+$' "$folder/out" || fail "no BLEU of pairs"
sort -u "$folder/pairs/pairs/test.en" > "$folder/held-out"
[ "$(wc -l < "$folder/held-out")" -gt 20 ] || fail "too few sentences are held out"
if grep -qxFf "$folder/held-out" "$folder/pairs/pairs/train.en"; then fail "a sentence of the test is in the training text"; fi

rm "$folder/work/model.h5"
UPDATES=100000 "$wmt14" rehearsal --dry-run data "$folder/work" > "$folder/out" 2> "$folder/err" || fail "the dry run failed: $(cat "$folder/err")"
for line in 'speed expected' 'time on this machine +[0-9.]+ hours' 'time on one H200 +[0-9.]+ hours \(the aim' 'time on eight'; do
  grep -qE "^ *$line" "$folder/out" || fail "the dry run has no line '$line': $(cat "$folder/out")"
done
[ ! -e "$folder/work/model.h5" ] || fail "the dry run trains"

# Real names: a missing file, and sides of different lengths.
mkdir "$folder/raw"
for part in europarl-v7 commoncrawl; do
  for language in de en; do printf 'a\nb\n' > "$folder/raw/$part.de-en.$language"; done
done
if "$wmt14" en-de base "$folder/raw" "$folder/y" > /dev/null 2> "$folder/err"; then fail "wmt14 does without a part"; fi
grep -q '^wmt14: no news-commentary-v9.de-en.en (or ' "$folder/err" || fail "the missing file is not named: $(cat "$folder/err")"
printf 'a\n' > "$folder/raw/commoncrawl.de-en.de"
if "$wmt14" en-de base "$folder/raw" "$folder/y" > /dev/null 2> "$folder/err"; then fail "wmt14 takes sides of different lengths"; fi
grep -q "^wmt14: .*/commoncrawl.de-en.en and .*/commoncrawl.de-en.de have different numbers of lines" "$folder/err" ||
  fail "the sides of different lengths are not named: $(cat "$folder/err")"
