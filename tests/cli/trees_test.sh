#!/usr/bin/env bash
# Tests parsing from treebank to score: vocabularies, training on trees, trees for sentences, and what is no tree.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
tokenize=$HEED_BIN/tokenize build_vocab=$HEED_BIN/build-vocab train=$HEED_BIN/train translate=$HEED_BIN/translate bleu=$HEED_BIN/bleu

# A treebank of a small language: a sentence is one to three noun phrases around a verb.
nouns=(dog cat bird fish) verbs=(sees hears likes) adjectives=(old small)
phrase() {
  local noun=${nouns[$(($1 % 4))]}
  case $(($1 % 3)) in
    0) echo "(NP (DT the) (NN $noun))" ;;
    1) echo "(NP (DT a) (JJ ${adjectives[$(($1 % 2))]}) (NN $noun))" ;;
    2) echo "(NP-SBJ (NP (DT the) (NN $noun)) (PP (IN near) (NP (DT a) (NN ${nouns[$(($1 / 3 % 4))]}))))" ;;
  esac
}
for i in $(seq 400); do
  echo "( (S $(phrase $((i * 7 % 41))) (VP (VBZ ${verbs[$((i % 3))]}) $(phrase $((i * 5 % 37))) (NP (-NONE- *T*-1))) (. .)) )"
done >all.trees
head -n 360 all.trees >train.trees
tail -n 40 all.trees >dev.trees

expect 0 '(S (NP DT NN )NP (VP VBZ (NP NN )NP )VP . )S' '' bash -c \
  "echo '( (S (NP-SBJ (DT a) (NN dog)) (VP (VBZ sees) (NP (NN it) (-NONE- *))) (. .)) )' | '$tokenize' --mode trees"
expect 0 '(S (NP-SBJ NN )NP-SBJ )S' '' bash -c "echo '(S (NP-SBJ (NN it)))' | '$tokenize' --mode trees --function-tags"
expect 0 'a dog' '' bash -c "echo '(S (NP-SBJ (DT a) (NN dog) (-NONE- *)))' | '$tokenize' --mode leaves"
"$tokenize" --mode leaves -i dev.trees -o dev.words
"$build_vocab" -q --type words --mode leaves train.trees -o words.vocab || fail "build-vocab --mode leaves"
"$build_vocab" -q --type trees train.trees -o trees.vocab || fail "build-vocab --type trees"
grep -qx 'mode: ascii-words' words.vocab || fail "the vocabulary of the words: $(head -5 words.vocab)"
grep -qx 'mode: trees' trees.vocab || fail "the vocabulary of the trees: $(head -5 trees.vocab)"
grep -qx ')NP' trees.vocab || fail "no bracket in the vocabulary of the trees"
grep -q SBJ trees.vocab && fail "a function tag in the vocabulary of the trees"

options=(-v words.vocab trees.vocab --task transformer-tiny --dim-emb 32 --transformer-heads 2 --enc-depth 1 --dec-depth 1
  --mini-batch-words 1000 --learn-rate 0.01 --lr-warmup 5 -j 2 -q)
"$train" --trees train.trees --valid-sets dev.trees -m parser.h5 "${options[@]}" --after 12e --log log || fail "train: exit $?, $(cat log)"
# Sentences and trees in two files are the same training.
"$tokenize" --mode leaves -i train.trees -o train.words
"$train" -t train.words train.trees --valid-sets dev.words dev.trees -m two.h5 "${options[@]}" --after 2e || fail "train -t: exit $?"
"$train" --trees train.trees --valid-sets dev.trees -m one.h5 "${options[@]}" --after 2e || fail "train --trees: exit $?"
"$train" --trees train.trees --valid-sets dev.words dev.trees -m two.h5 "${options[@]}" --after 3e || fail "train --trees after -t: exit $?"

expect 0 '' '' "$translate" -m parser.h5 -q -i dev.words -o parsed
"$tokenize" --mode leaves -i parsed | cmp -s - dev.words || fail "the words of the trees are not those of the sentences"
f1=$("$bleu" dev.trees -m evalb -b -i parsed)
awk "BEGIN { exit !($f1 > 80) }" || fail "F1 $f1 after 12 epochs"

# Validation compares trees, not their text: the gold trees here have other spaces, traces, function tags and an outermost bracket without a label.
"$train" --trees train.trees --valid-sets dev.trees -m exact.h5 "${options[@]}" --valid-metrics exact evalb --valid-freq 12e --after 12e \
  --log-format jsonl >exact.jsonl || fail "train --valid-metrics exact: exit $?"
"$translate" -m exact.h5 -q -b 1 -i dev.words -o parsed || fail "translate -b 1: exit $?"
"$tokenize" --mode trees -i parsed -o parsed.linear
"$tokenize" --mode trees -i dev.trees -o dev.linear
exact=$("$bleu" dev.linear -m exact -b -w 4 -i parsed.linear)
valid=$(grep -o '"exact":[0-9.]*' exact.jsonl | cut -d: -f2)
# Where the two programs compute in another precision, one or two trees may differ.
awk "BEGIN { exit !($exact > 10 && $valid > $exact - 6 && $valid < $exact + 6) }" || fail "--valid-metrics exact is $valid, but should be $exact"
# bleu cannot know that lines are trees, and compares text.
expect 0 '0.0' '' "$bleu" -m exact -b <(echo '( (S (NN dog)) )') -i <(echo '(TOP (S (NN dog)))')

# White space of ASCII separates words; a no-break space belongs to its word, which the source vocabulary keeps whole.
printf 'the\tdog  sees it .\n' | "$translate" -m parser.h5 -q >tab || fail "translate: exit $?"
printf 'the dog sees it .\n' | "$translate" -m parser.h5 -q | cmp -s - tab || fail "a tab is no space: $(cat tab)"
expect 0 $'the\xc2\xa0dog it' '' "$tokenize" --mode ascii-words <<<$'the\xc2\xa0dog\tit'

# Whatever the line and the search, the output is one tree over its words.
{
  echo '( x) ((y z'
  for _ in $(seq 400); do printf 'dog '; done
  echo
  echo ' near  the '
} >odd
printf -- '-LRB- x-RRB- -LRB--LRB-y z\n%s\nnear the\n' "$(sed -n 2p odd | sed 's/ $//')" >odd.words
for search in '-b 1' '-b 4' '-b 3 --precision int8' '--search sample --seed 3' '-b 2 --max-output-length 5'; do
  # shellcheck disable=SC2086
  "$translate" -m parser.h5 -q $search -i odd -o odd.trees || fail "translate $search: exit $?"
  "$tokenize" --mode leaves -i odd.trees | cmp -s - odd.words || fail "translate $search: $(cut -c1-200 odd.trees)"
done
printf 'dog\na dog\n' >two
while read -r line; do echo "$line" | "$translate" -m parser.h5 -q --search exhaustive -n 0; done <two >alone
expect 0 "$(cat alone)" '' "$translate" -m parser.h5 -q --search exhaustive -n 0 -i two
expect 0 '(S *)S' '' bash -c "head -1 dev.words | '$translate' -m parser.h5 --no-detokenize -q"
expect 0 $'0 ||| (TOP *) ||| F0= *\n0 ||| (TOP *' '' bash -c "head -1 dev.words | '$translate' -m parser.h5 --n-best 2 -q"
expect 0 '-0.*' '' bash -c "head -1 dev.words | '$translate' -m parser.h5 --score <(head -1 dev.trees) -q"
expect 0 $'\n(TOP *' 'translate: warning: standard input:1: a line of more than 3 pieces, left empty; *' \
  bash -c "printf 'a a a a a\na dog\n' | '$translate' -m parser.h5 --max-length 3"

# A parser that knows which word is the next to be written: better trees from fewer epochs.
"$build_vocab" -q --type bpe --merges 12 --mode leaves train.trees -o pieces.vocab || fail "build-vocab --type bpe --mode leaves"
counting=(-v pieces.vocab "${options[@]:2}" --transformer-next-word --transformer-positions rotary --transformer-word-positions
  --bpe-dropout 0.1)
"$train" --trees train.trees -m counts.h5 "${counting[@]}" --after 10e || fail "train: exit $?"
for search in '-b 1' '-b 4 -j 2' '-b 4 --mini-batch 1' '-b 3 --precision int8'; do
  # shellcheck disable=SC2086
  expect 0 '' '' "$translate" -m counts.h5 -q $search -i dev.words -o parsed
  "$tokenize" --mode leaves -i parsed | cmp -s - dev.words || fail "translate $search: the words of the trees are not those of the sentences"
  f1=$("$bleu" dev.trees -m evalb --evalb-gold-tags -b -i parsed)
  awk "BEGIN { exit !($f1 > 90) }" || fail "translate $search: F1 $f1 after 10 epochs with the next word"
done
expect 0 $'stack\tterm\tlayer\tposition\tcomponent\tvalue\nboth\tword\t0\t0\t0\t0.000000\n*rotary*' '' \
  "$HEED_BIN/inspect-attention" -m counts.h5 --kind positions -f tsv

# The attention of a parser without this knowledge learns which word comes next.
"$train" --trees train.trees -m guided.h5 "${options[@]}" --guided-alignment leaves --guided-alignment-weight 0.5 --after 12e || fail "train: exit $?"
head -n 20 dev.words >s
head -n 20 dev.trees >t
agreement() {
  "$HEED_BIN/inspect-attention" -q -m "$1" -i s -t t -f pharaoh | tr ' ' '\n' >links
  "$tokenize" --mode trees -i t | awk '{ n = 0; for (i = 1; i <= NF; ++i) { print n "-" i - 1; n += $i !~ /^[()]/ } }' >gold
  paste links gold | awk '{ same += $1 == $2 } END { print int(100 * same / NR) }'
}
[ "$(agreement guided.h5)" -ge "$(($(agreement parser.h5) + 10))" ] || fail "guided: $(agreement guided.h5) % of the links, else $(agreement parser.h5) %"

# inspect-attention shows the attention of the same trees.
{ for _ in $(seq 75); do printf 'the small bird sees the dog near a cat . '; done; echo; } >long
for input in odd long; do
  "$HEED_BIN/inspect-attention" -m parser.h5 --beam-size 4 -i "$input" --lines 1 --format jsonl -q >seen.json || fail "inspect-attention: exit $?"
  linear=$(head -1 "$input" | "$translate" -m parser.h5 -q -b 4 --no-detokenize)
  grep -qF "\"rows\":[\"${linear// /\",\"}\",\"</s>\"]" seen.json ||
    fail "inspect-attention shows another tree than ${linear:0:600}: $(head -c 600 seen.json)"
done
[ "$(wc -w <<<"$linear")" -gt 1000 ] || fail "the tree of the long line has $(wc -w <<<"$linear") pieces only"
printf 'dog\n\n \n' >s
printf '(S (NN dog))\n\n \n' >t
expect 0 '*' '' "$HEED_BIN/inspect-attention" -m parser.h5 -i s -t t -f pharaoh
[[ $(wc -l <stdout) -eq 3 && -z $(sed 1d stdout) ]] || fail "blank lines of trees: $(cat stdout)"
expect 1 '' 'inspect-attention: t:1:1: this bracket is never closed' bash -c \
  "echo '(S (NN dog)' >t; echo dog | '$HEED_BIN/inspect-attention' -m parser.h5 -t t -q"

# A blank line has no tree: a pair with an empty side, which is left out, also where only one of two files has it.
sed '11s/.*//; 20s/.*/ /' train.trees >blank.trees
"$tokenize" --mode leaves -i blank.trees -o blank.words || fail "tokenize --mode leaves: exit $?"
sed '11d; 20d' train.trees | "$tokenize" --mode leaves | cmp -s - <(grep . blank.words) || fail "blank lines change the words of trees"
for text in '--trees blank.trees' '-t blank.words blank.trees' '-t train.words blank.trees'; do
  expect 0 '*training pairs *358,*' "*.*s:11: an empty line; pairs left out because a side is empty: 2 of 360*" \
    bash -c "'$train' $text ${options[*]/-q/} -m x.h5 --guided-alignment leaves --dry-run"
done
"$build_vocab" -q --type trees blank.trees -o blank.vocab || fail "build-vocab --type trees with blank lines: exit $?"

# What is no tree is an error with its place.
printf '(S (NN dog))\n(S (NN dog)\n' >broken
printf 'dog\ndog\n' >two.words
for tool in "$train --trees broken -m x.h5 -v words.vocab trees.vocab" "$tokenize --mode trees -i broken" "$tokenize --mode leaves -i broken" \
  "$build_vocab --type trees broken" "$train -t two.words broken -m x.h5 -v words.vocab trees.vocab"; do
  # shellcheck disable=SC2086
  expect 1 '*' '*: broken:2:1: this bracket is never closed' $tool
done
expect 1 '-*' 'translate: broken:2:1: this bracket is never closed' bash -c "printf 'dog\ndog\n' | '$translate' -m parser.h5 -q --score broken"
printf 'dog\n' >s
printf '(S (NN cat))\n' >t
expect 1 '' "train: t:1: word 1 of the tree is 'cat', but 'dog' in the sentence (both need the same words)" \
  "$train" -t s t -v words.vocab trees.vocab -m x.h5
printf 'cat dog\n' >s
expect 1 '' 'train: t:1: the tree has 1 words, but the sentence has 2 (both need the same words)' \
  "$train" -t s t -v words.vocab trees.vocab -m x.h5
expect 1 '' 'inspect-attention: t:1: the tree has 1 words, but the sentence has 2 (both need the same words)' \
  "$HEED_BIN/inspect-attention" -q -m parser.h5 -i s -t t -f tsv
printf 'dog\ndog\n' >s
expect 1 '' 'train: t: has 1 line, but s has 2 lines (line i of one has to be the tree of the sentence in line i of the other)' \
  "$train" -t s t -v words.vocab trees.vocab -m x.h5
# A bracket in the sentence is -LRB- in the tree, and a blank line, on either side, has no words to compare.
printf 'cat\n( dog\n\ndog\ndog\n' >s
printf '(S (NN cat))\n(S (-LRB- -LRB-) (NN dog))\n(S (NN cat))\n\n(S (NN cat))\n' >t
different="t:5: word 1 of the tree is 'cat', but 'dog' in the sentence (both need the same words)"
expect 1 $'-*\n-*\n-*\n-*' "translate: $different" "$translate" -q -m parser.h5 -i s --score t
expect 1 '*' "inspect-attention: $different" "$HEED_BIN/inspect-attention" -q -m parser.h5 -i s -t t -f pharaoh
expect 1 '' 'tokenize: standard input:1:1: the tree has no words but traces' bash -c "echo '(S (-NONE- *))' | '$tokenize' --mode trees"

# Options that do not go together.
expect 2 '' 'train: --trees: words.vocab is no vocabulary of trees (build-vocab --type trees)' "$train" --trees dev.trees -v words.vocab -m x.h5
expect 2 '' 'train: -v: sentences and trees need a vocabulary each (give two)' "$train" --trees dev.trees -v trees.vocab -m x.h5
expect 2 '' 'train: -t, --tsv and --trees: give one of them' "$train" --trees dev.trees --tsv x -v words.vocab trees.vocab -m x.h5
expect 2 '' 'train: --valid-metrics bleu: has no use for trees (evalb has)' \
  "$train" --trees dev.trees --valid-sets dev.trees --valid-metrics bleu -v words.vocab trees.vocab -m x.h5
expect 2 '' 'train: --valid-metrics chrf: has no use for trees (evalb has)' \
  "$train" --trees dev.trees --valid-sets dev.trees --valid-metrics chrf -v words.vocab trees.vocab -m x.h5
expect 2 '' 'train: --valid-metrics evalb: compares trees (*)' \
  "$train" -t dev.words dev.words --valid-sets dev.words dev.words --valid-metrics evalb -v words.vocab -m x.h5
expect 2 '' 'train: --task nat: a tree is predicted one piece after the other (take another task)' \
  "$train" --trees dev.trees -v words.vocab trees.vocab -m x.h5 --task nat
expect 2 '' 'train: --guided-alignment leaves: the targets are no trees (for a file of this name, give ./leaves)' \
  "$train" -t dev.words dev.words -v words.vocab -m x.h5 --guided-alignment leaves
expect 2 '' 'train: --transformer-word-positions takes the place of positions that are added to the embeddings: give *' \
  "$train" --trees dev.trees -v words.vocab trees.vocab -m x.h5 --transformer-word-positions
expect 2 '' 'train: --dim-emb 9 is odd: --transformer-word-positions adds sinusoids, which need an even width' \
  "$train" --trees dev.trees -v words.vocab trees.vocab -m x.h5 --dim-emb 9 --transformer-heads 3 --transformer-positions none \
  --transformer-word-positions
"$build_vocab" -q --type unigram -s 36 --mode words dev.words -o unigram.vocab || fail "build-vocab --type unigram"
expect 2 '' 'train: --transformer-next-word: the pieces of the source vocabulary do not tell where a word ends (*)' \
  "$train" --trees dev.trees -v unigram.vocab trees.vocab -m x.h5 --transformer-next-word
expect 2 '' 'train: --transformer-word-positions: needs a decoder that writes one token after the other, *' \
  "$train" -t dev.words dev.words -v words.vocab -m x.h5 --task nat --transformer-positions rotary --transformer-word-positions
expect 2 '' 'train: --transformer-word-positions: the pieces of the source vocabulary do not tell where a word ends (*)' \
  "$train" --trees dev.trees -v unigram.vocab trees.vocab -m x.h5 --transformer-positions none --transformer-word-positions
expect 2 '' 'translate: --no-repeat-ngram-size: parser.h5 writes trees, which this option may break' \
  "$translate" -m parser.h5 --no-repeat-ngram-size 2 -i s
expect 2 '' 'translate: --max-length-factor: has no use with parser.h5, which writes trees (--max-output-length limits their length)' \
  "$translate" -m parser.h5 --max-length-factor 2 -i s
expect 2 '' 'build-vocab: --mode trees: does not fit --type bpe (*)' "$build_vocab" --mode trees train.trees
expect 2 '' 'tokenize: --lowercase: would change the labels of --mode trees' "$tokenize" --mode trees --lowercase -i dev.trees
expect 2 '' 'tokenize: --function-tags: has a use with --mode trees only' "$tokenize" --function-tags -i dev.words
finish
