#!/usr/bin/env bash
# Checks that README's Makefile loses no work: after Ctrl-C or a kill, the next make continues and ends with the same
# model and translation. The test changes only names and sizes: a small vocabulary, and a small model that trains for
# some seconds and is saved often.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
PATH=$HEED_BIN:$PATH
command -v make >/dev/null || { echo "no make"; exit 77; }
# Each make runs in its own process group, as commands in a terminal do, so that a signal reaches its programs too.
set -m

# Prints the indented block after the paragraph "A Makefile", without the four spaces of indentation.
awk '/^\*\*A Makefile\.\*\*/ { found = 1 } found && /^    / { print substr($0, 5); block = 1 } block && /^$/ { exit }' \
  "$HEED_SOURCE/README.md" >readme.mk
[ "$(grep -c '^[^[:space:]].*:' readme.mk)" -eq 3 ] || fail "README.md's Makefile has not three rules: $(cat readme.mk)"
grep -q $'^\ttrain .* -m model.h5 ' readme.mk || fail "README.md's Makefile does not train model.h5: $(cat readme.mk)"
small='--task transformer-tiny --enc-depth 1 --dec-depth 1 --dim-emb 32 --transformer-dim-ffn 64 -j 2 --mini-batch-words 300 --learn-rate 0.003 --lr-warmup 10'
sed -E "s/--max-size [0-9]+/--max-size 300/; s/--task transformer-small --after 20e/$small --after 60e --save-freq 10u/" \
  readme.mk >Makefile
grep -q -- '--save-freq 10u' Makefile || fail "the training was not made small: $(cat Makefile)"

for part in train:600 valid:20 test:20; do
  for side in en fr; do head -n "${part#*:}" "$HEED_SOURCE/data/${part%:*}.$side" >"${part%:*}.$side"; done
done
for folder in whole interrupted killed; do mkdir $folder && cp -- Makefile *.en *.fr $folder; done
make -s -C whole test.hyp >whole.log 2>&1 || fail "the uninterrupted make: $(cat whole.log)"

# stop FOLDER SIGNAL: runs make and sends SIGNAL as soon as the model has been saved once
stop() {
  env --default-signal=INT make -s -C "$1" test.hyp >"$1.log" 2>&1 &
  for _ in $(seq 600); do
    [ -e "$1/model.h5" ] && break
    sleep 0.05
  done
  kill -"$2" -- -$!
  wait $!
  [ $? -ne 0 ] || fail "SIG$2: make ended before the signal"
  # After SIGINT, train continues until the model is saved.
  for _ in $(seq 100); do
    kill -0 -- -$! 2>/dev/null || break
    sleep 0.1
  done
  [ -e "$1/model.h5" ] || fail "SIG$2: the model is gone ($(cat "$1.log"))"
  [ -e "$1/test.hyp" ] && fail "SIG$2: an interrupted model translated"
}

for case in interrupted:INT killed:KILL; do
  folder=${case%:*}
  stop $folder "${case#*:}"
  make -s -C $folder test.hyp >$folder.log 2>&1 || fail "$folder, the next make: $(cat $folder.log)"
  [[ $(cat $folder.log) == *'model.h5: goes on after update '* ]] || fail "$folder: training began anew: $(cat $folder.log)"
  for file in vocab test.hyp; do cmp whole/$file $folder/$file || fail "$folder: another $file"; done
  diff <(cd whole && ls -A) <(cd $folder && ls -A) || fail "$folder: other files"
  diff <(translate -q -m whole/model.h5 --scores <test.en) <(translate -q -m $folder/model.h5 --scores <test.en) >difference ||
    fail "$folder: other scores: $(head -n 4 difference)"
  if command -v h5diff >/dev/null; then
    h5diff whole/model.h5 $folder/model.h5 /parameters /parameters || fail "$folder: other parameters"
  fi
  make -s -C $folder test.hyp >again.log 2>&1 || fail "$folder: make again: $(cat again.log)"
  [[ $(cat again.log) == *'Nothing to be done'* || ! -s again.log ]] || fail "$folder: make again does something: $(cat again.log)"
done

finish
