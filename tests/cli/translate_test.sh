#!/usr/bin/env bash
# Tests translate with pipes and files and a model after a very short training: exit codes, messages, wrong models, a
# full disk, a closed pipe, an idle input.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
translate=$HEED_BIN/translate

head -n 200 "$HEED_SOURCE/data/train.en" >en
head -n 200 "$HEED_SOURCE/data/train.fr" >fr
"$HEED_BIN/build-vocab" -q --type bpe --merges 100 --language en,fr en fr >vocab || fail "build-vocab failed"
"$HEED_BIN/train" -q -j 1 -t en fr -v vocab -m m.h5 --task transformer-tiny --enc-depth 1 --dec-depth 1 --dim-emb 32 \
  --transformer-heads 2 --transformer-dim-ffn 64 --after 1u --learn-rate 1e-6 || fail "train failed"
head -n 40 "$HEED_SOURCE/data/test.en" >source
short=(--max-output-length 10)

# One output line for each input line, from a file or a pipe to a file or a pipe.
expect 0 '?*' '' "$translate" -m m.h5 "${short[@]}" -i source
[ "$(wc -l <stdout)" -eq 40 ] || fail "$(wc -l <stdout) lines of 40"
mv stdout expected
gzip -k source
for input in '-i source.gz' '- <source' '<source -j 3 --maxi-batch 7'; do
  bash -c "'$translate' -m m.h5 ${short[*]} ${input/#- /}" | cmp - expected || fail "$input gives something else"
done
expect 0 '' '' "$translate" -m m.h5 "${short[@]}" -i source -o out
cmp out expected || fail "-o gives something else"
expect 0 '' '' "$translate" -m m.h5 "${short[@]}" -i source -o out.gz
zcat out.gz | cmp - expected || fail "-o out.gz gives something else"
expect 0 '' '' "$translate" -m m.h5 -i /dev/null
expect 0 $'0 |||  ||| F0= 0.0000 ||| 0.0000 ||| \n1 ||| * ||| F0= -* ||| -* ||| *-0*\n1 ||| *' '' \
  bash -c "(echo; head -n 1 source) | '$translate' -m m.h5 --n-best 2 --alignment"
expect 0 '*' 'translate: 40 lines, * pieces in *lines/s, * pieces/s, 2 threads, *translate: expected * pieces/s, of which:*products *Mflop a piece at *attention *' "$translate" -m m.h5 "${short[@]}" -i source --stats -j 2
expect 2 '' 'translate: HEED_ISA=mmx: unknown instruction set (this machine has: *)' env HEED_ISA=mmx "$translate" -m missing.h5 -i source

# --device: a GPU that is not there, or that this build cannot use, is named before any model is read.
expect 2 '' "translate: --device: 'gpu' is none of auto, cpu and cuda:N (such as cuda:0)" \
  "$translate" -m missing.h5 -i source --device gpu
expect 1 '' 'translate: *--device cpu*' "$translate" -m missing.h5 -i source --device cuda:99
expect 1 '' 'translate: *--device cpu*' "$translate" -m missing.h5 -i source --score source --device cuda:99
"$translate" -m m.h5 "${short[@]}" -i source --device cpu | cmp - expected || fail "--device cpu gives something else"

# An output file appears only when it is complete.
expect 1 '' 'translate: source:*: has * pieces, more than the longest that is translated, 4 (*' \
  "$translate" -m m.h5 -i source -o none --max-length 4 --on-long fail
[ ! -e none ] || fail "a failed run leaves its output"
[ -z "$(find . -name '.*.tmp')" ] || fail "a failed run leaves its temporary file"

# Files that are not models: the message says what the file is, and what to do.
expect 2 '' 'translate: needs a model: -m MODEL.h5 (train makes one)' "$translate" -i source
expect 1 '' 'translate: missing.h5: cannot open: No such file or directory' "$translate" -m missing.h5 -i source
expect 1 '' 'translate: vocab: is a vocabulary, not a checkpoint (train -v vocab makes a checkpoint with it)' "$translate" -m vocab -i source
expect 1 '' 'translate: source: is not a heed checkpoint: not an HDF5 file (checkpoints are made by train)' "$translate" -m source -i source
expect 1 '' 'translate: -: a checkpoint cannot come from standard input (name a file)' bash -c "'$translate' -m - -i source <m.h5"
expect 1 '' 'translate: -: a checkpoint cannot come from standard input (name a file)' bash -c "'$translate' -m m.h5 - -i source <m.h5"
gzip -c m.h5 >packed.h5.gz
expect 1 '' 'translate: packed.h5.gz: looks like gzip data, and a checkpoint must not be compressed (unpack it: gunzip packed.h5.gz)' \
  "$translate" -m packed.h5.gz -i source
expect 1 '' 'translate: /dev/stdin: is not a regular file, and a checkpoint cannot come from a pipe (name a file)' \
  bash -c "cat m.h5 | '$translate' -m /dev/stdin -i source"
expect 2 '' "translate: --models: 'source' is not a checkpoint (text to translate is given with -i source or < source)" "$translate" -m m.h5 source
head -c 3000 m.h5 >cut.h5
expect 1 '' 'translate: cut.h5: *' "$translate" -m cut.h5 -i source
size=$(wc -c <m.h5)
(head -c $((size / 2)) m.h5 && printf '\377' && tail -c +$((size / 2 + 2)) m.h5) >flipped.h5
cmp -s m.h5 flipped.h5 && fail "nothing was flipped"
expect 1 '' 'translate: flipped.h5: is damaged: its checksum does not match its contents (restore it from a copy)' \
  "$translate" -m flipped.h5 -i source

# A shortlist learnt from the model's pieces restricts the translations; a shortlist with all pieces changes nothing.
for language in en fr; do "$HEED_BIN/tokenize" -m m.h5 -l $language -i $language >pieces.$language; done
"$HEED_BIN/build-vocab" -q --shortlist pieces.en pieces.fr -o list || fail "build-vocab --shortlist failed"
expect 0 '?*' '' "$translate" -m m.h5 "${short[@]}" -i source --shortlist list
[ "$(wc -l <stdout)" -eq 40 ] || fail "$(wc -l <stdout) lines of 40 with a shortlist"
(echo 'heed-shortlist 1'; sed '1,/^pieces:/d; s/.*/ & 1/' vocab | tail -n +5; echo 'a a 1') >all
"$translate" -q -m m.h5 "${short[@]}" -i source --shortlist all | cmp - expected || fail "a shortlist of all pieces changes something"
expect 0 '*' 'translate: 40 lines, * pieces/s, 2 threads, *' "$translate" -m m.h5 "${short[@]}" -i source --shortlist list --stats -j 2
grep -q expected stderr && fail "the speed expected is that of the whole vocabulary"
gzip -k list
expect 0 '?*' '' "$translate" -m m.h5 "${short[@]}" -i source --shortlist list.gz
expect 1 '' 'translate: vocab:1: is no shortlist: it does not start with ?heed-shortlist 1? *' \
  "$translate" -m m.h5 -i source --shortlist vocab
expect 1 '' 'translate: missing: cannot open: No such file or directory' "$translate" -m m.h5 -i source --shortlist missing
expect 2 '' 'translate: --shortlist: has no use with --score*' "$translate" -m m.h5 -i source --score source --shortlist list

# A draft model changes nothing, and is of use for lines that come one at a time.
"$translate" -q -m m.h5 "${short[@]}" -b 1 --scores -i source >greedy
"$translate" -q -m m.h5 "${short[@]}" -b 1 --scores -i source --draft-model m.h5 --mini-batch 1 | cmp - greedy || fail "a draft model changes something"
expect 0 '*' 'translate: 40 lines, *translate: the draft model was used for 40 of 40 lines: * guessed tokens were right; *' \
  "$translate" -m m.h5 "${short[@]}" -b 1 -i source --draft-model m.h5 --mini-batch 1 --stats
expect 0 '*' 'translate: the draft model was used for 0 of 40 lines: it is for *' "$translate" -m m.h5 "${short[@]}" -b 1 -i source --draft-model m.h5 -j 1
expect 1 '' 'translate: missing.h5: cannot open: No such file or directory' "$translate" -m m.h5 -b 1 -i source --draft-model missing.h5
expect 2 '' 'translate: --draft-model: needs greedy search (add -b 1)' "$translate" -m m.h5 -i source --draft-model m.h5
expect 2 '' 'translate: --draft-length: needs --draft-model' "$translate" -m m.h5 -b 1 -i source --draft-length 3
expect 2 '' 'translate: *--assistant-model*--draft-model*' "$translate" -m m.h5 -i source --assistant-model m.h5
expect_coprocess "$translate" -m m.h5 "${short[@]}" -b 1 --draft-model m.h5

# The command line.
expect 2 '' 'translate: *--lenpen*--normalize*fairseq*' "$translate" -m m.h5 --lenpen 1
expect 2 '' 'translate: *--beamsize*--beam-size*' "$translate" -m m.h5 --beamsize 3
expect 0 '?*' '' "$translate" --model m.h5 "${short[@]}" -i source
expect 2 '' "translate: --normalize 'foo': not a number" "$translate" -m m.h5 -n foo
expect 2 '' "translate: --n-best 'foo': not a whole number (*" "$translate" -m m.h5 --n-best foo
expect 2 '' "translate: 'source' belongs to no option (-i source or < source reads a file)" "$translate" -m m.h5 -b 1 source
for option in '--top-k 5' '--top-p 0.5' '--temperature 2'; do
  # shellcheck disable=SC2086
  expect 2 '' "translate: ${option% *}: needs --search sample" "$translate" -m m.h5 -i source $option
done
expect 0 '?*' '' "$translate" -m m.h5 "${short[@]}" -i source --search sample --top-k 5
expect 0 '?*' 'translate: warning: --seed does nothing without --search sample' "$translate" -m m.h5 "${short[@]}" -i source --seed 3
expect 0 '?*' '' "$translate" -m m.h5 "${short[@]}" -i source --search sample --seed 3
expect 0 '?*' 'translate: warning: --seed does nothing without --search sample' "$translate" -m m.h5 -i source --score source --seed 3
expect 2 '' 'translate: --beam-size: has no use with --search sample' "$translate" -m m.h5 -i source --search sample -b 3
expect 2 '' 'translate: --normalize: --length-penalty takes its place (leave one of them out)' \
  "$translate" -m m.h5 -i source -n 1 --length-penalty 1
for option in --score --shortlist; do
  expect 2 '' "translate: $option - reads standard input, and so does the input (give files)" "$translate" -m m.h5 "$option" -
done
expect 0 '-*' '' bash -c "head -n 2 source >two; '$translate' -m m.h5 -i two --score - <two"
expect 2 '' 'translate: --n-best: has no use with --score, which translates nothing' "$translate" -m m.h5 -i source --score source --n-best 2
expect 2 '' "translate: --alignment 'often': must be hard, soft or a threshold above 0 and at most 1" "$translate" -m m.h5 --alignment often
expect 2 '' 'translate: --beam-size*0*' "$translate" -m m.h5 -b 0
expect 1 '' 'translate: missing: cannot open: No such file or directory' "$translate" -m m.h5 -i missing
head -n 39 source >shorter
expect 1 '*' 'translate: shorter: has 39 lines, but source has 40 lines (each line needs one translation to score)' \
  "$translate" -m m.h5 -i source --score shorter
expect 0 '-*' '' "$translate" -m m.h5 -i source --score source
expect 0 '*usage: translate*--beam-size*' '' "$translate" --help
expect 0 'translate (heed) *' '' "$translate" --version

# Invalid text.
printf 'ok\na \377 b\n' >invalid
expect 0 '*' 'translate: warning: invalid:2:3: invalid UTF-8 replaced by U+FFFD; *' "$translate" -m m.h5 -i invalid "${short[@]}"
expect 1 '?*' 'translate: invalid:2:3: invalid UTF-8 (*' "$translate" -m m.h5 -i invalid --on-invalid-utf8 fail "${short[@]}"
head -c 1000000 /dev/zero | tr '\0' 'a' >long
expect 0 '*' 'translate: warning: long:1: a line of more than 1000 pieces, only the beginning was translated; such lines: 1 (*' \
  "$translate" -m m.h5 -i long -b 1 "${short[@]}"
head -c 300 source.gz >cut.gz
expect 1 '*' 'translate: cut.gz:*: the gzip data is damaged or cut short *' "$translate" -m m.h5 -i cut.gz "${short[@]}"

# The rules that every program keeps: a full disk, a closed pipe, an idle input.
expect_full_disk translate -m m.h5 -i source "${short[@]}"
expect 1 '' 'translate: /dev/full: *No space left on device' "$translate" -m m.h5 "${short[@]}" -i source -o /dev/full
yes 'a line' | head -n 20000 | "$translate" -q -m m.h5 -b 1 --max-output-length 3 --maxi-batch 100 2>stderr | head -n 1 >/dev/null
[ "${PIPESTATUS[2]}" -eq 141 ] || fail "a closed pipe ends with ${PIPESTATUS[2]} instead of SIGPIPE"
[ -s stderr ] && fail "a closed pipe is not silent: $(cat stderr)"
expect_coprocess "$translate" -m m.h5 "${short[@]}"
finish
