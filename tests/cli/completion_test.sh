#!/usr/bin/env bash
# Tests the completion for bash with the real programs: options, choices and file names.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
source "$HEED_SOURCE/scripts/completion/heed.bash" || fail "heed.bash cannot be sourced"
PATH=$HEED_BIN:$PATH

# completes EXPECTED WORD...: WORD... are a program and its arguments; checks the completions of the last WORD
completes() {
  local expected=$1
  shift
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  COMPREPLY=()
  _heed
  [ "${COMPREPLY[*]}" = "$expected" ] || fail "$*: completes to '${COMPREPLY[*]}' instead of '$expected'"
}

: >text.en
: >text.de
completes '--detokenize' tokenize --deto
completes '--uppercase-first' tokenize -d --up
completes '--no-detokenize' tokenize --no-deto
completes 'moses 13a intl char words ascii-words none trees leaves labels images' tokenize --mode ''
completes 'moses' tokenize --mode mo
completes 'moses' tokenize --mode = mo
completes 'words bpe unigram char trees' build-vocab --type =
completes 'replace keep fail' tokenize -q --on_invalid_utf8 ''
completes 'text.en' tokenize -i text.e
completes 'text.de' train -t text.en text.d
completes 'bleu chrf ter exact evalb' bleu -m ''
completes 'chrf' bleu -m bleu c
completes 'hard soft' translate --alignment ''
completes 'last all' inspect-attention --layer ''
completes 'mean max all' inspect-attention --head ''
completes 'argmax threshold' inspect-attention --alignment ''
completes 'auto cpu' translate --device ''
completes 'average gaussian boxcar triangular epanechnikov learned all' kernel-regression --pooling ''
completes 'learned' kernel-regression -p gaussian le
completes '' train --dropout ''
completes '' train --after ''
completes '' build-vocab --user-symbols ''
: >a.h5
completes 'a.h5' translate -m ''
completes 'a.h5' translate --models = a
completes 'a.h5' train --teacher ''
completes 'text.en' build-vocab --lowercase text.e
mkdir folder
completes 'leaves' train --guided-alignment le
completes 'text.en' train --guided-alignment text.e
completes 'folder' train --tempdir ''
rmdir folder
completes '13a intl char zh none' bleu -tok ''
completes '13a intl char zh none' bleu --tok ''
completes 'a.h5' translate --model ''
completes '' bleu -nr ''
completes '' tokenize --threads ''
completes '' tokenize -l ''
completes '--version' bleu --versi
completes '--help' tokenize --he
completes '' missing-tool --he

# The options of a program may depend on --task.
cat >by-task <<'PROGRAM'
#!/bin/sh
case "$*" in
  '--task=rnn --help') printf '      --task rnn|transformer\n      --rnn-cell gru|lstm\n' ;;
  --help) printf '      --task rnn|transformer\n      --heads N\n' ;;
  *) exit 2 ;;
esac
PROGRAM
chmod +x by-task
completes '--task --heads' ./by-task --
completes '--task --rnn-cell' ./by-task --task rnn --
completes '--task --rnn-cell' ./by-task --task = rnn --
completes '--task --rnn-cell' ./by-task --task transformer --task rnn --
completes '--task --heads' ./by-task --task unknown --
completes 'gru lstm' ./by-task --task rnn --rnn-cell ''
completes 'rnn' ./by-task --task r
completes 'rnn' ./by-task --task = r
completes 'transformer' ./by-task --task rnn --task t
COMP_WORDS=(./by-task -- --task rnn) COMP_CWORD=1
_heed
[ "${COMPREPLY[*]}" = '--task --rnn-cell' ] || fail "the --task behind the cursor has no effect: '${COMPREPLY[*]}'"

# The completion offers every option of every program.
for source in "$HEED_SOURCE"/tools/*.cpp; do
  tool=$(basename "$source" .cpp)
  COMP_WORDS=("$tool" --) COMP_CWORD=1
  _heed
  offered=" ${COMPREPLY[*]} "
  while read -r option; do
    [[ $offered == *" $option "* ]] || fail "$tool: $option is not offered"
  done < <("$tool" --help | sed -nE 's/^  (-., |    )(--[[:alnum:]-]+).*/\2/p')
  complete -p "$tool" >/dev/null || fail "$tool has no completion"
done

# Installed under a program's name, the completion script completes that program.
cp "$HEED_SOURCE/scripts/completion/heed.bash" my-tokenize
(source ./my-tokenize && complete -p my-tokenize >/dev/null) || fail "an installed copy completes nothing"
finish
