#!/usr/bin/env bash
# Tests what the scripts that train on raw data do with paths, with an interruption, and with the user's files, and that each
# script says how to use it. Programs of heed's names that compute nothing stand for heed's programs.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
scripts=$HEED_SOURCE/scripts
export HEED_BIN=$PWD/stubs
mkdir stubs

# stub NAME...: writes programs that read their input, and make the files that options name as output
stub() {
  cat >stubs/stub <<'PROGRAM'
#!/bin/bash
cat >/dev/null
echo "${0##*/} $*" >>"${0%/*}/calls"
while [ $# -gt 1 ]; do
  case ${0##*/}$1 in train-m | *-o) echo made >"$2" ;; esac
  shift
done
PROGRAM
  chmod +x stubs/stub
  local name
  for name in "$@"; do cp stubs/stub "stubs/$name"; done
}
stub train translate bleu build-vocab tokenize inspect-attention kernel-regression

lines() { wc -l <"$1"; }

# --- cifar10: images as a folder and as an archive, and paths that are relative to the current folder
mkdir -p images/train/{cat,dog}
: >image
for n in $(seq 100 601); do ln image images/train/cat/$n.jpg && ln image images/train/dog/$n.jpg; done
check_lists() {
  [ "$(lines "$1/train.images") $(lines "$1/valid.images")" = '4 1000' ] || fail "$2: $(wc -l "$1"/*.images)"
  [ "$(sort "$1/train.labels" | uniq -c | xargs)" = '2 cat 2 dog' ] || fail "$2: labels $(sort "$1/train.labels" | uniq -c)"
  [ "$(sort "$1/valid.labels" | uniq -c | xargs)" = '500 cat 500 dog' ] || fail "$2: labels $(sort "$1/valid.labels" | uniq -c)"
  (cd "$1" && xargs -a train.images ls) >/dev/null || fail "$2: the list names files that are not there"
}
expect 0 '*accuracy*' '' "$scripts/cifar10" vit images lists </dev/null
check_lists lists "a folder of images"
grep -qF -- "-t $PWD/lists/train.images $PWD/lists/train.labels" stubs/calls || fail "cifar10 trains on $(cat stubs/calls)"
# An interruption leaves some of the lists.
mkdir again
head -n 3 lists/train.images >again/train.images
cp again/train.images again/train.images.part
cp lists/train.labels again/
expect 0 '*' '' "$scripts/cifar10" vit images again </dev/null
check_lists again "lists that were interrupted"
# An archive of which a part was unpacked.
if command -v xz >/dev/null; then
  mkdir archive
  tar -cJf archive/whole -C images train
  head -c 1500 archive/whole >archive/train.tar.xz
  "$scripts/cifar10" vit archive unpacked </dev/null >/dev/null 2>&1 && fail "cifar10 takes a broken archive"
  mv archive/whole archive/train.tar.xz
  expect 0 '*' '' "$scripts/cifar10" vit archive unpacked </dev/null
  check_lists unpacked "an archive that was unpacked in part before"
  [ -e unpacked/unpacking ] && fail "cifar10 leaves unpacked/unpacking"
fi
expect 1 '' "cifar10: no $PWD/none/train.tar.xz (*" "$scripts/cifar10" vit none work </dev/null
# A folder that is the wrong one is named, and does not stay the folder of WORK.
mkdir -p few/train/cat empty/train
ln image few/train/cat/1.jpg
for wrong in few empty; do
  expect 1 '' "cifar10: no folder of a class in $PWD/$wrong/train has more than 500 .jpg files (*" "$scripts/cifar10" vit $wrong corrected </dev/null
done
expect 0 '*accuracy*' '' "$scripts/cifar10" vit images corrected </dev/null
check_lists corrected "a folder after a wrong one"

# --- textbook-demo: a file that is missing is not replaced by other data
expect 1 '' "textbook-demo: no $PWD/pairs.tsv (name a file of pairs, source TAB target)" "$scripts/textbook-demo" pairs.tsv 1 2
printf 'a\tb\n' >pairs.tsv
expect 0 '*all four right: 0 of 2 seeds' '*' "$scripts/textbook-demo" pairs.tsv 1 2 </dev/null

printf 'a\tb\nc\n' >pairs.tsv
expect 1 '' "textbook-demo: $PWD/pairs.tsv:2: has no TAB (name a file of pairs, source TAB target)" "$scripts/textbook-demo" pairs.tsv
: >pairs.tsv
expect 1 '' "textbook-demo: $PWD/pairs.tsv: is empty (name a file of pairs, source TAB target)" "$scripts/textbook-demo" pairs.tsv
printf 'a\tb\n' >pairs.tsv

# --- family
: >stubs/calls
"$scripts/family" norms tables </dev/null >/dev/null 2>&1  # the table needs what train writes
grep -qF -- "-o $PWD/tables/vocab" stubs/calls || fail "family: $(head -n 1 stubs/calls)"

MODELS='rnn-x*' expect 2 '*' 'family: MODELS=rnn-x\*: no model has such a name; the names are transformer pre-norm * rnn-attention-dot' \
  "$scripts/family" models tables </dev/null
UPDATES=1.5 expect 2 '' 'family: UPDATES=1.5: must be a whole number' "$scripts/family" norms tables </dev/null
# A dash stands for exact search that is too much work, and for no other failure.
mkdir broken && cp stubs/* broken/
printf '#!/bin/sh\necho "translate: out of order" >&2\nexit 1\n' >broken/translate
HEED_BIN=broken expect 1 '*length-1' 'translate: out of order' "$scripts/family" search tables </dev/null

# --- HEED_BIN is relative to the current folder, too
printf 'tree\n' >trees
for part in train val test_2016_flickr; do for side in en de; do echo a | gzip >$part.$side.gz; done; done
for arguments in 'cifar10 vit images elsewhere' 'family norms elsewhere' 'multi30k published . elsewhere' 'parse trees trees elsewhere' \
  'textbook-demo pairs.tsv' 'wmt14 rehearsal . elsewhere'; do
  : >stubs/calls
  # shellcheck disable=SC2086 # the words of $arguments are the script and its arguments
  HEED_BIN=stubs "$scripts/"$arguments </dev/null >said 2>&1
  grep -q '^build-vocab \|^train ' stubs/calls || fail "HEED_BIN=stubs $arguments: $(cat said)"
  # Programs of the search path do not stand for those of a folder that is misspelt.
  # shellcheck disable=SC2086
  HEED_BIN=stub PATH=$PWD/stubs:$PATH expect 1 '' "${arguments%% *}: no program $PWD/stub/train (HEED_BIN): build first (*" "$scripts/"$arguments </dev/null
  rm -rf elsewhere
done

# --- arguments that a script does not know are refused before it does anything
for arguments in 'cifar10 vit images elsewhere more' 'family norms elsewhere more' 'multi30k published . elsewhere more' 'parse trees' \
  'parse trees trees elsewhere more' 'wmt14 rehearsal . elsewhere more'; do
  # shellcheck disable=SC2086
  expect 2 '' "*usage: scripts/${arguments%% *} *" "$scripts/"$arguments </dev/null
  [ ! -e elsewhere ] || fail "$arguments: makes files"
done
UPDATES=1K expect 1 '' 'wmt14: UPDATES=1K: must be a whole number' "$scripts/wmt14" rehearsal . elsewhere </dev/null
SEED=one expect 2 '' 'multi30k: SEED=one: must be a whole number' "$scripts/multi30k" best . elsewhere </dev/null
mkdir -p nothing
expect 1 '' "wmt14: no $PWD/nothing/train.en or $PWD/nothing/train.en.gz (*" "$scripts/wmt14" rehearsal nothing elsewhere </dev/null
rm -rf elsewhere
mv test_2016_flickr.de.gz nothing/
expect 1 '' "multi30k: no $PWD/test_2016_flickr.de.gz (*" "$scripts/multi30k" published . elsewhere </dev/null
[ ! -e elsewhere ] || fail "multi30k begins without its test text"
mv nothing/test_2016_flickr.de.gz .

# --- parse: an interrupted translation of the raw text goes on, unless the text is another
cat >stubs/tokenize <<'PROGRAM'
#!/bin/bash
while [ $# -gt 0 ]; do
  case $1 in -i) input=$2 ;; -o) exec cp "$input" "$2" ;; esac
  shift
done
cat "$input"
PROGRAM
cat >stubs/translate <<'PROGRAM'
#!/bin/bash
arguments=$*
while [ $# -gt 0 ]; do
  case $1 in -i) input=$2 ;; -o) output=$2 ;; esac
  shift
done
[[ $input == */sentences.words ]] || exec cp "$input" "$output"
[[ $arguments == *' --resume' ]] || exit 9
[ ! -e "$output.partial" ] || echo resumed
cp "$input" "$output.partial"
[ -e "$HEED_BIN/whole" ] || exit 7
mv "$output.partial" "$output"
PROGRAM
cat >stubs/train <<'PROGRAM'
#!/bin/bash
while [ $# -gt 0 ]; do
  [ "$1" != --log ] || echo 'update 1,200' >"$2"
  shift
done
PROGRAM
printf 'one\n \ntwo\n' >text
printf 'three\n' >other
parse() { SENTENCES=$1 "$scripts/parse" trees trees parser >parse.out 2>&1 </dev/null; }
parse text
[ $? -eq 7 ] || fail "parse, interrupted: $(cat parse.out)"
cmp -s parser/sentences.words <(printf 'one\ntwo\n') || fail "parse reads $(cat parser/sentences.words)"
parse text
[ $? -eq 7 ] && grep -qx resumed parse.out || fail "parse does not go on: $(cat parse.out)"
parse other
[ $? -eq 7 ] && ! grep -qx resumed parse.out || fail "parse goes on with another text: $(cat parse.out)"
: >stubs/whole
parse other || fail "parse: exit $?, $(cat parse.out)"
cmp -s parser/both.trees <(printf 'tree\nthree\n') || fail "parse: the second parser learns from $(cat parser/both.trees)"
# With the same sentences it is done; the parser of these sentences does not stand for one of others.
parse other || fail "parse again: exit $?, $(cat parse.out)"
SENTENCES=text expect 1 '' "parse: $PWD/parser has a parser of other SENTENCES (name another WORK)" "$scripts/parse" trees trees parser </dev/null
cmp -s parser/both.trees <(printf 'tree\nthree\n') && cmp -s parser/sentences.words other || fail "parse loses the trees of other sentences"
parse other || fail "parse after other sentences: exit $?, $(cat parse.out)"
SENTENCES=none expect 1 '' "parse: no $PWD/none (*" "$scripts/parse" trees trees parser </dev/null

# --- multi30k best: when a teacher fails, the other one saves its state, which takes a while, before the script ends
stub translate tokenize
cat >stubs/train <<'PROGRAM'
#!/bin/bash
case "$*" in
  *teacher2.h5*)
    trap 'sleep 0.5; echo saved >"$HEED_BIN/saved"; exit 0' TERM
    : >"$HEED_BIN/ready"
    for _ in $(seq 1000); do sleep 0.02; done ;;
  *teacher1.h5*)
    while [ ! -e "$HEED_BIN/ready" ]; do sleep 0.02; done
    exit 5 ;;
esac
PROGRAM
expect 5 '*' '*' "$scripts/multi30k" best . best </dev/null
[ -e stubs/saved ] || fail "multi30k ends before a teacher has saved its state"
grep -q "$PWD/none/train.en.gz" <("$scripts/multi30k" published none 2>&1) || fail "multi30k: a relative path"

# --- demo and demo-images remove the models that they make, and no others
stub train
mkdir -p tree/scripts tree/build/release/bin tools home
for name in demo demo-images; do cp "$scripts/$name" tree/scripts/; done
ln -s "$HEED_SOURCE/data" tree/data
printf '#!/bin/sh\n' | tee tree/scripts/setup >tools/cmake
chmod +x tree/scripts/setup tools/cmake
cp stubs/* tree/build/release/bin/
for name in model.h5 model-of-mine.h5 mine.h5 caption.h5 shape.h5; do echo mine >home/$name; done
PATH=$PWD/tools:$PATH
for name in demo demo-images; do
  expect 0 '*' '*' env -u HEED_PRESET "tree/scripts/$name" home </dev/null
done
for name in model-of-mine mine; do [ "$(cat home/$name.h5 2>&1)" = mine ] || fail "the demos remove $name.h5"; done
for name in model caption shape; do [ "$(cat home/$name.h5)" = made ] || fail "$name.h5 is not made anew"; done

# --- --help: the first lines of a script, and no more
mkdir helped
cp -r "$scripts" helped/
for name in apt-get cmake dpkg dpkg-query sudo; do printf '#!/bin/sh\nexit 9\n' >tools/$name && chmod +x tools/$name; done
find helped | sort >before
cd helped || exit 1
for script in scripts/*; do
  [ -f "$script" ] && [ "$script" != scripts/distillation.mk ] || continue
  [[ $(head -n 1 "$script") != *python3 ]] || command -v python3 >/dev/null || continue
  for option in -h --help; do
    expect 0 '*usage: *' '' "$script" "$option" </dev/null
    [[ $(head -n 1 "$script") != *bash ]] || sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$script" | cmp - stdout || fail "$script $option: $(cat stdout)"
  done
  rm stdout stderr
done
for arguments in 'demo home more' 'demo-images home more' 'setup --libs'; do
  # shellcheck disable=SC2086
  expect 2 '' "*usage: scripts/${arguments%% *} *" scripts/$arguments </dev/null
  rm stdout stderr
done
cd .. || exit 1
find helped | sort | cmp - before || fail "--help and wrong arguments make files"
finish
