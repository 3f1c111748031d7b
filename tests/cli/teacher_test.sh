#!/usr/bin/env bash
# Checks trainings that also learn what other models predict (train --teacher).
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
train=$HEED_BIN/train
command -v h5diff >/dev/null || { echo "no h5diff (hdf5-tools)"; exit 77; }
head -n 300 "$HEED_SOURCE/data/train.en" >en
head -n 300 "$HEED_SOURCE/data/train.fr" >fr
cat en fr | "$HEED_BIN/build-vocab" -q --type bpe -s 300 >vocab || fail "build-vocab failed"
cat en fr | "$HEED_BIN/build-vocab" -q --type bpe -s 200 >other || fail "build-vocab failed"
common=(-t en fr -v vocab --mini-batch-words 500 --lr-warmup 1 --learn-rate 0.003)
small=(--task transformer-tiny --enc-depth 1 --dec-depth 1 --dim-emb 16 --transformer-dim-ffn 16)
"$train" -q "${common[@]}" "${small[@]}" -m teacher.h5 --after 3e || fail "a teacher: exit $?"
"$train" -q "${common[@]}" --task rnn-attention --enc-depth 1 --dec-depth 1 --dim-emb 16 --dim-rnn 16 -m rnn.h5 --after 2e || fail "rnn-attention: exit $?"

# Teachers of two architectures; in two parts and with another number of threads, the parameters have the same bits.
taught=("${common[@]}" "${small[@]}" --teacher teacher.h5 rnn.h5)
expect 0 '' '*finished: --after 2e is reached' "$train" "${taught[@]}" -m whole.h5 -j 2 --after 2e
"$train" -q "${taught[@]}" -m parts.h5 -j 1 --after 1e || fail "the first part: exit $?"
"$train" -q "${taught[@]}" -m parts.h5 -j 2 --after 2e || fail "the second part: exit $?"
same_parameters whole.h5 parts.h5 "a training in two parts"
"$train" -q "${common[@]}" "${small[@]}" -m plain.h5 -j 2 --after 2e || fail "without teachers: exit $?"
other_parameters whole.h5 plain.h5 "the teachers change nothing"
"$train" -q "${taught[@]}" --teacher-weight 0 -m zero.h5 -j 2 --after 2e || fail "--teacher-weight 0: exit $?"
same_parameters zero.h5 plain.h5 "teachers without weight"
"$train" -q "${taught[@]}" --teacher-weight 1 -m one.h5 -j 2 --after 2e || fail "--teacher-weight 1: exit $?"
other_parameters whole.h5 one.h5 "--teacher-weight changes nothing"
expect 0 '*measured updates*' '' "$train" "${taught[@]}" -m x.h5 --after 9e --dry-run
memory_of() { "$train" "$@" -j 1 -m x.h5 --after 9e --check 2>&1 | sed -n 's/^ *memory *\([0-9.]*\) MB.*/\1/p'; }
taught_memory=$(memory_of "${taught[@]}") plain_memory=$(memory_of "${common[@]}" "${small[@]}")
awk "BEGIN {exit !(${taught_memory:-0} > ${plain_memory:-1000})}" || fail "--check: $taught_memory MB with teachers, $plain_memory MB without"
expect 0 '' 'train: warning: --teacher-weight was 0.5 and is now 0.7: *' "$train" -q "${taught[@]}" --teacher-weight 0.7 -m parts.h5 --after 3e

# Models that predict all positions at once teach each other.
nat=("${common[@]}" --task nat --enc-depth 1 --dec-depth 1 --dim-emb 16 --transformer-heads 2 --transformer-dim-ffn 16 -q)
"$train" "${nat[@]}" -m nat.h5 --after 1e || fail "nat: exit $?"
"$train" "${nat[@]}" -m student.h5 --after 2e --teacher nat.h5 || fail "a student of nat: exit $?"

# What does not fit is named before anything is trained.
expect 1 '' 'train: nat.h5: cannot be a teacher: it predicts all positions at once, the model to be trained does not' \
  "$train" -q "${common[@]}" "${small[@]}" --teacher nat.h5 -m x.h5
expect 1 '' 'train: nat.h5: cannot be a teacher: its targets have a length that it predicts, those of the model to be trained do not (see --fixed-length)' \
  "$train" "${nat[@]}" --fixed-length 256 --teacher nat.h5 -m x.h5
expect 1 '' 'train: teacher.h5: cannot be a teacher: the source vocabulary has * there, * here' \
  "$train" -q -t en fr -v other "${small[@]}" --teacher teacher.h5 -m x.h5
expect 1 '' 'train: missing.h5: cannot open: No such file or directory' "$train" -q "${taught[@]}" --teacher missing.h5 -m x.h5
expect 1 '' 'train: vocab: is a vocabulary, not a checkpoint *' "$train" -q "${common[@]}" "${small[@]}" --teacher vocab -m x.h5
expect 0 '*--teacher A.h5... *' '' "$train" --help
expect 2 '' 'train: --teacher-weight: needs models that teach (--teacher A.h5)' \
  "$train" "${common[@]}" "${small[@]}" --teacher-weight 0.3 -m x.h5
expect 2 '' 'train: --teacher-weight*1.5*' "$train" "${taught[@]}" --teacher-weight 1.5 -m x.h5
expect 2 '' 'train: --r-drop and --teacher exclude each other: *' "$train" "${taught[@]}" --r-drop -m x.h5
expect 2 '*' 'train: --cluster: the speed of a training with --teacher is measured, not predicted, so that nothing is known of other machines (see --dry-run in train(1))' \
  "$train" "${taught[@]}" -m x.h5 --after 9e --dry-run --cluster nodes=4,bandwidth=25G,latency=5us
[ -e x.h5 ] && fail "a training that was refused wrote its model"
finish
