#!/usr/bin/env bash
# Checks training by several processes under mpirun: the same bytes for any number of ranks and threads, resuming with
# another number of them, signals, killed ranks, and errors that are told once.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
train=$HEED_BIN/train
data=$HEED_SOURCE/data
command -v h5diff >/dev/null || { echo "no h5diff (hdf5-tools)"; exit 77; }
source "$HEED_SOURCE/tests/cli/mpi.sh"
export -f ranks

head -n 500 "$data/train.en" >train.en
head -n 500 "$data/train.fr" >train.fr
head -n 70 "$data/valid.en" >valid.en
head -n 70 "$data/valid.fr" >valid.fr
cat train.en train.fr | "$HEED_BIN/build-vocab" -q --type bpe -s 400 >vocab || fail "build-vocab failed"
options=(--valid-sets valid.en valid.fr -v vocab --task transformer-tiny --enc-depth 1 --dec-depth 1 --dim-emb 32 --transformer-dim-ffn 64
  --mini-batch-words 1200 --optimizer-delay 2 --dropout 0.2 --lr-warmup 0 --exponential-smoothing 0.01)
files=(-t train.en train.fr)

same() {
  local group
  for group in parameters training/first_moment training/second_moment training/trained; do
    h5diff whole.h5 "$1" "$group" "$group" >difference || fail "$1: $group: $(head -n 5 difference)"
  done
}

"$train" -q "${files[@]}" "${options[@]}" --valid-freq 2e --keep-best -j 1 --after 4e -m whole.h5 || fail "one process: exit $?"
for shape in '0 2' '2 1' '2 2' '4 1' '3 1'; do
  read -r number threads <<<"$shape"
  ranks "$number" "$train" -q "${files[@]}" "${options[@]}" --valid-freq 2e --keep-best -j "$threads" --after 4e -m shape.h5 || fail "$shape: exit $?"
  same shape.h5
  h5diff whole.best-bleu.h5 shape.best-bleu.h5 /parameters /parameters >/dev/null || fail "$shape: another best model"
  rm shape*.h5
done
paste train.en train.fr | ranks 2 "$train" -q --tsv - "${options[@]}" --valid-freq 2e -j 1 --after 4e -m stdin.h5 || fail "standard input: exit $?"
same stdin.h5
# What is read wrong is told once, though all ranks read it.
printf 'a\tb\nno tabulator\n' >bad.tsv
expect 1 '' 'train: standard input:2: *' bash -c 'ranks 3 "$@" <bad.tsv' bash "$train" -q --tsv - "${options[@]}" -m new.h5

# A text that is on the disks of all ranks. Its blocks have more than 1,000 lines.
window=(-t "$data/train.en" "$data/train.fr" "${options[@]}" --shuffle-window 3000 --tempdir . --mini-batch-words 4000 --after 12u)
"$train" -q "${window[@]}" -j 1 -m window.h5 || fail "a window: exit $?"
for number in 2 3; do
  ranks "$number" "$train" -q "${window[@]}" -j 1 -m window$number.h5 || fail "a window, $number ranks: exit $?"
  h5diff window.h5 window$number.h5 /parameters /parameters >difference || fail "a window, $number ranks: $(head -n 5 difference)"
done

# One rank's log and output.
ranks 3 "$train" "${files[@]}" "${options[@]}" -j 1 --after 1e -m log.h5 --log-format tsv >records 2>log
[ "$(grep -c 'on 3 ranks of 1 thread' log)" -eq 1 ] || fail "the log: $(cat log)"
[ "$(grep -c '^event' records)" -eq 1 ] && [ "$(cut -f 1 records | grep -c finished)" -eq 1 ] || fail "the records: $(cat records)"

# One rank's help.
for option in --help --version --dump-config; do
  "$train" "$option" >alone
  expect 0 '*' '' ranks 3 "$train" "$option"
  cmp stdout alone || fail "$option on three ranks: not what one process writes"
done

# Killed and interrupted on four ranks, continued on two and on one. long: a training that takes long enough to be met;
# mpirun waits for a second before it passes a signal on.
long=("${files[@]}" "${options[@]}" -j 1 --save-freq 10u --valid-freq 50e --after 600e)
"$train" -q "${long[@]}" -m whole.h5 || fail "the long training: exit $?"
interrupt() { # interrupt SIGNAL PROCESS-PATTERN MODEL: prints the exit code of a training that gets the signal
  timeout 60 mpirun -n 4 "$train" "${long[@]}" -m "$3" >out 2>messages &
  local launcher=$!
  for _ in $(seq 300); do
    [ -e "$3" ] && break
    sleep 0.02
  done
  sleep 0.1
  if [ "$2" = launcher ]; then pkill "-$1" -P "$launcher" -x mpirun; else pkill "-$1" -n -f "$train .*-m $3"; fi
  wait "$launcher"
  echo $?
}
code=$(interrupt KILL rank killed.h5)
[ "$code" -ne 0 ] && grep -q 'noticed that process rank [0-3] .*Killed' messages || fail "kill -9 of a rank: exit $code, $(tail -n 5 messages)"
ranks 2 "$train" -q "${long[@]}" -m killed.h5 || fail "after kill -9: exit $?"
same killed.h5
code=$(interrupt TERM rank stopped.h5)
[ "$code" -eq 75 ] || fail "SIGTERM to a rank: exit $code, $(tail -n 5 messages)"
[ "$(grep -c 'interrupted; saved after update' messages)" -eq 1 ] || fail "SIGTERM to a rank: $(cat messages)"
code=$(interrupt TERM launcher other.h5)
[ "$code" -ne 0 ] && [ "$(grep -c 'interrupted; saved after update' messages)" -eq 1 ] || fail "SIGTERM to mpirun: exit $code, $(cat messages)"
for model in stopped.h5 other.h5; do
  "$train" -q "${long[@]}" -m "$model" || fail "$model after SIGTERM: exit $?"
  same "$model"
done

# Errors are told once, and end all.
expect 1 '' 'train: nothing: cannot open: No such file or directory' ranks 3 "$train" -q -t nothing train.fr "${options[@]}" -m new.h5
expect 2 '' 'train: no vocabulary (*' ranks 3 "$train" -t train.en train.fr -m new.h5
expect 2 '' 'train: unknown option --after-all*' ranks 3 "$train" --after-all
expect 1 '' 'train: rank 1 on * trains something else: there, --seed is 2; on rank 0, --seed is 1 (*' \
  ranks 1 "$train" -q "${files[@]}" "${options[@]}" -m new.h5 : -n 1 "$train" -q "${files[@]}" "${options[@]}" --seed 2 -m new.h5
mkdir other
cp train.fr valid.en valid.fr vocab other
tac train.en >other/train.en
expect 1 '' 'train: rank 2 on * trains something else: there, the training text*hash is *' \
  ranks 2 "$train" -q "${files[@]}" "${options[@]}" -m new.h5 : -n 1 -wdir "$PWD/other" "$train" -q "${files[@]}" "${options[@]}" -m new.h5
cp train.en other
head -n 60 valid.en >other/valid.en
head -n 60 valid.fr >other/valid.fr
expect 1 '' 'train: rank 1 on * trains something else: there, the validation text*fingerprint is *' \
  ranks 1 "$train" -q "${files[@]}" "${options[@]}" -m new.h5 : -n 1 -wdir "$PWD/other" "$train" -q "${files[@]}" "${options[@]}" -m new.h5
cp valid.en valid.fr other
cat train.en train.fr | "$HEED_BIN/build-vocab" -q --type bpe -s 300 >other/vocab || fail "build-vocab failed"
# elsewhere OPTION...: trains on two ranks, the second of them in the folder other
elsewhere() {
  ranks 1 "$train" -q "${files[@]}" "${options[@]}" "$@" : -n 1 -wdir "$PWD/other" "$train" -q "${files[@]}" "${options[@]}" "$@"
}
expect 1 '' "train: rank 1 on * trains something else: there, the source vocabulary's checksum is *; on rank 0, the source *" elsewhere -m new.h5
cp vocab other
"$train" -q "${files[@]}" "${options[@]}" --after 1u -m trained.h5 || fail "train: exit $?"
"$train" -q "${files[@]}" "${options[@]}" --after 1u -m other/trained.h5 --seed 2 || fail "train --seed 2: exit $?"
for model in '--pretrained-model trained.h5 -m new.h5' '--teacher trained.h5 -m new.h5' '-m trained.h5'; do
  read -ra words <<<"$model"
  expect 1 '' '*train: rank 1 on * trains something else: there, the checksum of the parameters in trained.h5 is *; on rank 0, the checksum of *' \
    elsewhere "${words[@]}"
done
cp trained.h5 other
for model in '--pretrained-model trained.h5 -m new.h5' '--teacher trained.h5 -m new.h5' '-m trained.h5'; do
  read -ra words <<<"$model"
  expect 0 '' '' elsewhere "${words[@]}" --after 2u
  rm -f new.h5
done
expect 1 '' 'train: rank 1 on * trains something else: there, --valid-freq is 3e; on rank 0, --valid-freq is 1e (*' \
  ranks 1 "$train" -q "${files[@]}" "${options[@]}" -m new.h5 : -n 1 "$train" -q "${files[@]}" "${options[@]}" --valid-freq 3e -m new.h5
expect 2 '' 'train: several processes train together, which read standard input only as --tsv - (give files)' \
  ranks 2 "$train" -q -t - train.fr "${options[@]}" -m new.h5
expect 2 '' 'train: several processes train together, which read standard input only as --tsv - (give files)' \
  ranks 2 "$train" -q "${files[@]}" "${options[@]:5}" -v - -m new.h5
expect 2 '' 'train: --early-stopping needs something to validate on (give --valid-sets)' \
  ranks 2 "$train" -q "${files[@]}" "${options[@]:3}" --early-stopping 2 -m new.h5
# The model is larger than rank 0's files may be, and all that MPI writes is smaller.
limited() { (ulimit -f 16000 && exec "$@"); }
export -f limited
expect 1 '' 'train: new.h5: *cannot write: File too large' ranks 1 bash -c 'limited "$@"' bash "$train" -q "${files[@]}" "${options[@]}" --dim-emb 768 --after 1u -m new.h5 : \
  -n 1 "$train" -q "${files[@]}" "${options[@]}" --dim-emb 768 --after 1u -m new.h5
[ -e new.h5 ] && fail "an error left a model"
ranks 2 "$train" -q --average whole.h5 killed.h5 -o average.h5 || fail "--average: exit $?"
[ -e average.h5 ] || fail "--average wrote nothing"

finish
