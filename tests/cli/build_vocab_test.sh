#!/usr/bin/env bash
# Tests build-vocab with pipes and files: exit codes, messages, wrong input, a full disk.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
build_vocab=$HEED_BIN/build-vocab
tokenize=$HEED_BIN/tokenize
en=$HEED_SOURCE/data/valid.en fr=$HEED_SOURCE/data/valid.fr

gzip -c "$en" >en.gz

# A file, a pipe and a gzip file give the same vocabulary, with any number of threads.
"$build_vocab" -q -s 400 "$en" >vocab || fail "build-vocab failed"
[ "$(sed -n 1p vocab)" = 'heed-vocabulary 1' ] || fail "the first line is '$(sed -n 1p vocab)'"
grep -qx 'pieces: 400' vocab || fail "a size of 400 gives $(grep '^pieces' vocab)"
"$build_vocab" -q -s 400 -j 1 <"$en" | cmp - vocab || fail "standard input gives another vocabulary"
"$build_vocab" -q -s 400 en.gz | cmp - vocab || fail ".gz gives another vocabulary"
"$build_vocab" -q -s 400 -i "$en" -o out || fail "-i and -o failed"
cmp out vocab || fail "-o gives another vocabulary"
"$tokenize" -m vocab -i "$en" | "$tokenize" -d -m vocab | cmp - "$en" || fail "the corpus does not come back"
[ "$("$tokenize" -m vocab --output-format id -i "$en" | tr ' ' '\n' | grep -cx 1)" -eq 0 ] || fail "the corpus has unknown pieces"

# A joint vocabulary of two languages; merges and counts in the formats of subword-nmt.
expect 0 '' 'build-vocab: * pieces from * lines, * words (* different)' \
  "$build_vocab" --merges 300 -l en,fr "$en" "$fr" -o joint --codes-output codes --counts-output counts --write-vocabulary v.en v.fr
grep -qx 'language: en,fr' joint || fail "the languages are not stored"
[ "$(sed -n 1p codes)" = '#version: 0.2' ] && [ "$(wc -l <codes)" -eq 301 ] || fail "the codes file has $(wc -l <codes) lines"
for language in en fr; do
  "$tokenize" -m joint -l $language -i "$HEED_SOURCE/data/valid.$language" >pieces.$language
  "$tokenize" -c codes -l $language -i "$HEED_SOURCE/data/valid.$language" | cmp - pieces.$language || fail "the model cuts $language unlike its codes"
  tr ' ' '\n' <pieces.$language | sort | uniq -c | awk '{print $2, $1}' | LC_ALL=C sort | cmp - <(LC_ALL=C sort v.$language) || fail "wrong counts in v.$language"
done
cat pieces.en pieces.fr | tr ' ' '\n' | sort | uniq -c | awk '{print $2, $1}' | LC_ALL=C sort | cmp - <(LC_ALL=C sort counts) || fail "wrong counts"

# A file, a pipe and a gzip file give the same shortlist, with any number of threads.
"$build_vocab" -q --shortlist pieces.en pieces.fr >list || fail "build-vocab --shortlist failed"
[ "$(sed -n 1p list)" = 'heed-shortlist 1' ] || fail "the first line is '$(sed -n 1p list)'"
[ "$(grep -c '^ ' list)" -eq 100 ] || fail "$(grep -c '^ ' list) frequent pieces"
gzip -k pieces.en
"$build_vocab" -q -j 1 --shortlist pieces.en.gz - <pieces.fr | cmp - list || fail "gzip and a pipe give another shortlist"
"$build_vocab" -q -j 5 --shortlist pieces.en pieces.fr -o list5 && cmp list5 list || fail "five threads give another shortlist"
expect 1 '' 'build-vocab: pieces.en: has 250 lines, but vocab has * lines (line N of each belongs to line N of the others)' "$build_vocab" --shortlist pieces.en vocab
expect 2 '' 'build-vocab: --merges: has no use with --shortlist' "$build_vocab" --shortlist pieces.en pieces.fr --merges 5
expect 2 '' 'build-vocab: --frequent: needs --shortlist' "$build_vocab" --frequent 5 "$en"
expect_full_disk build-vocab -q --shortlist pieces.en pieces.fr

# Fewer pieces than the user asked for are a warning, even with --quiet.
expect 0 '*' 'build-vocab: warning: the text gives * merges only, fewer than asked for*' "$build_vocab" -q -s 500K "$en"
expect 0 '*' 'build-vocab: warning: the text gives * pieces only, fewer than --max-size 500000' "$build_vocab" -q --type words -s 500K "$en"
expect 0 '*' 'build-vocab: warning: --max-size leaves out * pieces*' "$build_vocab" -q --type char -s 10 "$en"

# Wrong data: exit 1, and no output file.
: >empty
printf '\n  \n' >blank
expect 1 '' 'build-vocab: standard input: there are no words in it (*' "$build_vocab" -i - <empty
expect 1 '' 'build-vocab: blank: there are no words in it (*' "$build_vocab" "$en" blank -o never
[ -e never ] && fail "a failed run leaves its output"
expect 1 '' 'build-vocab: missing: cannot open: No such file or directory' "$build_vocab" missing
expect 1 '' 'build-vocab: missing: cannot open: No such file or directory' "$build_vocab" --protected missing "$en"
printf 'a\n\xff\n' >invalid
expect 1 '' 'build-vocab: invalid:2:1: invalid UTF-8 (*' "$build_vocab" invalid --on-invalid-utf8 fail
expect 0 '*' 'build-vocab: warning: invalid:2:1: invalid UTF-8 replaced*' "$build_vocab" -q --type words invalid
head -c 100 en.gz >cut.gz
expect 1 '' 'build-vocab: cut.gz*' "$build_vocab" cut.gz
head -c 1000000 /dev/zero | tr '\0' 'x' >long
expect 0 '*' '*' "$build_vocab" --merges 10 long

# Wrong usage: exit 2.
expect 2 '' 'build-vocab: unknown option --max-sise: did you mean --max-size?' "$build_vocab" --max-sise 5
expect 2 '' 'build-vocab: unknown option --symbols: did you mean --merges? (subword-nmt)' "$build_vocab" --symbols 5
expect 2 '' 'build-vocab: --byte-fallback: --type bpe has no such thing (--type unigram has)' "$build_vocab" --byte-fallback
expect 2 '' 'build-vocab: --format: sets the format of the table of --dev (give --dev too)' "$build_vocab" --format json "$en"
expect 0 '*' '\[*{"size": 100, *\]' "$build_vocab" -s 400 --dev "$en" --format json "$en"
expect 2 '' 'build-vocab: --dev: varies --max-size*' "$build_vocab" --dev "$en" --merges 5 "$en"
expect 2 '' 'build-vocab: --total-symbols: needs --merges' "$build_vocab" --total-symbols "$en"
expect 2 '' 'build-vocab: --dict-input: does not say where sentences end*' "$build_vocab" --dict-input --type char "$en"
expect 1 '' 'build-vocab: nowhere: cannot open: No such file or directory' "$build_vocab" -q --dev nowhere "$en"
expect 2 '' "build-vocab: --type 'subword': must be one of words, bpe, unigram, char, trees" "$build_vocab" --type subword
expect 2 '' "build-vocab: --max-size 'big': *" "$build_vocab" -s big
expect 2 '' 'build-vocab: --language lists 2 codes for 1 texts (*' "$build_vocab" -l en,fr "$en"

expect_full_disk build-vocab -q --merges 9 "$en"
expect 1 '' 'build-vocab: /dev/full: *No space left on device' "$build_vocab" -q --merges 9 "$en" -o /dev/full
expect 1 '' 'build-vocab: /dev/full: *No space left on device' "$build_vocab" -q --merges 9 "$en" --codes-output /dev/full
"$build_vocab" -q --merges 9 "$en" 2>stderr | true
[[ ${PIPESTATUS[0]} -eq 141 || ${PIPESTATUS[0]} -eq 0 ]] || fail "a closed pipe ends with ${PIPESTATUS[0]}"
[ -s stderr ] && fail "a closed pipe is not silent: $(cat stderr)"
expect 0 '*usage: build-vocab*--merges*' '' "$build_vocab" --help
expect 0 'build-vocab (heed) *' '' "$build_vocab" --version
finish
