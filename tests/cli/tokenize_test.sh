#!/usr/bin/env bash
# Tests tokenize with pipes and files: exit codes, messages, wrong input, a full disk, a closed pipe, an idle input.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
tokenize=$HEED_BIN/tokenize

printf 'Hello, world!\nHe said: "fine."\n' >text
printf 'Hello , world !\nHe said : " fine . "\n' >tokens
printf '#version: 0.2\nl o\nlo w</w>\n' >codes
gzip -c text >text.gz

# Tokenising and detokenising, through pipes, files and gzip.
expect 0 "$(cat tokens)" '' "$tokenize" -i text
expect 0 "$(cat tokens)" '' "$tokenize" -i text.gz -j 1
expect 0 "$(cat text)" '' bash -c "'$tokenize' <text | '$tokenize' -d"
expect 0 '' '' "$tokenize" -i text -o out.gz
[ "$(zcat out.gz)" = "$(cat tokens)" ] || fail "-o out.gz: $(zcat out.gz)"
expect 0 'lo@@ w@@ e@@ r low' '' bash -c "echo 'lower low' | '$tokenize' -c codes"
expect 0 '' '' "$tokenize" --check -i text
expect 1 '2' 'tokenize: 1 of 2 lines do not come back the same (*)' bash -c "printf 'fine\na  b\n' | '$tokenize' --check"
expect 0 '*' 'tokenize: 2 lines, 11 tokens, 11 pieces *' "$tokenize" --stats -i text
expect 0 '*' '' "$tokenize" --stats -q -i text

# With --model, tokenize performs the steps that the model stores.
"$HEED_BIN/build-vocab" -q --type words --lowercase text >vocab || fail "build-vocab failed"
expect 0 $'hello , world !\nhe said : " fine . "' '' "$tokenize" -m vocab -i text
expect 0 $'hello , world !\nhe said : " fine . "' '' "$tokenize" -m <(cat vocab) -i text
expect 0 $'hello, world!\nhe said: "fine."' '' \
  bash -c "'$tokenize' -m vocab --output-format id -i text | '$tokenize' -d -m vocab --output-format id"

# Only LF ends a line, CRLF loses its CR, a last line without LF counts, and empty lines stay empty.
printf 'a\r\n\n\xe2\x80\xa8b\xc2\x85c\x0bd\n e\tf\0g' >odd
[ "$("$tokenize" --mode none -i odd | wc -l)" -eq 4 ] || fail "odd line ends change the number of lines"
printf 'a\n\n\xe2\x80\xa8b\xc2\x85c\x0bd\n e\tf\0g\n' | cmp - <("$tokenize" --mode none -i odd) || fail "--mode none changes text"
[ "$("$tokenize" -i odd | wc -l)" -eq 4 ] || fail "mode moses changes the number of lines"

# Invalid UTF-8.
printf 'ok\na \xff b\n' >invalid
expect 0 $'ok\na \xef\xbf\xbd b' 'tokenize: warning: invalid:2:3: invalid UTF-8 replaced by U+FFFD; lines with such bytes: 1 *' "$tokenize" -i invalid
expect 1 '*' 'tokenize: invalid:2:3: invalid UTF-8 (*' "$tokenize" -i invalid --on-invalid-utf8 fail
"$tokenize" --mode none -q -i invalid --on-invalid-utf8 keep 2>/dev/null | cmp - invalid || fail "--on-invalid-utf8 keep changes bytes"

# Lines of a megabyte: many words, and one word.
head -c 1000000 /dev/zero | tr '\0' 'x' >long
head -c 1000000 /dev/zero | sed 's/\x0/low, /g' >words
for file in long words; do
  for options in "" "-c codes"; do
    # shellcheck disable=SC2086
    [ "$("$tokenize" $options -i $file | wc -l)" -eq 1 ] || fail "$file of a megabyte with '$options'"
  done
done

# A file without line feeds is refused at 64 MiB, before it fills the memory.
head -c 70000000 /dev/zero | tr '\0' 'x' >endless
for tool in tokenize build-vocab "bleu text"; do
  # shellcheck disable=SC2086
  expect 1 '*' "${tool%% *}: standard input:1: the line is longer than 64 MiB*" bash -c "'$HEED_BIN'/$tool -q <endless"
done
rm endless

# Wrong data: exit 1.
expect 1 '' 'tokenize: missing: cannot open: No such file or directory' "$tokenize" -i missing
expect 1 '' 'tokenize: .: is a folder (name a file)' "$tokenize" -i .
expect 1 '' 'tokenize: missing: cannot open: No such file or directory' "$tokenize" -c missing -i text
expect 1 '' 'tokenize: text:1: is no vocabulary of heed*' "$tokenize" -m text -i text
expect 1 '' 'tokenize: codes:1: is a file of BPE codes, no vocabulary*' "$tokenize" -m codes -i text
printf '\x89HDF\r\n\x1a\n' >model
expect 1 '' 'tokenize: model: *' "$tokenize" -m model -i text
head -n 16 vocab >short
expect 1 '' 'tokenize: short:16: the file ends after * pieces (cut short? *)' "$tokenize" -m short -i text
expect 1 '' "tokenize: text:1: 'Hello, world!' is no piece with a count*" "$tokenize" -c codes --vocabulary text -i text
head -c 20 text.gz >cut.gz
expect 1 '*' 'tokenize: cut.gz*' "$tokenize" -i cut.gz
cp text.gz disguised
expect 1 '' 'tokenize: disguised:1: looks like gzip data (*' "$tokenize" -i disguised
expect 1 '' 'tokenize: nowhere/out: *No such file or directory' "$tokenize" -i text -o nowhere/out

# Wrong usage: exit 2.
expect 2 '' 'tokenize: unknown option --langauge: did you mean --language?' "$tokenize" --langauge de
expect 2 '' 'tokenize: unknown option --num-workers: did you mean --threads? (subword-nmt)' "$tokenize" --num-workers 2
expect 2 '' 'tokenize: --dropout: needs --codes*' "$tokenize" --dropout 0.1
expect 2 '' 'tokenize: --dropout 1.5: must be between 0 and 1' "$tokenize" -c codes --dropout 1.5
expect 2 '' 'tokenize: --glossaries: needs --codes' "$tokenize" --glossaries x
expect 2 '' "tokenize: the glossary '(' is no regular expression*" "$tokenize" -c codes --glossaries x '(' -i text
expect 2 '' 'tokenize: --check: has no use with --output-format tsv' "$tokenize" --check --output-format tsv
expect 2 '' "tokenize: --mode 'penn': must be one of moses, 13a, intl, char, words, ascii-words, none, trees, leaves, labels, images" "$tokenize" --mode penn
expect 2 '' "tokenize: 'text' belongs to no option (-i text or < text reads a file)" "$tokenize" text
expect 2 '' "tokenize: the protected pattern '(' is no regular expression*" "$tokenize" --protect '(' -i text
expect 2 '' 'tokenize: --lowercase: --model says this already*' "$tokenize" -m vocab --lowercase -i text

# The rules that every program keeps: a full disk, a closed pipe, an idle input.
expect_full_disk tokenize -i text
expect 1 '' 'tokenize: /dev/full: *No space left on device' "$tokenize" -i text -o /dev/full
yes 'a line' | head -n 200000 | "$tokenize" -q 2>stderr | head -n 1 >/dev/null
[ "${PIPESTATUS[2]}" -eq 141 ] || fail "a closed pipe ends with ${PIPESTATUS[2]} instead of SIGPIPE"
[ -s stderr ] && fail "a closed pipe is not silent: $(cat stderr)"
expect_coprocess "$tokenize"
expect_coprocess "$tokenize" -m vocab --output-format id
expect 0 '*usage: tokenize*--detokenize*' '' "$tokenize" --help
expect 0 'tokenize (heed) *' '' "$tokenize" --version
"$tokenize" --dump-config --lowercase -l fr >config
expect 0 'hello !' '' bash -c "echo 'Hello!' | '$tokenize' --config config"
# Messages call - standard input, whatever was read from it.
expect 2 '' 'tokenize: standard input:1: unknown option --lower: did you mean --lowercase?' bash -c "echo 'lower = true' | '$tokenize' --config - -i text"
"$HEED_BIN/build-vocab" -q --type words -l en,de text text >two || fail "build-vocab failed"
expect 2 '' 'tokenize: standard input serves several languages: en, de (choose one with --language)' "$tokenize" -m - -i text <two
expect 1 '' 'tokenize: standard input: the vocabulary has no text steps for the language *' "$tokenize" -m - -l fr -i text <two

# The lines keep their order with several threads, and memory does not grow with the input.
for i in $(seq 60000); do echo "line $i, of text."; done >many
"$tokenize" -j 4 -i many | cmp - <("$tokenize" -j 1 -i many) || fail "threads change the output"
# A language without rules gives a warning.
expect 0 'a b' 'tokenize: warning: --language english: there are no rules for this language (*' bash -c "echo 'a b' | '$HEED_BIN/tokenize' -l english"
expect 0 'a b' '' bash -c "echo 'a b' | '$HEED_BIN/tokenize' -l fr"
expect 0 'a b' '' bash -c "echo 'a b' | '$HEED_BIN/tokenize' -l english --mode none"
# A truecase model without words, which --truecase refuses, gives a warning.
expect 0 '' 'tokenize: warning: the truecase model is empty, and --truecase will refuse it: *' \
  bash -c "echo 'Hello' | '$HEED_BIN/tokenize' --train-truecaser empty"
expect 1 '' 'tokenize: empty: is empty (*' bash -c "echo 'Hello' | '$HEED_BIN/tokenize' --truecase empty"
expect 0 '' '' bash -c "echo 'Hello you' | '$HEED_BIN/tokenize' --train-truecaser model"
finish
