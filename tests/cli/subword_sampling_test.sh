#!/usr/bin/env bash
# Checks training with pieces that are drawn anew in each epoch (--bpe-dropout, --sample-alpha).
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
train=$HEED_BIN/train
command -v h5diff >/dev/null || { echo "no h5diff (hdf5-tools)"; exit 77; }
head -n 600 "$HEED_SOURCE/data/train.en" >en
head -n 600 "$HEED_SOURCE/data/train.fr" >fr
cat en fr | "$HEED_BIN/build-vocab" -q --type bpe -s 500 >bpe || fail "build-vocab failed"
cat en fr | "$HEED_BIN/build-vocab" -q --type unigram -s 500 >unigram || fail "build-vocab failed"
options=(-q -t en fr --task transformer-tiny --enc-depth 1 --dec-depth 1 --dim-emb 16 --transformer-dim-ffn 16 --mini-batch-words 1500
  --dropout 0.2 --lr-warmup 0)
for kind in 'bpe --bpe-dropout 0.2' 'unigram --sample-alpha 0.2'; do
  read -r name option value <<<"$kind"
  draw=(-v "$name" "$option" "$value")
  "$train" "${options[@]}" "${draw[@]}" -j 2 --after 3e -m "$name.h5" || fail "$kind: exit $?"
  # Interrupted within the second epoch, and between epochs; with another number of threads.
  for after in 1e 5u 2e 3e; do
    "$train" "${options[@]}" "${draw[@]}" -j 1 --after "$after" -m "$name.parts.h5" || fail "$kind until $after: exit $?"
  done
  same_parameters "$name.h5" "$name.parts.h5" "$kind, continued"
  "$train" "${options[@]}" -v "$name" -j 2 --after 3e -m "$name.plain.h5" || fail "$name: exit $?"
  other_parameters "$name.h5" "$name.plain.h5" "$kind draws nothing"
done
# Without dropout, the pieces are those of a training without the option.
"$train" "${options[@]}" -v bpe --bpe-dropout 0 -j 2 --after 3e -m zero.h5 || fail "--bpe-dropout 0: exit $?"
same_parameters zero.h5 bpe.plain.h5 "--bpe-dropout 0"
"$train" "${options[@]}" -v bpe --bpe-dropout 0.2 --shuffle-window 1000 --tempdir . -j 1 --after 3e -m window.h5 || fail "--shuffle-window: exit $?"
same_parameters window.h5 bpe.h5 "a window of all pairs"

expect 2 '' 'train: --bpe-dropout: unigram has no merges that can be left out (build-vocab --type bpe makes some)' \
  "$train" "${options[@]}" -v unigram --bpe-dropout 0.1 -m m.h5
expect 2 '' 'train: --sample-alpha: bpe is no unigram model (build-vocab --type unigram makes one)' \
  "$train" "${options[@]}" -v bpe --sample-alpha 0.1 -m m.h5
expect 2 '' 'train: --bpe-dropout and --sample-alpha exclude each other: *' "$train" "${options[@]}" -v bpe --sample-alpha 0.1 --bpe-dropout 0.1 -m m.h5
expect 2 '' 'train: --bpe-dropout*1.5*' "$train" "${options[@]}" -v bpe --bpe-dropout 1.5 -m m.h5
# An alignment is one of words, whatever their pieces are in an epoch.
yes 0-0 | head -n 600 >links
"$train" "${options[@]}" -v bpe --bpe-dropout 0.2 --guided-alignment links -j 1 --after 3e -m aligned.h5 || fail "--guided-alignment: exit $?"
"$train" "${options[@]}" -v bpe --bpe-dropout 0.2 --guided-alignment links -j 2 --after 2e -m parts.h5 || fail "--guided-alignment: exit $?"
"$train" "${options[@]}" -v bpe --bpe-dropout 0.2 --guided-alignment links -j 2 --after 3e -m parts.h5 || fail "--guided-alignment: exit $?"
same_parameters parts.h5 aligned.h5 "a resumed training with alignments"
other_parameters bpe.h5 aligned.h5 "the alignments change nothing"
# Cropping can leave a lone U+2581, the beginning of a word that is no word of its own.
paste -d '|' <("$HEED_BIN/tokenize" -q <en) <("$HEED_BIN/tokenize" -q <fr) | awk -F '|' '{
  n = split($1, source, " "); m = split($2, target, " "); line = ""
  for (i = 0; i < n; ++i) for (j = 0; j < m; ++j) line = line i "-" j " "
  print line
}' >crop.links
for length in 8 10 12 15; do
  "$train" "${options[@]}" -v unigram --sample-alpha 0.2 --max-length "$length" --on-long crop --guided-alignment crop.links --after 2e \
    -m "crop$length.h5" 2>stderr || fail "--on-long crop, $length tokens: exit $?, $(cat stderr)"
done
# Tokens that end in the separator of BPE.
for _ in $(seq 40); do echo 'foo@@ bar baz@@'; done >separators.en
for _ in $(seq 40); do echo 'bar@@ foo @@'; done >separators.fr
yes '0-0 1-1' | head -n 40 >links
cat separators.* | "$HEED_BIN/build-vocab" -q --type bpe --mode none --merges 10 >separators.vocab || fail "build-vocab failed"
"$train" -q "${options[@]:4}" -t separators.en separators.fr -v separators.vocab --pretokenized --bpe-dropout 0.5 --guided-alignment links --after 3e \
  -m separators.h5 || fail "tokens that end in the separator: exit $?"
expect 0 '' 'train: warning: --bpe-dropout was 0.2 and is now 0.3: *' "$train" "${options[@]}" -v bpe --bpe-dropout 0.3 -j 1 --after 4e -m bpe.h5
finish
