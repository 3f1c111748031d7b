#!/usr/bin/env bash
# Tests scripts/multi30k with very short trainings on data/ under the names of Multi30k: both recipes from text to BLEU, and
# a second run that trains nothing again.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
export HEED_BIN UPDATES=3 TEACHER_UPDATES=2 THREADS=2
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
# The student learns from the text, and from what both teachers make of it.
[ "$(zcat best/both.en.gz | wc -l)" -eq 600 ] || fail "the student's text has $(zcat best/both.en.gz | wc -l) lines of 600"
cmp -s <(zcat best/both.de.gz | head -n 300) <(zcat train.de.gz) || fail "the student's text does not begin with the text"
cmp -s <(zcat best/both.de.gz | tail -n 300) best/lesson.de || fail "the student's text does not end with the translations"
cmp -s best/teacher1.h5 best/teacher2.h5 && fail "both teachers are the same"
finish
