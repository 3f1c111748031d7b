#!/usr/bin/env bash
# Tests models that predict all pieces of a translation at once (train --task nat): that they learn, with a predicted
# and with a fixed length; that threads change no bit; and what options belong to them.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
train=$HEED_BIN/train translate=$HEED_BIN/translate inspect=$HEED_BIN/inspect-attention

# A language of 20 words, each with one translation; one in five words is left out in the translation.
awk 'BEGIN { srand(7); for (i = 0; i < 3000; ++i) { s = t = ""; n = 2 + int(rand() * 7)
  links = ""; k = 0
  for (j = 0; j < n; ++j) { w = int(rand() * 20); s = s " a" w; if (w % 5) { t = t " b" w; links = links " " j "-" k++ } }
  if (t != "") { print substr(s, 2) > "source"; print substr(t, 2) > "target"; print substr(links, 2) > "links" } } }'
head -n 2500 source >train.a
head -n 2500 target >train.b
head -n 2500 links >train.links
tail -n 100 source >test.a
tail -n 100 target >test.b
cat source target | "$HEED_BIN/build-vocab" -q --type words --mode words -o vocab || fail "build-vocab failed"
options=(-q -t train.a train.b -v vocab --task transformer-tiny --transformer-decoder-autoreg none --enc-depth 1 --dec-depth 2 --dim-emb 64
  --tied-embeddings-all --dropout 0.1 --mini-batch-words 800 --precision float32)
learn=(--learn-rate 0.004 --lr-warmup 80 --after 400u)

"$train" "${options[@]}" "${learn[@]}" -j 2 -m nat.h5 || fail "train: exit $?"
"$translate" -q -m nat.h5 <test.a >found || fail "translate: exit $?"
right=$(paste found test.b | awk -F '\t' '$1 == $2' | wc -l)
[ "$right" -ge 90 ] || fail "only $right of 100 translations are right"
"$train" "${options[@]}" "${learn[@]}" -j 2 -m fixed.h5 --fixed-length 10 --max-length 10 || fail "train --fixed-length: exit $?"
"$translate" -q -m fixed.h5 <test.a >found || fail "translate with a fixed length: exit $?"
right=$(paste found test.b | awk -F '\t' '$1 == $2' | wc -l)
[ "$right" -ge 80 ] || fail "with a fixed length, only $right of 100 translations are right"

# One thread, and batches of one line, give the same bytes.
"$translate" -q -m nat.h5 -j 2 --n-best 3 --word-scores <test.a >two || fail "translate -j 2: exit $?"
"$translate" -q -m nat.h5 -j 1 --n-best 3 --word-scores --mini-batch 1 <test.a >one || fail "translate -j 1: exit $?"
cmp one two || fail "the batch changes the output"
for threads in 1 2; do "$train" "${options[@]}" --after 10u -j $threads -m threads$threads.h5 || fail "train -j $threads: exit $?"; done
for threads in 1 2; do "$translate" -q -m threads$threads.h5 --score test.b <test.a >scores$threads; done
cmp scores1 scores2 || fail "the number of threads changes the training"

# The log-probability of </s> is that of the length: it is near 0 where the length is certain.
expect 0 'b1 b2 ||| *' '' "$translate" -q -m nat.h5 --word-scores <<<'a1 a2'
[ "$("$translate" -q -m nat.h5 --score <(echo b1 b2) --word-scores <<<'a1 a2' | awk '{ print ($NF > -0.5) }')" = 1 ] || fail "the length is not certain"
[ "$("$translate" -q -m nat.h5 --score <(echo b1 b2 b3 b4) --word-scores <<<'a1 a2' | awk '{ print ($NF < -2) }')" = 1 ] || fail "another length is likely"

# With a fixed length, too, the score of a translation of one iteration is that of the tokens that were masked together.
"$translate" -q -m fixed.h5 --iterations 1 --n-best 1 <test.a >found || fail "translate --iterations 1: exit $?"
awk -F ' \\|\\|\\| ' '{ print $2 }' found >references
"$translate" -q -m fixed.h5 --score references <test.a >scores || fail "translate --score with a fixed length: exit $?"
awk -F ' \\|\\|\\| ' '{ print $NF }' found | paste - scores |
  awk -F '\t' '{ n += ($1 - $2) ^ 2 > 1e-4 } END { exit n > 0 }' || fail "a score with a fixed length: $(head -n 2 found scores)"

# The tokens that the decoder reads are those that it produces; the decoder looks ahead.
expect 0 '*decoder attention, layer 2*' '' "$inspect" -q -m nat.h5 --kind decoder --format heatmap --ascii <<<'a1 a2 a3'
"$inspect" -q -m nat.h5 --kind decoder --head all -f jsonl <<<'a1 a2 a3' >json || fail "inspect-attention: exit $?"
grep -q '"b1"' json || fail "inspect-attention shows no target: $(cat json)"
grep -q '<s>' json && fail "inspect-attention says that the decoder reads <s>"
# Which words the attention of this model links depends on the order in which the CPU adds, unless the links are taught.
"$train" "${options[@]}" "${learn[@]}" -j 2 -m linked.h5 --guided-alignment train.links || fail "train --guided-alignment: exit $?"
expect 0 '*||| 0-0 1-1*' '' "$translate" -q -m linked.h5 --alignment <<<'a1 a2'
expect 2 '' 'inspect-attention: --beam-size: is for models that predict one position after the other; nat.h5 predicts all at once' \
  "$inspect" -q -m nat.h5 -b 2 -i test.a

# Options that have no use, or contradict each other.
"$train" -q -t train.a train.b -v vocab --task transformer-tiny --dim-emb 16 --enc-depth 1 --dec-depth 1 -m steps.h5 --after 2u || fail "train: exit $?"
expect 2 '' '*--iterations*' "$translate" -m nat.h5 --iterations 0
expect 2 '' '*--length-candidates*' "$translate" -m nat.h5 --length-candidates 0
expect 2 '' 'translate: --iterations: is for models that predict all positions at once (train --task nat); steps.h5 predicts one after the other' \
  "$translate" -q -m steps.h5 --iterations 3 -i test.a
for option in '--search sample' '-b 5' '--no-repeat-ngram-size 2' '--repetition-penalty 2' '--coverage-penalty 1'; do
  read -ra words <<<"$option"
  expect 2 '' 'translate: --*: is for models that predict one position after the other; nat.h5 predicts all at once (see --iterations and --length-candidates)' \
    "$translate" -q -m nat.h5 "${words[@]}" -i test.a
done
expect 2 '' 'translate: --draft-model: is for models that predict one position after the other; *' "$translate" -q -m nat.h5 -b 1 --draft-model nat.h5 -i test.a
expect 2 '' 'translate: --n-best 4 is more than the 3 of --length-candidates (raise --length-candidates)' "$translate" -q -m nat.h5 --n-best 4 -i test.a
expect 2 '' 'translate: --n-best 2 is more than the 1 translation of a model with a fixed length' "$translate" -q -m fixed.h5 --n-best 2 -i test.a
expect 2 '' 'translate: --length-candidates: fixed.h5 has a fixed length (train --fixed-length)' "$translate" -q -m fixed.h5 --length-candidates 2 -i test.a
expect 2 '' 'translate: --iterations: has no use with --score, which translates nothing' "$translate" -q -m nat.h5 --iterations 2 --score test.b -i test.a
expect 1 '' 'translate: steps.h5: predicts one position after the other, but the first model predicts all positions at once (give models of one kind)' \
  "$translate" -q -m nat.h5 steps.h5 -i test.a
expect 1 '' 'translate: nat.h5: predicts all positions at once, but the first model predicts all positions at once, with a fixed length of 10 (give models of one kind)' \
  "$translate" -q -m fixed.h5 nat.h5 -i test.a
"$train" "${options[@]}" --after 1u -m longer.h5 --fixed-length 12 --max-length 10 || fail "train --fixed-length 12: exit $?"
expect 1 '' 'translate: longer.h5: predicts all positions at once, with a fixed length of 12, but the first model predicts all positions at once, with a fixed length of 10 (give models of one kind)' \
  "$translate" -q -m fixed.h5 longer.h5 -i test.a
expect 1 '' 'translate: nat.h5: predicts all positions at once, but the first model predicts one position after the other (*' \
  "$translate" -q -m steps.h5 -b 1 --draft-model nat.h5 -i test.a
expect 2 '' 'train: --length-range: needs --transformer-decoder-autoreg none (as --task nat has it)' \
  "$train" -q -t train.a train.b -v vocab --task transformer-tiny --length-range 3 -m x.h5
expect 2 '' 'train: --length-range: needs predicted lengths (--fixed-length 0)' "$train" "${options[@]}" --length-range 3 --fixed-length 30 -m x.h5
expect 2 '' 'train: --max-length 256 is more than the 10 positions of the model (lower --max-length, or raise --max-positions or --fixed-length)' \
  "$train" "${options[@]}" --fixed-length 10 -m x.h5
expect 1 '' '*--fixed-length is 10 there, 12 here*' "$train" "${options[@]}" --fixed-length 12 --max-length 10 "${learn[@]}" -m fixed.h5
finish
