#!/usr/bin/env bash
# Checks that a training that was killed at any moment and started again ends with the parameters of an uninterrupted
# training, bit for bit, also where each part of it had another number of threads.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
train=$HEED_BIN/train
data=$HEED_SOURCE/data
command -v h5diff >/dev/null || { echo "no h5diff (hdf5-tools)"; exit 77; }

head -n 800 "$data/train.en" >train.en
head -n 800 "$data/train.fr" >train.fr
head -n 20 "$data/valid.en" >valid.en
head -n 20 "$data/valid.fr" >valid.fr
cat train.en train.fr | "$HEED_BIN/build-vocab" -q --type bpe -s 500 >vocab || fail "build-vocab failed"

# Options that give the training every kind of state: exponential smoothing, gradient accumulation, a schedule with an
# end, kept models, and an average at the end.
options=(-q -t train.en train.fr --valid-sets valid.en valid.fr -v vocab --task transformer-tiny --enc-depth 1
  --dec-depth 1 --dim-emb 32 --transformer-dim-ffn 64 --mini-batch-words 300 --optimizer-delay 2 --dropout 0.2
  --optimizer adamw --weight-decay 0.01 --lr-schedule cosine --lr-warmup 10 --exponential-smoothing 0.01 --after 12e
  --valid-freq 1e --save-freq 5u --keep-best --keep-last 2 --average-last 2)

mkdir whole killed stopped
"$train" "${options[@]}" -j 2 -m whole/m.h5 || fail "the uninterrupted run: exit $?"

same() {
  same_parameters whole/m.h5 "$1/m.h5" "$1"
  same_parameters whole/m.best-bleu.h5 "$1/m.best-bleu.h5" "$1, best"
  diff <(cd whole && ls -A) <(cd "$1" && ls -A) || fail "$1: other files"
}

# kill -9 at moments that do not depend on what the program is doing.
kills=0 threads=0
for delay in 0.12 0.08 0.30 0.17 0.47 0.21 0.63 0.39 0.55 0.71; do
  threads=$((threads % 3 + 1))
  "$train" "${options[@]}" -j "$threads" -m killed/m.h5 &
  sleep "$delay"
  kill -9 $! 2>/dev/null && kills=$((kills + 1))
  wait $! 2>/dev/null && break
done
[ "$kills" -gt 1 ] || fail "it ended before it could be killed twice"
# Files that kill -9 can leave behind; the next start removes them.
touch killed/.m.h5.12.tmp killed/.m.best-bleu.h5.12.tmp killed/.m.update-5.h5.12.tmp killed/.m.h5.lock
"$train" "${options[@]}" -m killed/m.h5 || fail "after kill -9: exit $?"
same killed

# After SIGTERM the state is saved, and the exit code 75 says that the training can be continued. The signal comes a little
# later each time: on a fast machine, the whole training takes 0.4 s, and on a slow one the program still starts then.
interruptions=0
for hundredths in $(seq 5 5 150); do
  "$train" "${options[@]}" -m stopped/m.h5 &
  sleep "$((hundredths / 100)).$(printf %02d $((hundredths % 100)))"
  kill -TERM $! 2>/dev/null
  wait $!
  code=$?
  [ "$code" -eq 0 ] && break
  if [ "$code" -eq 75 ]; then interruptions=$((interruptions + 1)); elif [ "$code" -ne 143 ]; then fail "SIGTERM: exit $code"; fi
done
[ "$interruptions" -gt 0 ] || fail "never interrupted"
[ "$code" -eq 0 ] || "$train" "${options[@]}" -m stopped/m.h5 || fail "after SIGTERM: exit $?"
same stopped

# A finished training does nothing when it is started again.
expect 0 '' 'train: killed/m.h5: training is finished already: --after 12e is reached' "$train" "${options[@]}" --no-quiet -m killed/m.h5

finish
