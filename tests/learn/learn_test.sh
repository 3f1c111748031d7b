#!/usr/bin/env bash
# Trains a model on data/ and checks that the model reaches a good perplexity and BLEU on held-out sentences.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
data=$HEED_SOURCE/data

cat "$data/train.en" "$data/train.fr" | "$HEED_BIN/build-vocab" -q --type bpe -s 2000 >vocab || fail "build-vocab failed"
"$HEED_BIN/train" -q -t "$data/train.en" "$data/train.fr" --valid-sets "$data/valid.en" "$data/valid.fr" -v vocab \
  -m model.h5 --task transformer-tiny --enc-depth 2 --dec-depth 2 --tied-embeddings-all --mini-batch-words 2000 \
  --learn-rate 0.003 --lr-warmup 200 --precision float32 --after 12e --valid-freq 12e --log-format tsv >records.tsv ||
  fail "train: exit $?"

# Prints the value of a COLUMN in the record of the validation. Usage: score COLUMN
score() {
  awk -F '\t' -v name="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i } $1 == "validation" { print $column[name] }' records.tsv
}
echo "perplexity $(score perplexity), BLEU $(score bleu)"
awk -v x="$(score perplexity)" 'BEGIN { exit !(x > 1 && x < 2) }' || fail "perplexity $(score perplexity) is not below 2"
awk -v x="$(score bleu)" 'BEGIN { exit !(x > 60) }' || fail "BLEU $(score bleu) is not above 60"

finish
