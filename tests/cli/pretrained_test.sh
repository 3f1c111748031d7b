#!/usr/bin/env bash
# Checks trainings that begin with the parameters of another model (train --pretrained-model).
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
train=$HEED_BIN/train
command -v h5diff >/dev/null || { echo "no h5diff (hdf5-tools)"; exit 77; }
head -n 300 "$HEED_SOURCE/data/train.en" >en
head -n 300 "$HEED_SOURCE/data/train.fr" >fr
cat en fr | "$HEED_BIN/build-vocab" -q --type bpe -s 300 >vocab || fail "build-vocab failed"
"$HEED_BIN/build-vocab" -q --type bpe -s 300 fr >other || fail "build-vocab failed"
options=(--task transformer-tiny --enc-depth 1 --dec-depth 1 --dim-emb 16 --transformer-dim-ffn 16 --mini-batch-words 500 --lr-warmup 2
  --learn-rate 0.003 -j 2)
"$train" -q "${options[@]}" -t en fr -v vocab -m general.h5 --after 2e || fail "the general model: exit $?"
cp general.h5 before.h5

# One update at a learning rate that moves nothing: the parameters are those of the model.
expect 0 '' '*train: still.h5: begins with the parameters of general.h5*finished: --after 1u is reached' \
  "$train" "${options[@]}" -t en fr -v vocab --pretrained-model general.h5 --dropout 0.3 --learn-rate 1e-30 -m still.h5 --after 1u
same_parameters general.h5 still.h5 "before the first update"

# A training on another text, whole and in parts, where the model is read at the beginning only.
head -n 100 en >mine.en
head -n 100 fr >mine.fr
adapt=("${options[@]}" -q -t mine.en mine.fr -v vocab --pretrained-model general.h5 --dropout 0.2)
"$train" "${adapt[@]}" -m whole.h5 --after 12u || fail "the whole training: exit $?"
"$train" "${adapt[@]}" -m parts.h5 --after 6u || fail "the first part: exit $?"
same_parameters general.h5 before.h5 "the model that was given"
mv general.h5 away.h5
expect 0 '' '' "$train" "${options[@]}" -q -t mine.en mine.fr -v vocab --dropout 0.2 -m parts.h5 --after 9u
expect 0 '' '' "$train" "${adapt[@]}" -m parts.h5 --after 12u
mv away.h5 general.h5
same_parameters whole.h5 parts.h5 "a training in two parts"
"$train" "${adapt[@]}" --pretrained-model before.h5 -m parts.h5 --after 12u --learn-rate 1e-30 >/dev/null 2>err
grep -q 'warning: --pretrained-model before.h5 has no effect: the training in parts.h5 has begun with general.h5 (name another file with -m ' err ||
  fail "another model: $(cat err)"
"$train" -q "${options[@]}" -t mine.en mine.fr -v vocab --dropout 0.2 -m fresh.h5 --after 12u || fail "without the model: exit $?"
other_parameters fresh.h5 whole.h5 "--pretrained-model changes nothing"
"$train" "${adapt[@]}" -m fresh.h5 --after 13u >/dev/null 2>err || fail "a model for a training that has begun: exit $?"
grep -q 'warning: --pretrained-model general.h5 has no effect: the training in fresh.h5 has begun without a model ' err || fail "begun without: $(cat err)"
grep -q 'differ from that of an uninterrupted run' err && fail "a model that is not read changes the result: $(cat err)"

# Trainings that began with one model can be averaged, also those with another dropout.
expect 0 '' '' "$train" -q --average whole.h5 still.h5 -o average.h5

# What does not fit is named before anything is trained.
advice=' (give the vocabularies and the options of the model with which it was trained)'
expect 1 '' "train: general.h5: cannot begin this training: --dim-emb is 16 there, 32 here$advice" \
  "$train" "${adapt[@]}" --dim-emb 32 -m x.h5
expect 1 '' "train: general.h5: cannot begin this training: --transformer-heads is * there, 2 here$advice" \
  "$train" "${adapt[@]}" --transformer-heads 2 -m x.h5
expect 1 '' "train: general.h5: cannot begin this training: the target vocabulary differs: id * is * there, * here$advice" "$train" "${adapt[@]}" -v other -m x.h5
expect 1 '' "train: general.h5: cannot begin this training: the model's architecture is transformer there, rnn here$advice" \
  "$train" -q -t mine.en mine.fr -v vocab --task rnn --pretrained-model general.h5 -m x.h5
expect 1 '' "train: general.h5: cannot begin this training: --dim-emb is 16 there, 32 here$advice" \
  "$train" "${adapt[@]}" --dim-emb 32 -m x.h5 --dry-run
expect 1 '' 'train: missing.h5: cannot open: No such file or directory*' "$train" "${adapt[@]}" --pretrained-model missing.h5 -m x.h5
expect 1 '' 'train: en: is not *' "$train" "${adapt[@]}" --pretrained-model en -m x.h5
head -c 20000 general.h5 >cut.h5
expect 1 '' 'train: cut.h5: *' "$train" "${adapt[@]}" --pretrained-model cut.h5 -m x.h5
expect 2 '' 'train: --pretrained-model: has no use with --average, which trains nothing' \
  "$train" --average general.h5 -o x.h5 --pretrained-model general.h5
[ -e x.h5 ] && fail "a training that was refused wrote its model"
expect 2 '' 'train: unknown option --finetune-from-model: did you mean --pretrained-model? (fairseq)' "$train" --finetune-from-model general.h5
finish
