#!/usr/bin/env bash
# Checks that checkpoints that heed 0.1.0 wrote go on working: transformer-0.1.0.h5 holds a model, and
# transformer-0.1.0-resumable.h5 a training that ended after 40 updates. Both were made at commit 70490b4 from the text
# below, with the options below.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
model=$HEED_SOURCE/tests/checkpoint/reference/transformer-0.1.0.h5

printf '%s\n' "a red house" "a blue house" "the red car" "the blue car" "a small dog" "the small house" "a red dog" \
  "the blue dog" >en
printf '%s\n' "une maison rouge" "une maison bleue" "la voiture rouge" "la voiture bleue" "un petit chien" \
  "la petite maison" "un chien rouge" "le chien bleu" >fr
cat en fr | "$HEED_BIN/build-vocab" -q --type bpe -s 60 >vocab 2>/dev/null || fail "build-vocab failed"

# The scores of the model, as heed 0.1.0 printed them; other CPUs may add the terms of a sum in another order.
scores='-1.6580 -1.9531 -2.0318 -2.5277 -3.0985 -2.5716 -1.9248 -2.9337'
"$HEED_BIN/translate" -q -m "$model" --score fr <en >scores || fail "translate --score: exit $?"
near=$(paste -d ' ' scores <(tr ' ' '\n' <<<"$scores") | awk '($1 - $2)^2 < 1e-6' | wc -l)
[ "$near" -eq 8 ] || fail "scores: $(tr '\n' ' ' <scores)instead of $scores"
expect 0 'maison rouge' '' "$HEED_BIN/translate" -q -m "$model" <<<'a red house'
[ "$("$HEED_BIN/tokenize" -q -m "$model" <<<'a red house')" != '' ] || fail "tokenize -m writes nothing"

# The training goes on from update 40 with the options that it had.
options=(-t en fr -v vocab -j 1 --precision float32 --task transformer-tiny --dim-emb 8 --transformer-heads 2
  --transformer-dim-ffn 8 --enc-depth 1 --dec-depth 1 --tied-embeddings-all --dropout 0.1 --mini-batch-words 30
  --optimizer adam --learn-rate 0.02 --lr-warmup 4)
cp "${model%.h5}-resumable.h5" m.h5
expect 0 '' '' "$HEED_BIN/train" -q "${options[@]}" -m m.h5 --after 40u
cmp -s "${model%.h5}-resumable.h5" m.h5 || fail "a training that had ended has changed its file"
expect 0 '' '*m.h5: goes on after update 40*' "$HEED_BIN/train" "${options[@]}" -m m.h5 --after 80u
grep -q warning stderr && fail "going on warns: $(cat stderr)"
total() { "$HEED_BIN/translate" -q -m "$1" --score fr <en | awk '{ sum += $1 } END { print int(1000 * sum) }'; }
[ "$(total m.h5)" -gt "$(total "$model")" ] || fail "40 more updates made the model no better: $(total m.h5)"
expect 0 '' '' "$HEED_BIN/train" -q --average "$model" m.h5 -o average.h5
finish
