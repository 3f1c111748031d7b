#!/usr/bin/env bash
# Checks that files with a byte-order mark give the same results as files without it, and that stderr names each such
# file once. For UTF-16 and compressed files the message says what to do.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1

head -n 100 "$HEED_SOURCE/data/train.en" >en
head -n 100 "$HEED_SOURCE/data/train.fr" >fr
"$HEED_BIN/build-vocab" -q --type bpe --merges 50 --language en,fr --codes-output codes --write-vocabulary counts counts.fr -o vocab -- en fr ||
  fail "build-vocab failed"
"$HEED_BIN/tokenize" -q --train-truecaser cases -i en || fail "tokenize --train-truecaser failed"
tiny=(--task transformer-tiny --enc-depth 1 --dec-depth 1 --dim-emb 32 --transformer-heads 2 --transformer-dim-ffn 64)
printf 'task = transformer-tiny\nenc-depth = 1\n' >config
printf '\\bthe\\b\n' >patterns
paste en fr >tsv
for file in en fr vocab codes counts cases config patterns tsv; do
  { printf '\357\273\277'; cat $file; } >$file.marked
done
note='starts with a byte-order mark (U+FEFF), which is left out'

# same FILES COMMAND...: checks that COMMAND writes the same with a byte-order mark in FILES, and names each of FILES
# once
same() {
  local files=$1 file
  shift
  local -a marked=()
  local word
  for word in "$@"; do
    for file in $files; do [ "$word" = "$file" ] && word=$file.marked; done
    marked+=("$word")
  done
  "$@" >plain 2>plain.err || fail "$*: exit $? ($(cat plain.err))"
  "${marked[@]}" >with 2>with.err || fail "${marked[*]}: exit $? ($(cat with.err))"
  cmp plain with || fail "${marked[*]}: gives something else"
  for file in $files; do
    [ "$(grep -c "^[a-z-]*: $file.marked: $note\$" with.err)" -eq 1 ] || fail "${marked[*]}: stderr is '$(cat with.err)'"
  done
  grep -q "$note" plain.err && fail "$*: speaks of a mark that is not there"
  [ -z "$("${marked[0]}" --quiet "${marked[@]:1}" 2>&1 >/dev/null | grep "$note")" ] || fail "${marked[*]} --quiet: speaks of the mark"
}
same en "$HEED_BIN/tokenize" -i en
same en "$HEED_BIN/tokenize" -m vocab --language=en --output-format jsonl -i en
same vocab "$HEED_BIN/tokenize" -m vocab --language=en -i en
same "codes counts" "$HEED_BIN/tokenize" -c codes --vocabulary counts --vocabulary-threshold 1 -i en
same cases "$HEED_BIN/tokenize" --truecase cases -i en
same patterns "$HEED_BIN/tokenize" --protected patterns -i en
same en "$HEED_BIN/build-vocab" --type bpe --merges 50 -- en
same "fr en" "$HEED_BIN/bleu" fr -i en
same config "$HEED_BIN/train" --config config --dump-config
[ "$(printf '\357\273\277a b\n' | "$HEED_BIN/tokenize" -q --output-format tsv --mode words)" = "$(echo a b | "$HEED_BIN/tokenize" -q --output-format tsv --mode words)" ] ||
  fail "offsets count the mark"
expect 0 'a' "tokenize: standard input: $note" bash -c "printf '\357\273\277a\n' | '$HEED_BIN/tokenize'"

# A training with validation, and a translation: with marks in all files, the parameters and translations are the same.
run() {
  "$HEED_BIN/train" -j 1 --tsv "tsv$1" --valid-sets "en$1" "fr$1" -v "vocab$1" -m "m$1.h5" "${tiny[@]}" --after 3u --valid-freq 3u 2>train.err ||
    fail "train: $(cat train.err)"
  "$HEED_BIN/translate" -q -m "m$1.h5" --max-output-length 10 -i "en$1" >"out$1" || fail "translate failed"
  "$HEED_BIN/translate" -q -m "m$1.h5" --score "fr$1" -i "en$1" >"scores$1" || fail "translate --score failed"
}
run ''
grep -q "$note" train.err && fail "train speaks of a mark that is not there"
run .marked
for file in tsv en fr vocab; do
  [ "$(grep -c "^train: $file.marked: $note\$" train.err)" -eq 1 ] || fail "train: stderr is '$(cat train.err)'"
done
cmp out out.marked || fail "translate gives something else"
cmp scores scores.marked || fail "translate --score gives something else"

# UTF-16 and compressed data, as a file and through a pipe.
iconv -f UTF-8 -t UTF-16 en >en16 || fail "iconv failed"
utf16='looks like UTF-16 text (make it UTF-8: iconv -f UTF-16 -t UTF-8 FILE | ...)'
expect 1 '' "tokenize: en16:1: $utf16" "$HEED_BIN/tokenize" -i en16
expect 1 '' "tokenize: standard input:1: $utf16" bash -c "'$HEED_BIN/tokenize' <en16"
expect 1 '' "tokenize: en16:1: $utf16" "$HEED_BIN/tokenize" -m en16
expect 1 '' "bleu: en16:1: $utf16" "$HEED_BIN/bleu" en16 -i en
expect 1 '' "train: en16:1: $utf16" "$HEED_BIN/train" -t en16 fr -v vocab -m none.h5
expect 1 '' "train: en16:1: $utf16" "$HEED_BIN/train" --config en16
xz='(only gzip is unpacked here: xz -dc FILE | ..., or unpack it with xz -d)'
printf '\3757zXZ\0\0\4' >packed
cp packed packed.xz
expect 1 '' "tokenize: packed:1: looks like xz data $xz" "$HEED_BIN/tokenize" -i packed
expect 1 '' "tokenize: standard input:1: looks like xz data $xz" bash -c "'$HEED_BIN/tokenize' <packed"
expect 1 '' "build-vocab: packed.xz: is xz data by its name $xz" "$HEED_BIN/build-vocab" packed.xz
expect 1 '' "tokenize: en.zst: cannot be written as zstd data (name it .gz, or pipe it: ... | zstd > FILE)" "$HEED_BIN/tokenize" -i en -o en.zst
[ ! -e en.zst ] || fail "the refused output is there"

finish
