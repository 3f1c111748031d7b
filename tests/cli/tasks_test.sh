#!/usr/bin/env bash
# Checks that every task of train can be trained, resumed, averaged, translated with, scored and put into an ensemble,
# and that what a task cannot do is an error that says so.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
train=$HEED_BIN/train translate=$HEED_BIN/translate inspect=$HEED_BIN/inspect-attention
data=$HEED_SOURCE/data

head -n 300 "$data/train.en" >train.en
head -n 300 "$data/train.fr" >train.fr
head -n 5 "$data/test.en" >source
head -n 5 "$data/test.fr" >target
cat train.en train.fr | "$HEED_BIN/build-vocab" -q --type bpe -s 200 >vocab || fail "build-vocab failed"
options=(-q -t train.en train.fr -v vocab -j 2 --precision float32 --mini-batch-words 500 --learn-rate 0.003)

# Prints the options that make a model of a task small.
small() {
  case $1 in
    transformer-*) echo --dim-emb 16 --transformer-heads 2 --transformer-dim-ffn 16 --enc-depth 1 --dec-depth 1 ;;
    rnn*) echo --dim-emb 16 --dim-rnn 16 --enc-depth 1 --dec-depth 1 ;;
    nat) echo --dim-emb 16 --transformer-heads 2 --transformer-dim-ffn 16 --enc-depth 1 --dec-depth 1 ;;
  esac
}

# images_test.sh tests the tasks that read images.
tasks=$("$train" --help | sed -nE 's/^ +--task ([^ ]+).*/\1/p' | tr '|' '\n' | grep -vE '^(vit|swin)' | tr '\n' ' ')
[[ $tasks == *' rnn rnn-attention'* ]] || fail "tasks: $tasks"
models=()
for task in $tasks; do
  read -ra sizes <<<"$(small "$task")"
  [ "${#sizes[@]}" -gt 0 ] || fail "$task: this test does not know how to make it small"
  "$train" "${options[@]}" --task "$task" "${sizes[@]}" -m whole.h5 --after 6u || fail "$task: exit $?"
  "$train" "${options[@]}" --task "$task" "${sizes[@]}" -m "$task.h5" --after 3u || fail "$task: exit $?"
  cp "$task.h5" third.h5
  "$train" "${options[@]}" --task "$task" "${sizes[@]}" -m "$task.h5" --after 6u || fail "$task: resuming: exit $?"
  for model in whole "$task"; do "$translate" -q -m "$model.h5" --score target <source >"scores.$model"; done
  cmp -s scores.whole "scores.$task" || fail "$task: a resumed training ends with another model"
  rm whole.h5
  expect 0 '' '' "$train" -q --average third.h5 "$task.h5" -o average.h5
  for precision in float32 bfloat16 int8; do
    [ "$("$translate" -q -m "$task.h5" --precision "$precision" --max-output-length 20 <source | wc -l)" -eq 5 ] ||
      fail "$task: $precision: not five lines"
  done
  [[ $("$train" "${options[@]}" --task "$task" "${sizes[@]}" -m x.h5 --after 1e --dry-run) == *'speed expected'* ]] ||
    fail "$task: --dry-run predicts no speed"
  "$translate" -m "$task.h5" --stats <source >/dev/null 2>stats || fail "$task: --stats: exit $?"
  grep -q '^translate: expected ' stats || grep -q 'no prediction for this kind of model' stats || fail "$task: $(cat stats)"
  [ "$task" = nat ] || models+=("$task.h5")
done
[ "$("$translate" -q -m "${models[@]}" --max-output-length 20 <source | wc -l)" -eq 5 ] || fail "an ensemble of all tasks"

[ "$("$translate" -q -m nat.h5 nat.h5 --max-output-length 20 <source | wc -l)" -eq 5 ] || fail "an ensemble of models that predict all at once"

# The checkpoint says what it is, and resumes only as what it is.
expect 1 '' "train: rnn.h5: cannot go on with this training: the model's architecture is rnn there, rnn-attention here (*" \
  "$train" "${options[@]}" --task rnn-attention --dim-emb 16 -m rnn.h5 --after 9u
expect 1 '' "train: rnn.h5: cannot be averaged with transformer-tiny.h5: the model's architecture is rnn there, transformer here*" "$train" -q --average transformer-tiny.h5 rnn.h5 -o x.h5

# Attention: only where a model has it.
expect 0 '*cross attention, layer 1*' '' "$inspect" -q -m rnn-attention.h5 -i source --format heatmap --ascii
expect 2 '' 'inspect-attention: the model has no attention, so that there is nothing to show (*' "$inspect" -q -m rnn.h5 -i source
expect 2 '' 'inspect-attention: --kind encoder: the model has no such attention (it has cross)' \
  "$inspect" -q -m rnn-attention.h5 -i source --kind encoder
expect 0 '*||| *' '' "$translate" -q -m rnn-attention.h5 -i source --alignment
expect 2 '' 'translate: --alignment: rnn.h5 is a model of the task rnn, which has no attention to the source' \
  "$translate" -q -m rnn.h5 -i source --alignment

# A Transformer of another kind.
"$train" "${options[@]}" --task transformer-tiny --dim-emb 16 --transformer-heads 2 --enc-depth 1 --dec-depth 1 --attention additive \
  --transformer-normalization rms --transformer-ffn-activation swiglu -m kind.h5 --after 3u || fail "additive: exit $?"
expect 0 '*||| *' '' "$translate" -q -m kind.h5 -i source --alignment
expect 0 '*decoder attention, layer 1*' '' "$inspect" -q -m kind.h5 -i source --kind decoder --format heatmap --ascii

# A validation translates no more than a model with a limited number of positions can write, as translate does.
for kind in '' '--transformer-decoder-autoreg none'; do
  # shellcheck disable=SC2086  # $kind is no option or two words
  expect 0 '' '' "$train" "${options[@]}" $kind --task transformer-tiny --dim-emb 16 --transformer-heads 2 --enc-depth 1 --dec-depth 1 \
    --transformer-positions learned --max-positions 20 --max-length 20 --valid-sets source target --after 4u -m positions.h5
  rm -f positions.h5
done

# Options belong to tasks.
expect 0 '*--rnn-context init|every-step*' '' "$train" --task rnn --help
expect 0 '*--attention dot|additive*' '' "$train" --help --task rnn-attention
expect 2 '' 'train: --rnn-context: is an option of --task rnn, not of transformer-base (train --task rnn --help lists its options)' \
  "$train" --rnn-context init
expect 2 '' 'train: --transformer-heads: is an option of --task transformer-tiny, *, not of rnn (*' \
  "$train" --task rnn --transformer-heads 4
expect 2 '' 'train: --transformer-positions alibi needs --attention dot: additive scores have no terms of positions' \
  "$train" "${options[@]}" --attention additive --transformer-positions alibi -m x.h5
expect 2 '' 'train: --dim-emb 12 with --transformer-heads 4 gives heads of the odd width 3: rotary positions rotate pairs of columns' \
  "$train" "${options[@]}" --dim-emb 12 --transformer-heads 4 --transformer-positions rotary -m x.h5
expect 2 '' 'train: --max-positions: needs --transformer-positions learned' \
  "$train" "${options[@]}" --transformer-positions rotary --max-positions 9 -m x.h5
expect 2 '' 'train: --dim-rnn 7 is odd: *' "$train" "${options[@]}" --task rnn --dim-rnn 7 -m x.h5
finish
