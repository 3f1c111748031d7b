#!/usr/bin/env bash
# Tests inspect-attention with models that read images: formats, --query, --rollout, given targets, messages, bad images.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
inspect=$HEED_BIN/inspect-attention train=$HEED_BIN/train
shapes=$HEED_SOURCE/data/shapes
images=$shapes/test.images

small=(-q -j 2 --patch-size 8 --dim-emb 32 --enc-depth 2 --transformer-heads 2 --transformer-dim-ffn 64 --mini-batch 50 --augment none)
"$train" "${small[@]}" --task vit -t "$shapes/train.images" "$shapes/train.labels" -m m.h5 --after 3e || fail "train --task vit: exit $?"
"$train" "${small[@]}" --task vit --image-pooling mean -t "$shapes/train.images" "$shapes/train.labels" -m mean.h5 --after 1u || fail "train with mean pooling: exit $?"
"$HEED_BIN/build-vocab" -q --type words --mode words "$shapes/train.sentences" -o words.vocab
"$train" "${small[@]}" --task vit-caption --dec-depth 2 -t "$shapes/train.images" "$shapes/train.sentences" -v words.vocab -m c.h5 --after 1e ||
  fail "train --task vit-caption: exit $?"

# sums TSV: checks that the weights of each query sum to 1
sums() {
  awk -F '\t' 'NR > 1 { sum[$1 " " $2 " " $3 " " $4 " " $5] += $9; ++n } END { if (n < 4) exit 1; for (q in sum) if (sum[q] < 0.9999 || sum[q] > 1.0001) exit 1 }' "$1" ||
    fail "$1: the weights of a query do not sum to 1: $(head -n 5 "$1")"
}

# TSV: the class token, or a patch, or the mean of all patches, to all tokens.
header=$'line\tkind\tlayer\thead\tquery\tquery_token\tkey\tkey_token\tweight'
expect 0 "$header"$'\n1\tencoder\t2\tmean\t0\t<class>\t0\t<class>\t*\n1\tencoder\t2\tmean\t0\t<class>\t1\t0,0\t*\n1\tencoder\t2\tmean\t0\t<class>\t16\t3,3\t*' '' \
  "$inspect" -m m.h5 -i "$images" --lines 1
sums stdout
"$inspect" -m m.h5 -i "$images" --lines 1-3 --layer all --head all >every || fail "--layer all --head all: exit $?"
sums every
[ "$(wc -l <every)" -eq $((1 + 3 * 2 * 2 * 17)) ] || fail "$(wc -l <every) lines for 3 images, 2 layers, 2 heads and 17 tokens"
expect 0 $'*\n1\tencoder\t2\tmean\t0\t3,1\t0\t<class>\t*' '' "$inspect" -m m.h5 -i "$images" --lines 1 --query 31,8
sums stdout
expect 0 $'*\n1\tencoder\t2\tmean\t0\tmean\t0\t0,0\t*\n1\tencoder\t2\tmean\t0\tmean\t15\t3,3\t*' '' "$inspect" -m mean.h5 -i "$images" --lines 1
sums stdout
expect 0 $'*\n1\tencoder\t2\trollout\t0\t<class>\t0\t<class>\t*' '' "$inspect" -m m.h5 -i "$images" --lines 1 --rollout
sums stdout
expect 0 $'*\n1\tencoder\t1\trollout\t0\t0,0\t*\n1\tencoder\t2\trollout\t0\t0,0\t*' '' "$inspect" -m m.h5 -i "$images" --lines 1 --rollout --layer all --query 0,0
sums stdout
# Rollout of one layer is half of the layer's attention, and half of the token itself.
"$inspect" -m m.h5 -i "$images" --lines 1 --rollout --layer 1 --query 9,9 | cut -f 9 >rolled
"$inspect" -m m.h5 -i "$images" --lines 1 --layer 1 --query 9,9 | paste - rolled |
  awk -F '\t' 'NR > 1 { d = $10 - 0.5 * $9 - ($6 == $8 ? 0.5 : 0); if (d > 2e-6 || d < -2e-6) exit 1 }' || fail "the rollout of one layer"
expect 0 '{"line":2,"kind":"encoder","layer":1,"head":2,"rows":\["<class>"\],"columns":\["<class>","0,0","1,0",*' '' \
  "$inspect" -m m.h5 -i "$images" --lines 2 --layer 1 --head 2 -f jsonl

# Tables: a grid of numbers, or the greatest weights.
expect 0 $'line 1: images/1001.png → * (p = 0.*)\nencoder attention of the class token, layer 2: mean of heads, in percent\n*0*1*2*3\n0  *\n3  *' '' \
  "$inspect" -m m.h5 -i "$images" --lines 1 -f table
expect 0 $'*\nencoder attention, layer 2, mean of heads\n<class>  * 0.??  * 0.??' '' "$inspect" -m m.h5 -i "$images" --lines 1 -f table --top 2

# Pictures for a terminal, as SVG and as PNG.
expect 0 $'line 1: images/1001.png -> * (p = 0.*)\nencoder attention of the class token, layer 2\nimage  *mean of heads\n*\nweight 0 *' '' \
  "$inspect" -m m.h5 -i "$images" --lines 1 -f heatmap --ascii --head all
LC_ALL=C grep -q '[^ -~]' stdout && fail "--ascii draws other characters"
COLORTERM=truecolor "$inspect" -m m.h5 -i "$images" --lines 1 -f heatmap --color always --width 60 >colors
grep -q $'\x1b\\[38;2;[0-9;]*48;2;[0-9;]*m▀' colors || fail "no half blocks in 24-bit colours"
for model in m c; do
  expect 0 '' '' "$inspect" -m $model.h5 -i "$images" --lines 1,3 --layer all --head all -o map.svg
  [[ $(head -c 5 map.svg) == '<?xml' && $(tail -c 7 map.svg) == '</svg>' ]] || fail "map.svg is no whole SVG"
  [ "$(grep -c '<image ' map.svg)" -eq 4 ] || fail "$model: an SVG of two images does not hold each in colour and in grey"
  expect 0 '' '' "$inspect" -m $model.h5 -i "$images" --lines 1,3 -o map.png
  [ "$(head -c 4 map.png | tail -c 3)" = PNG ] || fail "map.png is no PNG"
  expect 0 '' '' "$inspect" -m $model.h5 -i "$images" --lines 1-2 -o map.h5
done

# Sentences: cross attention of each word; decoder attention is that of text.
expect 0 $'*\n1\tcross\t2\tmean\t0\t*\t0\t0,0\t*' '' "$inspect" -m c.h5 -i "$images" --lines 1
sums stdout
printf 'a red\nblue\n' >given
head -n 2 "$images" | sed "s|^|$shapes/|" >two
expect 0 $'*\n1\tcross\t2\tmean\t0\ta\t0\t0,0\t*\n1\tcross\t2\tmean\t2\t</s>\t15\t3,3\t*' '' "$inspect" -m c.h5 -i two -t given
expect 0 $'line 1: images/1001.png -> a red\ncross attention, layer 2, mean of heads\nimage *a *red*\n*' '' \
  bash -c "'$inspect' -m c.h5 -i two -t given -f heatmap --ascii --width 100 --lines 1 | sed 's|$shapes/||'"
expect 0 $'*\n1\tdecoder\t2\tmean\t2\tred\t0\t<s>\t*' '' bash -c "'$inspect' -m c.h5 -t given --kind decoder <two"
expect 0 $'line 1: *\ndecoder attention, layer 2, mean of heads\n*<s>*' '' "$inspect" -m c.h5 -i two -t given --lines 1 --kind decoder -f heatmap --ascii
expect 0 $'*\n1\tencoder\t2\tmean\t0\tmean\t0\t0,0\t*' '' "$inspect" -m c.h5 -i "$images" --lines 1 --kind encoder
"$inspect" -m c.h5 -i "$images" --lines 1 --kind all >kinds || fail "--kind all: exit $?"
sums kinds
[ "$(cut -f 2 kinds | sort -u | tr '\n' ' ')" = "cross decoder encoder kind " ] || fail "--kind all shows $(cut -f 2 kinds | sort | uniq -c)"

# A Swin Transformer attends within windows: patches outside of the query's window have no weight. A stage merges patches.
"$train" -q -j 2 --task swin -t "$shapes/train.images" "$shapes/train.labels" -m s.h5 --patch-size 2 --window-size 4 --dim-emb 16 --swin-depths 2 2 \
  --swin-heads 2 4 --mini-batch 50 --augment none --after 2u || fail "train --task swin: exit $?"
"$inspect" -m s.h5 -i "$images" --lines 1 --layer all --head all >windows || fail "attention within windows: exit $?"
sums windows
for layer in 1,256,2 2,256,2 3,64,4 4,64,4; do
  IFS=, read -r number patches heads <<<"$layer"
  [ "$(cut -f 3 windows | grep -cx "$number")" -eq $((patches * heads)) ] || fail "not $heads heads and $patches patches in layer $number"
done
"$inspect" -m s.h5 -i "$images" --lines 1 --layer 1,2 --query 31,0 >windows || fail "attention of a patch within a window: exit $?"
sums windows
[ "$(awk -F '\t' '$3 == 1 && $9 > 0' windows | wc -l)" -eq 16 ] || fail "layer 1 attends to another number of patches than 4 x 4"
[ "$(awk -F '\t' '$3 == 2 && $9 > 0' windows | wc -l)" -eq 4 ] || fail "layer 2 attends to another number of patches than the corner's 2 x 2"
expect 0 '' '' "$inspect" -m s.h5 -i "$images" --lines 1 --layer all --head all -o map.png
expect 2 '' 'inspect-attention: --rollout: follows tokens that attend to all others in every layer, but those of s.h5 attend within windows, and are merged' \
  "$inspect" -m s.h5 -i "$images" --rollout
expect 2 '' 'inspect-attention: --layer 5: the model has 4 such layers' "$inspect" -m s.h5 -i "$images" --layer 5
expect 2 '' 'inspect-attention: --head 3: the chosen layers have at most 2 heads (others of the model have 4)' \
  "$inspect" -m s.h5 -i "$images" --layer 1 --head 3
expect 0 $'*\n1\tencoder\t3\t3\t0\tmean\t0\t0,0\t*' '' "$inspect" -m s.h5 -i "$images" --lines 1 --layer 1,3 --head 3

# Given labels have their own probability; the label is the one that translate gives.
cd "$shapes" || exit 1
label=$(head -n 1 test.images | "$HEED_BIN/translate" -q -m "$OLDPWD/m.h5")
cd "$OLDPWD" || exit 1
"$inspect" -m m.h5 -i "$images" --lines 1 -f table | grep -qF "→ $label (p" || fail "another label than translate's $label"
printf 'images/1001.png\tsquare\nimages/1001.png\tcircle\n' >"tsv"
sed -i "s|^|$shapes/|" tsv
"$inspect" -m m.h5 --tsv -i tsv -f table | sed -nE 's/.*→ (.*) \(p = .*/\1/p' | tr '\n' ' ' >labels
[ "$(cat labels)" = "square circle " ] || fail "given labels: $(cat labels)"
printf '%s/images/1001.png\n' "$shapes" >one
echo nothing >wrong
expect 1 '*' "inspect-attention: wrong:1: 'nothing' is no label of m.h5" "$inspect" -m m.h5 -i one -t wrong

# Empty lines and bad images.
printf '%s/images/1001.png\n\n%s/images/1002.png\n' "$shapes" "$shapes" >gap
expect 0 $'*\n\nline 2\n\nline 3*' '' "$inspect" -m m.h5 -i gap -f table
expect 0 '' '' "$inspect" -m m.h5 -i gap -o gap.svg
printf '%s/images/1001.png\nmissing.png\n' "$shapes" >list
expect 1 '*' 'inspect-attention: list:2: missing.png: *No such file or directory*' "$inspect" -m m.h5 -i list
"$HEED_BIN/translate" -q -m m.h5 -i list >/dev/null 2>translated
[ "$(sed 's/^translate/inspect-attention/' translated)" = "$(cat stderr)" ] || fail "translate says $(cat translated), inspect-attention $(cat stderr)"
echo text >notes.png
echo notes.png >list
expect 1 '*' 'inspect-attention: list:1: notes.png: *' "$inspect" -m m.h5 -i list -o none.svg
[ -e none.svg ] && fail "a failed run leaves none.svg"

# Options without use.
no="has no use with m.h5, which reads images"
for option in --words --pieces --no-eos '--beam-size 2' '--max-length 20'; do
  # shellcheck disable=SC2086
  expect 2 '' "inspect-attention: ${option% *}: $no and gives labels" "$inspect" -m m.h5 -i "$images" $option
done
expect 2 '' 'inspect-attention: --max-length: has no use with c.h5, which reads images (it limits the sentences of -t and --tsv)' \
  "$inspect" -m c.h5 -i "$images" --max-length 20
expect 2 '' 'inspect-attention: --positions: has no use with m.h5, whose tables have a fixed size' "$inspect" -m m.h5 --kind positions --positions 20
expect 2 '' 'inspect-attention: --kind positions: s.h5 encodes positions by biases within windows, which this tool does not show' \
  "$inspect" -m s.h5 --kind positions
expect 2 '' "inspect-attention: --stats: $no (*" "$inspect" -m m.h5 -i "$images" --stats
expect 2 '' "inspect-attention: --gold: $no (patches are no words)" "$inspect" -m m.h5 -i "$images" -t given --gold given
expect 2 '' "inspect-attention: --alignment: $no (patches are no words)" "$inspect" -m m.h5 -i "$images" --alignment argmax
expect 2 '' "inspect-attention: --format pharaoh: $no (patches are no words)" "$inspect" -m m.h5 -i "$images" -f pharaoh
expect 2 '' "inspect-attention: --format html: $no (svg shows the weight under the pointer)" "$inspect" -m m.h5 -i "$images" -o map.html
for query in 32,0 0,32 -1,0 5 '5,' a,b 5,5,5; do
  expect 2 '' "inspect-attention: --query '$query': must be a pixel X,Y of the image as the model sees it, from 0,0 to 31,31" \
    "$inspect" -m m.h5 -i "$images" --query="$query"
done
expect 2 '' 'inspect-attention: --query: has no use with --kind cross, whose queries are words (leave one of them out)' \
  "$inspect" -m c.h5 -i "$images" --query 1,1 --kind cross
expect 2 '' 'inspect-attention: --kind all: a picture of an image shows one kind (*' "$inspect" -m c.h5 -i "$images" --kind all -o map.svg
expect 2 '' 'inspect-attention: --kind cross: the model has no such attention (it has encoder)' "$inspect" -m m.h5 -i "$images" --kind cross
expect 2 '' 'inspect-attention: --layer 3: the model has 2 such layers' "$inspect" -m m.h5 -i "$images" --layer 3
expect 2 '' 'inspect-attention: --head 3: the model has 2 heads a layer' "$inspect" -m m.h5 -i "$images" --head 3
expect 2 '' 'inspect-attention: --head: has no use with --rollout, which takes the mean of the heads' "$inspect" -m m.h5 -i "$images" --rollout --head 1
expect 2 '' 'inspect-attention: --rollout: follows the attention of the encoder (leave --kind out)' "$inspect" -m c.h5 -i "$images" --rollout --kind cross

# Text models have rollout, too, but no pixels.
head -n 60 "$HEED_SOURCE/data/train.en" >en
head -n 60 "$HEED_SOURCE/data/train.fr" >fr
"$HEED_BIN/build-vocab" -q --type words --mode words en fr -o text.vocab
"$train" -q -j 1 -t en fr -v text.vocab -m t.h5 --task transformer-tiny --enc-depth 2 --dec-depth 1 --dim-emb 32 --transformer-heads 2 \
  --transformer-dim-ffn 64 --after 2u || fail "train a text model: exit $?"
expect 0 $'*\n1\tencoder\t2\trollout\t0\t*\t0\t*' '' "$inspect" -m t.h5 -i en --lines 1 --rollout
sums stdout
expect 2 '' 'inspect-attention: --query: is for models that read images (train --task vit); t.h5 reads text' "$inspect" -m t.h5 -i en --query 1,1
expect_full_disk inspect-attention -m m.h5 -i "$images"
finish
