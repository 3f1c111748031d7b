#!/usr/bin/env bash
# Checks that the OPTIONS of each man page are exactly the options of --help, with the same short options, and that the
# page about checkpoints names the attribute of each option of a model.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1

# Prints the options of --help, one per line, as "-s --long" or "--long". For a program with --task, prints the options
# of all tasks.
options_of_help() {
  local tasks task
  tasks=$("$1" --help | sed -nE 's/^ +--task ([^ ]+).*/\1/p')
  for task in ${tasks//|/ } ''; do
    "$1" ${task:+--task "$task"} --help
  done | sed -nE 's/^  (-([[:alnum:]]), |    )(--[[:alnum:]-]+).*/\2 \3/p' | sed -E 's/^ //; s/^([[:alnum:]]) /-\1 /' | LC_ALL=C sort -u
}
options_of_man() {
  sed -n '/^\.SH OPTIONS/,/^\.SH EXIT/p' "$1" | grep -A1 '^\.TP' | grep '^\\fB' | sed -E 's/\\f[BRI]//g; s/\\-/-/g' |
    sed -nE 's/^(-[[:alnum:]], |-[[:alnum:]]+, )?(--[[:alnum:]-]+).*/\1\2/p' | sed -E 's/^(-[[:alnum:]]), /\1 /; s/^-[[:alnum:]]+, //' | LC_ALL=C sort
}

tools=0
for source in "$HEED_SOURCE"/tools/*.cpp; do
  tool=$(basename "$source" .cpp)
  page=$HEED_SOURCE/man/$tool.1
  tools=$((tools + 1))
  if [ ! -x "$HEED_BIN/$tool" ]; then
    fail "$tool is not built"
  elif [ ! -f "$page" ]; then
    fail "$tool has no man/$tool.1"
  else
    options_of_help "$HEED_BIN/$tool" >in_help
    options_of_man "$page" >in_man
    [ -s in_help ] || fail "$tool --help lists no option"
    LC_ALL=C comm -23 in_help in_man | while read -r option; do echo "man/$tool.1 lacks $option"; done >missing
    LC_ALL=C comm -13 in_help in_man | while read -r option; do echo "man/$tool.1 has $option, which $tool --help lacks"; done >extra
    [ -s missing ] && fail "$(cat missing)"
    [ -s extra ] && fail "$(cat extra)"
    name=$(sed -n '/^\.SH NAME/{n;s/\\-/-/g;p;}' "$page")
    [[ $("$HEED_BIN/$tool" --help | head -n 1) == "$name"* ]] || fail "$tool --help does not begin like man/$tool.1: $name"
    grep -q "^\.SH EXIT STATUS" "$page" || fail "man/$tool.1 has no EXIT STATUS"
    grep -q '^\.SH EXAMPLES' "$page" || fail "man/$tool.1 has no EXAMPLES"
  fi
done
[ "$tools" -gt 0 ] || fail "no tools found"

if command -v man >/dev/null; then
  for page in "$HEED_SOURCE"/man/*.[157]; do
    LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=100 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" >/dev/null 2>warnings
    [ -s warnings ] && fail "$(basename "$page"): $(cat warnings)"
  done
fi

# Prints the names of the model options of a task, one per line.
model_options() {
  "$HEED_BIN/train" --task "$1" --help | sed -n '/^Model/,/^[^ M]/p' | sed -nE 's/^ .*--([a-z][a-z0-9-]*).*/\1/p'
}
for task in transformer-tiny rnn rnn-attention nat vit vit-caption swin; do
  model_options "$task" >options
  grep -qx dim-emb options || fail "$task has no option --dim-emb: $(cat options)"
  while read -r option; do
    grep -qw "${option//-/_}" "$HEED_SOURCE/man/heed-checkpoint.5" ||
      fail "man/heed-checkpoint.5 lacks ${option//-/_}, an attribute of a model of the task $task"
  done <options
done

# Each man page describes how the program differs from the programs that it replaces.
while read -r tool section; do
  grep -qx "\.SH $section" "$HEED_SOURCE/man/$tool.1" || fail "man/$tool.1 has no section $section"
done <<'SECTIONS'
tokenize DIFFERENCES FROM MOSES
tokenize DIFFERENCES FROM SACREBLEU
tokenize DIFFERENCES FROM SUBWORD-NMT
tokenize SENTENCEPIECE
bleu DIFFERENCES FROM SACREBLEU
SECTIONS

# Checks that the comparison itself detects a difference.
printf '.SH OPTIONS\n.TP\n\\fB\\-x\\fR, \\fB\\-\\-extra\\fR \\fIN\\fR\nText.\n.SH EXIT STATUS\n' >page
[ "$(options_of_man page)" = '-x --extra' ] || fail "options of a man page are not found: $(options_of_man page)"
finish
