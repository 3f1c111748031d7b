#!/usr/bin/env bash
# Checks guided alignment: the attention learns the alignment that is given, a training resumes with it, and what is
# wrong with a file of alignments is said with its line.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
train=$HEED_BIN/train inspect=$HEED_BIN/inspect-attention
command -v h5diff >/dev/null || { echo "no h5diff (hdf5-tools)"; exit 77; }

# A language whose words are those of another one in reverse order. The words are long, so that they are cut into pieces.
awk -v seed=7 'BEGIN {
  srand(seed)
  for (pair = 0; pair < 500; ++pair) {
    words = 2 + int(5 * rand())
    source = target = links = ""
    for (i = 0; i < words; ++i) {
      k = int(30 * rand())
      source = source (i ? " " : "") sprintf("%c%cra%c", 97 + k % 26, 98 + k % 7, 99 + k % 5)
      target = sprintf("%c%cos%c", 97 + k % 26, 100 + k % 7, 101 + k % 5) (i ? " " : "") target
      links = links (i ? " " : "") (words - 1 - i) "-" i
    }
    print source >"source"
    print target >"target"
    print links >"gold"
  }
}'
cat source target | "$HEED_BIN/build-vocab" -q --mode none --type bpe -s 90 >vocab || fail "build-vocab failed"
[ "$("$HEED_BIN/tokenize" -q -m vocab <source | wc -w)" -gt "$(wc -w <source)" ] || fail "the words are not cut into pieces"

# run MODEL UPDATES OPTION...: trains a model
run() {
  local model=$1 updates=$2
  shift 2
  "$train" -q -t source target -v vocab -j 1 --precision float32 --tied-embeddings-all --mini-batch-words 500 --learn-rate 0.003 \
    --lr-warmup $((updates >= 100 ? 20 : 0)) --after "${updates}u" -m "$model" "$@"
}

# agreement MODEL: prints how many percent of the model's links are right
agreement() {
  "$inspect" -q -m "$1" -i source -t target -f pharaoh >links || fail "$1: inspect-attention: exit $?"
  paste -d ' ' <(tr ' ' '\n' <gold | grep -c .) <(paste -d '|' gold links | awk -F '|' '{
    n = split($1, want, " "); m = split($2, got, " "); delete right
    for (i = 1; i <= n; ++i) right[want[i]]
    for (i = 1; i <= m; ++i) hits += got[i] in right
  } END { print hits + 0 }') | awk '{ print int(100 * $2 / $1) }'
}

# Each line: the name of a model, the updates of its training, and its options.
while read -r name updates options; do
  read -ra options <<<"$options"
  run "$name.h5" "$updates" "${options[@]}" || fail "$name: exit $?"
  run "$name-guided.h5" "$updates" "${options[@]}" --guided-alignment gold --guided-alignment-weight 0.5 || fail "$name, guided: exit $?"
  without=$(agreement "$name.h5") with=$(agreement "$name-guided.h5")
  [ "$with" -ge 80 ] && [ "$((without + 5))" -le "$with" ] || fail "$name: $with % of the links are right, $without % without guidance"
  run resumed.h5 5 "${options[@]}" --guided-alignment gold || fail "$name, first half: exit $?"
  run resumed.h5 10 "${options[@]}" --guided-alignment gold || fail "$name, second half: exit $?"
  run whole.h5 10 "${options[@]}" --guided-alignment gold || fail "$name: exit $?"
  h5diff whole.h5 resumed.h5 /parameters /parameters >difference || fail "$name resumed: $(head -n 3 difference)"
  run zero.h5 10 "${options[@]}" --guided-alignment gold --guided-alignment-weight 0 || fail "$name, weight 0: exit $?"
  run without.h5 10 "${options[@]}" || fail "$name: exit $?"
  h5diff zero.h5 without.h5 /parameters /parameters >difference || fail "$name: the weight 0 is not as without alignments"
  h5diff whole.h5 without.h5 /parameters /parameters >/dev/null && fail "$name: the alignments change nothing"
  rm resumed.h5 whole.h5 zero.h5 without.h5
done <<'END'
transformer 100 --task transformer-tiny --enc-depth 1 --dec-depth 2 --dim-emb 64 --transformer-heads 2 --dropout 0
rnn 250 --task rnn-attention --enc-depth 1 --dec-depth 1 --dim-emb 32 --dim-rnn 32 --attention dot
END

# The log; pairs that are left out or cropped keep the alignments of the others; input as TSV, tokens, gzip and empty lines.
tiny=(--task transformer-tiny --enc-depth 1 --dec-depth 1 --dim-emb 16 --transformer-heads 2)
run log.h5 2 "${tiny[@]}" --guided-alignment gold --disp-freq 1u --log-format jsonl >log || fail "jsonl: exit $?"
grep -q '"event":"update".*"alignment":[0-9.]' log || fail "no loss of the alignment: $(cat log)"
run log.h5 4 "${tiny[@]}" --guided-alignment gold --disp-freq 1u --log-format tsv >log || fail "tsv: exit $?"
head -n 1 log | grep -q $'\talignment\t.*\ttext$' || fail "no column of the alignment: $(cat log)"
run text.h5 2 "${tiny[@]}" --disp-freq 1u --log-format jsonl >log || fail "jsonl: exit $?"
grep -q '"alignment"' log && fail "a loss of no alignment: $(cat log)"
for how in skip crop; do
  run "$how.h5" 3 "${tiny[@]}" --guided-alignment gold --max-length 12 --on-long "$how" 2>warning || fail "$how: exit $?"
done
"$HEED_BIN/tokenize" -q --mode none <source >tokens
gzip -c gold >gold.gz
run tsv.h5 3 "${tiny[@]}" --guided-alignment gold || fail "exit $?"
paste source target | "$train" -q --tsv - -v vocab -j 1 --precision float32 --tied-embeddings-all --mini-batch-words 500 --learn-rate 0.003 \
  --lr-warmup 0 --after 3u -m piped.h5 "${tiny[@]}" --pretokenized --guided-alignment gold.gz || fail "TSV: exit $?"
h5diff tsv.h5 piped.h5 /parameters /parameters >difference || fail "TSV of tokens, gzip: $(head -n 3 difference)"
yes '' | head -n 500 >empty
run empty.h5 3 "${tiny[@]}" --guided-alignment empty || fail "empty lines: exit $?"
run dry.h5 3 "${tiny[@]}" --guided-alignment gold --dry-run >log || fail "--dry-run: exit $?"
grep -q 'speed expected' log || fail "--dry-run: $(cat log)"

# Links of long words take little memory: those of a pair that is left out are not made, and those of new pieces once.
word() { head -c "$1" /dev/zero | tr '\0' 'c'; echo; }
{ cat source; word 20000; word 200; } >long.source
{ cat target; word 20000; word 200; } >long.target
{ cat gold; echo 0-0; echo 0-0; } >long.gold
(
  ulimit -v 3000000
  "$train" -q -t long.source long.target -v vocab -j 1 "${tiny[@]}" --guided-alignment long.gold --bpe-dropout 0.1 --after 2u --lr-warmup 0 -m long.h5
) 2>warning || fail "long words: exit $?: $(cat warning)"

# What is wrong is said with its line.
expect 1 '' 'train: nothing.align: cannot open: No such file or directory*' run new.h5 3 "${tiny[@]}" --guided-alignment nothing.align
sed '3s/.*/0-0 1:1/' gold >bad
expect 1 '' "train: bad:3:5: '1:1' is no link, source-target from 0 (such as 0-0 1-2)" run new.h5 3 "${tiny[@]}" --guided-alignment bad
sed '4s/$/ 0-17/' gold >bad
expect 1 '' "train: bad:4:*: '0-17' leads out of the sentences of * and * words (align the same two texts)" \
  run new.h5 3 "${tiny[@]}" --guided-alignment bad
head -n 499 gold >bad
expect 1 '' 'train: bad: has 499 lines, but source + target has more (each sentence pair needs its alignment, if only an empty line)' \
  run new.h5 3 "${tiny[@]}" --guided-alignment bad
(cat gold && echo 0-0) >bad
expect 1 '' 'train: bad: has more lines than source + target, which has 500 lines (each sentence pair needs its alignment, if only an empty line)' \
  run new.h5 3 "${tiny[@]}" --guided-alignment bad
expect 2 '' 'train: --guided-alignment-weight*--guided-alignment FILE*' run new.h5 3 "${tiny[@]}" --guided-alignment-weight 0.2
expect 2 '' "train: --guided-alignment-weight -1: must be between 0 and 1000" run new.h5 3 "${tiny[@]}" --guided-alignment gold --guided-alignment-weight -1
expect 2 '' 'train: --guided-alignment: --task rnn has no attention to guide (*' run new.h5 3 --task rnn --guided-alignment gold
[ -e new.h5 ] && fail "an error left a model"
# A training goes on with the alignments it began with.
expect 1 '' 'train: tsv.h5: cannot go on with this training*' run tsv.h5 6 "${tiny[@]}"

finish
