#!/usr/bin/env bash
# Checks that programs killed by a signal end by that signal, and leave neither an output file nor a temporary file.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1

head -n 60 "$HEED_SOURCE/data/train.en" >a.en
head -n 60 "$HEED_SOURCE/data/train.fr" >a.fr
cat a.en a.fr | "$HEED_BIN/build-vocab" -q --type bpe -s 110 >vocab || fail "build-vocab failed"
"$HEED_BIN/train" -q -j 1 -t a.en a.fr -v vocab -m m.h5 --task transformer-tiny --enc-depth 1 --dec-depth 1 --dim-emb 16 \
  --transformer-dim-ffn 16 --after 2u || fail "train failed"
mkfifo input

# killed SIGNAL COMMAND...: sends SIGNAL to COMMAND while it waits for input, and checks how it ends. The background
# jobs of a shell ignore SIGINT, therefore the test restores the default.
killed() {
  local signal=$1 number process
  number=$(kill -l "$signal")
  shift
  mkdir out
  env --default-signal=INT "$@" -o out/file <input 2>stderr &
  process=$!
  exec 3>input
  for _ in $(seq 200); do
    [ -n "$(ls -A out)" ] && break
    sleep 0.02
  done
  [ -n "$(ls -A out)" ] || fail "$*: there is no temporary file to be removed"
  kill -"$signal" "$process"
  wait "$process"
  local got=$?
  exec 3>&-
  [ "$got" -eq $((128 + number)) ] || fail "SIG$signal: $*: exit $got ($(cat stderr))"
  [ -z "$(ls -A out)" ] || fail "SIG$signal: $*: leaves $(ls -A out)"
  rm -r out
}
for signal in INT TERM HUP XCPU; do
  killed $signal "$HEED_BIN/tokenize"
  killed $signal "$HEED_BIN/translate" -m m.h5
done
killed TERM "$HEED_BIN/build-vocab"
killed INT "$HEED_BIN/build-vocab"
killed TERM "$HEED_BIN/bleu" a.en
killed INT "$HEED_BIN/bleu" a.en
killed TERM "$HEED_BIN/inspect-attention" -m m.h5
killed INT "$HEED_BIN/inspect-attention" -m m.h5
killed TERM "$HEED_BIN/kernel-regression"
killed INT "$HEED_BIN/kernel-regression"

# With nohup, a program continues when its terminal is closed.
mkdir out
nohup "$HEED_BIN/tokenize" -o out/file <input 2>stderr &
exec 3>input
for _ in $(seq 200); do
  [ -n "$(ls -A out)" ] && break
  sleep 0.02
done
kill -HUP $!
echo 'a line.' >&3
exec 3>&-
wait $! || fail "nohup tokenize: exit $?"
[ "$(cat out/file)" = 'a line .' ] || fail "nohup tokenize: no output"

# A file that exceeds the limit of `ulimit -f` is an error like a full disk, not a death by SIGXFSZ.
rm -r out
mkdir out
expect 1 '' 'tokenize: out/file: cannot write: File too large' bash -c "ulimit -f 1; exec '$HEED_BIN/tokenize' -i '$HEED_SOURCE/data/train.en' -o out/file"
expect 1 '' 'train: out/m.h5: *: File too large' bash -c "ulimit -f 20; exec '$HEED_BIN/train' -q -j 1 -t a.en a.fr -v vocab \
  -m out/m.h5 --task transformer-tiny --after 1u"
[ -z "$(ls -A out)" ] || fail "files that were too long leave $(ls -A out)"

# Ctrl-C also ends the reader of the messages (train 2>&1 | tee log). train saves the model nevertheless.
mkfifo messages
env --default-signal=INT "$HEED_BIN/train" -j 1 -t a.en a.fr -v vocab -m piped.h5 --task transformer-tiny --after 100000e \
  --save-freq 100000e 2>messages &
exec 4<messages
read -r _ <&4
exec 4<&-
kill -INT $!
wait $!
got=$?
[ "$got" -eq 75 ] || fail "Ctrl-C with a broken pipe for messages: train: exit $got"
[ -s piped.h5 ] || fail "Ctrl-C with a broken pipe for messages: train has not saved"

# While train reads the text, a signal ends it before it has changed anything.
"$HEED_BIN/train" -j 1 --tsv - -v vocab -m unread.h5 --task transformer-tiny --after 1u <input 2>stderr &
exec 3>input
paste a.en a.fr >&3
for _ in $(seq 300); do
  [ -e .unread.h5.lock ] && break
  sleep 0.02
done
sleep 0.2
kill -TERM $!
exec 3>&-
wait $!
got=$?
[ "$got" -eq 75 ] || fail "SIGTERM while the text is read: train: exit $got ($(cat stderr))"
grep -qxF 'train: interrupted before the training began; no file has changed (give the same command again)' stderr ||
  fail "SIGTERM while the text is read: train: $(cat stderr)"
[ -z "$(find . -name '*unread*')" ] || fail "SIGTERM while the text is read: train leaves $(find . -name '*unread*')"

# A signal ends a validation, and the state is saved; the same command then does the validation.
validated=("$HEED_BIN/train" -q -j 1 -t a.en a.fr -v vocab --valid-sets valid.tsv -m validated.h5 --task transformer-tiny
  --enc-depth 1 --dec-depth 1 --dim-emb 16 --transformer-dim-ffn 16 --after 1u --disp-freq 1u --log-format tsv)
head -n 3000 <(paste "$HEED_SOURCE/data/train.en" "$HEED_SOURCE/data/train.fr") >valid.tsv
"${validated[@]}" >records 2>stderr &
for _ in $(seq 500); do
  grep -q '^update' records && break
  sleep 0.02
done
kill -TERM $!
wait $!
got=$?
[ "$got" -eq 75 ] && [ -s validated.h5 ] || fail "SIGTERM in a validation: train: exit $got ($(cat stderr))"
grep -q '^validation' records && fail "a signal does not end a validation: $(cat records)"
"${validated[@]}" >records 2>stderr || fail "after SIGTERM in a validation: train: exit $? ($(cat stderr))"
[ "$(cut -f 1 records | tr '\n' ' ')" = 'event validation saved finished ' ] || fail "after SIGTERM in a validation: $(cat records)"

# The first Ctrl-C saves a training, the second ends it, even during saving. Neither leaves a temporary file. oneDNN's
# products of AVX2 do not bear a handler on their stack, so half of the trainings use them where the processor can.
avx2=$(grep -qw avx2 /proc/cpuinfo && echo avx2)
for delay in 0 0.03 0.06 0.1; do
  isa=
  case $delay in 0 | 0.06) isa=$avx2 ;; esac
  rm -rf training
  mkdir training
  env --default-signal=INT ${isa:+HEED_ISA=$isa} "$HEED_BIN/train" -q -j 1 -t a.en a.fr -v vocab -m training/m.h5 \
    --task transformer-small --after 1000e --save-freq 1u 2>stderr &
  for _ in $(seq 300); do
    [ -e training/m.h5 ] && break
    sleep 0.02
  done
  sleep "$delay"
  kill -INT $!
  sleep 0.05
  kill -INT $! 2>/dev/null
  wait $!
  got=$?
  [ "$got" -eq 75 ] || [ "$got" -eq 130 ] || fail "two Ctrl-C: train: exit $got ($(cat stderr))"
  [ -z "$(find training -name '.*')" ] || fail "two Ctrl-C: train leaves $(ls -A training)"
done

finish
