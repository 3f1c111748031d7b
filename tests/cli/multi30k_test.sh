#!/usr/bin/env bash
# Tests scripts/multi30k with very short trainings on data/ under the names of Multi30k: both recipes from text to BLEU, and
# a second run that trains nothing again.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
export HEED_BIN UPDATES=3 TEACHER_UPDATES=2 REVERSE_UPDATES=2 THREADS=2
multi30k=$HEED_SOURCE/scripts/multi30k

for part in train:300:train valid:20:val test:20:test_2016_flickr; do
  IFS=: read -r from lines to <<<"$part"
  head -n "$lines" "$HEED_SOURCE/data/$from.en" | gzip >"$to.en.gz"
  head -n "$lines" "$HEED_SOURCE/data/$from.fr" | gzip >"$to.de.gz"
done
expect 1 '' "multi30k: no $PWD/none/train.en.gz (*" "$multi30k" best "$PWD/none"
for recipe in published best; do
  for run in first again; do
    "$multi30k" $recipe "$PWD" "$PWD/$recipe" >$recipe.$run 2>err || fail "$recipe, $run run: $(tail -n 3 err)"
    grep -qE '^BLEU on test_2016, tokenised and lower-cased: [0-9.]+$' $recipe.$run || fail "$recipe: no BLEU of tokens: $(cat $recipe.$run)"
    grep -qE '^BLEU on test_2016, raw text, 13a, lower-cased: [0-9.]+$' $recipe.$run || fail "$recipe: no BLEU of raw text"
    [ $run = again ] || cp $recipe/model.h5 $recipe.h5
  done
  cmp -s $recipe/model.h5 $recipe.h5 || fail "$recipe: the second run changes the model"
done
# The student learns from the text, from what both teachers make of it and of two samples, and from a third sample.
lines() { zcat "best/pairs.$1.gz" | sed -n "$(($2 * 300 + 1)),$(($2 * 300 + 300))p"; }
[ "$(zcat best/pairs.en.gz | wc -l)" -eq 1500 ] || fail "the student's text has $(zcat best/pairs.en.gz | wc -l) lines of 1500"
part=0
while read -r english german; do
  cmp -s <(lines en $part) <(zcat -f "$english") || fail "part $part of the student's English text is not $english"
  cmp -s <(lines de $part) <(zcat -f "$german") || fail "part $part of the student's German text is not $german"
  part=$((part + 1))
done <<'PARTS'
train.en.gz train.de.gz
train.en.gz best/lesson.de
best/sample1.en best/lesson1.de
best/sample2.en best/lesson2.de
best/sample3.en train.de.gz
PARTS
cmp -s best/teacher1.h5 best/teacher2.h5 && fail "both teachers are the same"
cmp -s best/sample1.en best/sample2.en && fail "both samples are the same"
finish
