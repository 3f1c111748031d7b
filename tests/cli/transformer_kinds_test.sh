#!/usr/bin/env bash
# Checks the kinds of Transformers that options of train choose: training, saving, resuming, translating with every
# precision, ensembles, draft models, predicted costs, and what the tools say when something does not fit.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
train=$HEED_BIN/train
translate=$HEED_BIN/translate
data=$HEED_SOURCE/data
command -v h5diff >/dev/null || { echo "no h5diff (hdf5-tools)"; exit 77; }

head -n 200 "$data/train.en" >train.en
head -n 200 "$data/train.fr" >train.fr
head -n 12 "$data/test.en" >test.en
cat train.en train.fr | "$HEED_BIN/build-vocab" -q --type bpe -s 300 >vocab || fail "build-vocab failed"

# run MODEL UPDATES OPTION...: trains a model
run() {
  local model=$1 updates=$2
  shift 2
  "$train" -q -t train.en train.fr -v vocab -j 1 --precision float32 --task transformer-tiny --enc-depth 2 --dec-depth 2 --dim-emb 16 \
    --transformer-heads 2 --transformer-dim-ffn 16 --mini-batch-words 300 --lr-warmup 0 --after "${updates}u" -m "$model" "$@"
}

run plain.h5 4 || fail "plain: exit $?"
# Each line: the name of a file, and options.
while read -r name options; do
  # shellcheck disable=SC2086 # several options in one word
  {
    run "$name.h5" 4 $options || fail "$name: exit $?"
    run resumed.h5 2 $options || fail "$name, first half: exit $?"
    run resumed.h5 4 $options || fail "$name, second half: exit $?"
  }
  h5diff "$name.h5" resumed.h5 /parameters /parameters >difference || fail "$name resumed: $(head -n 3 difference)"
  rm resumed.h5
  for precision in float32 bfloat16 int8; do
    "$translate" -q -m "$name.h5" --precision $precision --max-output-length 9 <test.en >together || fail "$name $precision: exit $?"
    while read -r line; do
      "$translate" -q -m "$name.h5" --precision $precision --max-output-length 9 <<<"$line"
    done <test.en >alone
    cmp -s alone together || fail "$name $precision: a line depends on its neighbours"
  done
  "$translate" -q -m "$name.h5" plain.h5 -j 1 --max-output-length 9 <test.en >out || fail "$name in an ensemble: exit $?"
  [ "$(wc -l <out)" -eq 12 ] || fail "$name in an ensemble: $(wc -l <out) lines"
  "$translate" -q -m plain.h5 -b 1 --max-output-length 9 <test.en >expected
  "$translate" -q -m plain.h5 -b 1 --max-output-length 9 --draft-model "$name.h5" -j 1 --mini-batch 1 <test.en >drafted ||
    fail "$name as a draft model: exit $?"
  cmp -s expected drafted || fail "$name as a draft model changes translations"
  "$translate" -m "$name.h5" --stats --max-output-length 9 <test.en >out 2>stderr || fail "$name --stats: exit $?"
  grep -q 'expected .* pieces/s' stderr || fail "$name --stats predicts nothing: $(cat stderr)"
  grep -qi 'nan\|inf ' stderr && fail "$name --stats: $(cat stderr)"
  # shellcheck disable=SC2086
  run dry.h5 4 $options --dry-run >out 2>&1 || fail "$name --dry-run: exit $?"
  [ -e dry.h5 ] && fail "$name --dry-run wrote a model"
done <<'END'
layerwise --cross-attention layerwise
mix --cross-attention mix --transformer-norm pre
tied --tied-layers 1 1
average --transformer-decoder-autoreg average
aan --transformer-decoder-autoreg average --transformer-dim-aan 24
rnn --transformer-decoder-autoreg rnn --dropout 0.2
END

expect 0 '*' '' "$HEED_BIN/inspect-attention" -q -m rnn.h5 -i test.en --kind cross --format tsv
expect 2 '' '*--kind decoder: the model has no such attention (it has encoder, cross)*' \
  "$HEED_BIN/inspect-attention" -q -m rnn.h5 -i test.en --kind decoder --format tsv

expect 2 '' '*--cross-attention layerwise needs as many encoder layers as decoder layers, but --enc-depth is 2 and --dec-depth 1 *' \
  run new.h5 4 --cross-attention layerwise --dec-depth 1
expect 2 '' '*--tied-layers has 3 numbers, but --enc-depth is 2 and --dec-depth 2 *' run new.h5 4 --tied-layers 1 2 2
expect 2 '' '*--tied-layers: layer 1 cannot have the parameters of layer 2 *' run new.h5 4 --tied-layers 2 2
expect 2 '' "*--transformer-decoder-autoreg 'lstm': must be one of self-attention, average, rnn*" run new.h5 4 --transformer-decoder-autoreg lstm
expect 2 '' '*--transformer-dim-aan*--transformer-decoder-autoreg average*' run new.h5 4 --transformer-dim-aan 24
# The model of a resumed training cannot become another one.
expect 1 '' '*--transformer-decoder-autoreg is rnn there, average here*' run rnn.h5 8 --dropout 0.2 --transformer-decoder-autoreg average
finish
