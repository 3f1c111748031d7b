#!/usr/bin/env bash
# Tests models that read images: training on lists of images with labels or sentences, translate, exact resuming, ranks of
# threads, bad images, and the options that have no use.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
train=$HEED_BIN/train translate=$HEED_BIN/translate bleu=$HEED_BIN/bleu build_vocab=$HEED_BIN/build-vocab
shapes=$HEED_SOURCE/data/shapes

small=(--patch-size 8 --dim-emb 64 --enc-depth 2 --transformer-heads 4 --transformer-dim-ffn 128 --mini-batch 50 -l 0.002)
options=(-q -t "$shapes/train.images" "$shapes/train.labels" --task vit "${small[@]}" --lr-warmup 3)

# A model learns the shape of a picture. The label list and the image pipeline are in the checkpoint.
"$train" "${options[@]}" --valid-sets "$shapes/valid.images" "$shapes/valid.labels" -m model.h5 --augment none --after 12e -j 2 \
  --log-format tsv --log log >records || fail "train: exit $?: $(cat log)"
grep -q accuracy records || fail "the validation does not report the accuracy: $(cat records)"
expect 0 '' '' "$translate" -q -m model.h5 -i "$shapes/test.images" -o found
accuracy=$("$bleu" "$shapes/test.labels" -m exact -b -i found)
awk "BEGIN { exit !($accuracy >= 75) }" || fail "accuracy $accuracy after 12 epochs"
for attribute in image_size image_channels image_mean image_fit image_crop patch_size; do
  h5dump -a "/config/$attribute" model.h5 >/dev/null || fail "no attribute $attribute in the checkpoint"
done
h5dump -d /text/target/vocabulary model.h5 | grep -q '"triangle"' || fail "the labels are not in the checkpoint"

# Likeliest labels with log-probabilities, which --score gives too; every precision; the same for any batch.
(cd "$shapes" && head -n 3 test.images) >three
cd "$shapes" || exit 1
"$translate" -q -m "$OLDPWD/model.h5" --n-best 6 <"$OLDPWD/three" >"$OLDPWD/best"
"$translate" -q -m "$OLDPWD/model.h5" --score <(head -n 3 test.labels) <"$OLDPWD/three" >"$OLDPWD/scores"
cd "$OLDPWD" || exit 1
[ "$(wc -l <best)" -eq 18 ] || fail "6 labels for each of 3 images are not 18 lines: $(cat best)"
sed 's/.*||| //' best | awk '{ sum += exp($1) } END { exit !(sum > 2.99 && sum < 3.01) }' || fail "the probabilities of all labels: $(cat best)"
while read -r score label; do
  grep -qF "||| $label ||| F0= ${score%??} ||| ${score%??}" best || grep -q "||| $label |||" best || fail "no $label $score in $(cat best)"
done < <(paste -d' ' scores "$shapes/test.labels" | head -n 3)
for precision in bfloat16 int8; do
  "$translate" -q -m model.h5 --precision "$precision" -i "$shapes/test.images" | paste - found | awk -F'\t' '$1 != $2 { n++ } END { exit !(n < 5) }' ||
    fail "$precision differs in 5 labels or more"
done
"$translate" -q -m model.h5 --mini-batch 1 -j 1 -i "$shapes/test.images" | cmp -s - found || fail "another batch gives other labels"
expect 0 '' '' "$translate" -q -m model.h5 model.h5 -i "$shapes/test.images" -o twice
cmp -s twice found || fail "an ensemble of one model twice gives other labels"

# What is said before a training: labels and images, not tokens.
"$train" --check "${options[@]:1}" --valid-sets "$shapes/valid.images" "$shapes/valid.labels" >said || fail "train --check: exit $?"
grep -qE '^  labels +6$' said || fail "train --check says of labels: $(cat said)"
grep -qE 'source (tokens|pieces)|times longer' said && fail "train --check speaks of source tokens: $(cat said)"
"$train" --dry-run "${options[@]}" -m x.h5 | grep -qE '^  training pairs +900, 900 target tokens' || fail "train --dry-run counts other targets"

# An interrupted training with all that is random ends as one without a pause, with any number of threads.
random=(--augment randaugment --mixup --cutmix --stochastic-depth 0.2 --dropout 0.1)
"$train" "${options[@]}" "${random[@]}" -m whole.h5 --after 30u -j 1 || fail "train with everything: exit $?"
"$train" "${options[@]}" "${random[@]}" -m parts.h5 --after 11u -j 2 || fail "train with everything, 11 updates: exit $?"
"$train" "${options[@]}" "${random[@]}" -m parts.h5 --after 30u -j 2 || fail "train with everything, resumed: exit $?"
h5diff whole.h5 parts.h5 /parameters /parameters || fail "a resumed training on images ends with other parameters"
expect 0 '' '*--mixup was 0.8 and is now 0.5*' "$train" "${options[@]:1}" "${random[@]}" --mixup 0.5 -m parts.h5 --after 31u

# A Swin Transformer, whose windows the shards of a batch do not change either; the number of its layers is a list.
swin=(-q -t "$shapes/train.images" "$shapes/train.labels" --task swin --patch-size 4 --dim-emb 32 --swin-depths 2 2 --swin-heads 2 4
  --mini-batch 50 -l 0.002 --lr-warmup 3 --attention-dropout 0.1 --stochastic-depth 0.2 --precision float32)
"$train" "${swin[@]}" -m swin.h5 --after 12u -j 1 || fail "train --task swin: exit $?"
expect 0 '' 'train: warning: the learning rate rises for 3 updates (--lr-warmup), but training has about 5 in all (*)' \
  "$train" "${swin[@]}" -m swin-parts.h5 --after 5u -j 2
"$train" "${swin[@]}" -m swin-parts.h5 --after 12u -j 2 || fail "train --task swin, resumed: exit $?"
h5diff swin.h5 swin-parts.h5 /parameters /parameters || fail "a resumed training of a Swin Transformer ends with other parameters"
"$translate" -q -m swin.h5 -i "$shapes/test.images" -o windows
"$translate" -q -m swin.h5 --mini-batch 1 -j 1 -i "$shapes/test.images" | cmp -s - windows || fail "another batch gives other labels of a Swin Transformer"
"$translate" -q -m swin.h5 model.h5 -i "$shapes/test.images" >/dev/null || fail "an ensemble of a Swin Transformer and a ViT: exit $?"
expect 2 '' "train: --image-size 40 does not fit --patch-size 4, --window-size 4 and 2 stages (32 and 64 fit)" \
  "$train" "${swin[@]}" --image-size 40 -m x.h5
expect 2 '' "train: --swin-heads: has 3 numbers, but --swin-depths has 2 (each has a number for each stage)" \
  "$train" "${swin[@]}" --swin-heads 8 -m x.h5

# A sentence about a picture.
"$build_vocab" -q --type words --mode words "$shapes/train.sentences" -o words.vocab
"$train" -q -t "$shapes/train.images" "$shapes/train.sentences" -v words.vocab --task vit-caption "${small[@]}" --dec-depth 1 \
  --lr-warmup 50 --augment none --after 12e -m caption.h5 || fail "train --task vit-caption: exit $?"
expect 0 '' '' "$translate" -q -m caption.h5 -i "$shapes/test.images" -o described
awk '!/^a (large|small) [a-z]+ [a-z]+/ { exit 1 }' described || fail "no sentences about shapes: $(sort described | uniq -c | sort -n | tail -n 3)"
[ "$("$translate" -q -m caption.h5 -i "$shapes/test.images" -b 2 --n-best 2 | wc -l)" -eq 200 ] || fail "an n-best list of sentences"

# Options whose defaults depend on the task. --help and --dump-config show these defaults, and an option of a configuration file
# counts even where it is the default of another task.
"$train" --task vit --help | grep -qF 'the first one (default perplexity accuracy)' || fail "--help has not the metrics of labels"
"$train" --task vit-caption --help >help
grep -qF 'RandAugment (default none)' help || fail "--help has not the augmentation of sentences"
grep -qF -- '--tied-embeddings [none|decoder]' help || fail "--help offers to tie the embedding of an image"
"$train" --task vit --dump-config | grep '^\(augment\|valid-metrics\)' && fail "--dump-config fixes the defaults of one task"
flipped=(-q -t "$shapes/train.images" "$shapes/train.sentences" -v words.vocab --task vit-caption "${small[@]}" --after 1u -m flipped.h5)
"$train" "${flipped[@]}" --augment crop-flip 2>messages || fail "train --augment crop-flip: exit $?: $(cat messages)"
echo 'augment = crop-flip' >flip.cfg
expect 0 '' '' "$train" "${flipped[@]}" --config flip.cfg
echo 'valid-metrics = perplexity bleu' >bleu.cfg
expect 2 '' "train: --valid-metrics bleu: has no use for labels (accuracy has)*" \
  "$train" "${options[@]}" --valid-sets "$shapes/valid.images" "$shapes/valid.labels" --config bleu.cfg -m x.h5

# Paths: relative to the list, or to the current folder; absolute; spaces in paths and labels.
mkdir -p 'my pictures' && cp "$shapes/images/0001.png" 'my pictures/a b.png' && cp "$shapes/images/0002.png" 'my pictures/c.png'
printf 'a b.png\nc.png\n' >'my pictures/list'
printf 'polar bear\nice\n' >'my pictures/labels'
"$train" -q -t 'my pictures/list' 'my pictures/labels' --task vit "${small[@]}" --augment none --after 20u --lr-warmup 2 -m two.h5 || fail "two images"
expect 0 $'polar bear\nice' '' "$translate" -q -m two.h5 -i 'my pictures/list'
expect 0 'polar bear' '' bash -c "echo 'my pictures/a b.png' | '$translate' -q -m two.h5"
expect 0 'ice' '' bash -c "echo \"\$PWD/my pictures/c.png\" | '$translate' -q -m two.h5"
expect 0 $'\nice' '' bash -c "printf '\nmy pictures/c.png\n' | '$translate' -q -m two.h5"

# Bad images.
head -c 60 "$shapes/images/0001.png" >cut.png
echo 'no image' >text.png
for bad in cut.png text.png missing.png; do
  printf 'my pictures/c.png\n%s\n' "$bad" >list
  expect 1 'ice' "translate: list:2: $bad: *" "$translate" -q -m two.h5 -i list
  expect 0 'ice' "translate: warning: list:2: $bad: *; lines left empty because their image cannot be read: 1" \
    "$translate" -m two.h5 --on-bad-image empty -i list
  rm -f out
  printf 'ice\n\n' >out.partial
  printf 'my pictures/c.png\n' | cat list - >longer
  expect 0 '' 'translate: out.partial: goes on after line 2' "$translate" -m two.h5 --on-bad-image empty -i longer -o out --resume
  printf 'x\nx\n' >x
  expect 1 '' "*train: list:2: $bad: *" "$train" -q -t list x --task vit "${small[@]}" --after 2u --lr-warmup 1 -m bad.h5
done

# A missing image is noticed before anything is learnt, and a line without an image has no score.
expect 1 '' 'train: list:2: missing.png: cannot open: No such file or directory' \
  "$train" -t list x --task vit "${small[@]}" --after 2u --lr-warmup 1 --disp-freq 1u -m bad.h5
expect 0 $'\n-*' '' bash -c "printf '\nmy pictures/c.png\n' | '$translate' -q -m two.h5 --score <(printf '\nice\n')"
printf 'my pictures/c.png\nmy pictures/a b.png\n' >list
printf 'ice\nno bear\n' >wrong
expect 1 '-*' "translate: wrong:2: 'no bear' *" "$translate" -q -m two.h5 -i list --score wrong
# A message is whole also if it quotes a NUL, and no escape sequence in it reaches the terminal.
printf 'ice\nno\0 \033bear\n' >wrong
expect 1 '-*' $'translate: wrong:2: \'no\xe2\x90\x80 \xe2\x90\x9bbear\' is no label of two.h5' "$translate" -q -m two.h5 -i list --score wrong

head -n 5 "$shapes/train.labels" >five.labels
expect 1 '' "train: five.labels: has 5 lines, but *train.images has 900 lines (line i of one has to be the label of the image in line i of the other)" \
  "$train" -t "$shapes/train.images" five.labels "${options[@]:4}" -m x.h5
expect 1 '' "train: five.labels: has 5 lines, but *train.images has 900 lines (line i of one has to be the sentence of the image in line i of the other)" \
  "$train" -t "$shapes/train.images" five.labels -v words.vocab --task vit-caption "${small[@]}" -m x.h5

# What the options cannot mean.
expect 2 '' "train: --trees: has no use with images*" "$train" --trees x --task vit -m x.h5
expect 2 '' "train: no vocabulary for the sentences (-v VOCAB; build-vocab makes it)*" \
  "$train" -t "$shapes/train.images" "$shapes/train.sentences" --task vit-caption -m x.h5
expect 2 '' "train: --mixup: is an option of --task vit*" \
  "$train" -t x y -v z --mixup 1 -m x.h5
expect 2 '' "train: --image-size: is an option of --task vit*" "$train" -t x y -v z --image-size 8 -m x.h5
expect 2 '' "train: --image-size 30 is no multiple of --patch-size 8*" "$train" "${options[@]}" --image-size 30 -m x.h5
expect 2 '' "train: --image-mean: needs 3 numbers, one for each channel*" "$train" "${options[@]}" --image-mean 0.5 -m x.h5
twice="images and labels are read twice, which standard input and pipes cannot be (give a file, or the labels with -v)"
expect 2 '' "train: --tsv -: $twice" "$train" --tsv - --task vit -m x.h5
expect 2 '' "train: -t -: $twice" "$train" -t "$shapes/train.images" - --task vit -m x.h5
expect 2 '' "train: -t /dev/stdin: $twice" bash -c "cat '$shapes/train.labels' | '$train' -t '$shapes/train.images' /dev/stdin --task vit -m x.h5"
expect 1 '' "*train: .: *" "$train" -t . "$shapes/train.labels" --task vit -m x.h5
expect 2 '' "train: --randaugment-operations: needs --augment randaugment" "$train" "${options[@]}" --randaugment-operations 3 -m x.h5
expect 2 '' "train: --randaugment-magnitude: needs --augment randaugment" "$train" "${options[@]}" --randaugment-magnitude 3 -m x.h5
expect 2 '' "train: --image-crop: needs --image-fit crop" "$train" "${options[@]}" --image-fit stretch --image-crop 0.5 -m x.h5
expect 2 '' "train: --max-length: has no use with labels, which are one token each" "$train" "${options[@]}" --max-length 9 -m x.h5
expect 2 '' "train: --on-long: has no use with labels, which are one token each" "$train" "${options[@]}" --on-long crop -m x.h5
expect 2 '' "train: --valid-metrics bleu: has no use for labels (accuracy has)*" \
  "$train" "${options[@]}" --valid-sets "$shapes/valid.images" "$shapes/valid.labels" --valid-metrics bleu -m x.h5
expect 2 '' "train: --valid-metrics chrf: has no use for labels (accuracy has)*" \
  "$train" "${options[@]}" --valid-sets "$shapes/valid.images" "$shapes/valid.labels" --valid-metrics chrf -m x.h5
expect 2 '' "train: --mixup: mixes labels, and --task vit-caption writes sentences*" \
  "$train" -t "$shapes/train.images" "$shapes/train.sentences" -v words.vocab --task vit-caption --mixup -m x.h5
sed '5s/.*/hexagon/' "$shapes/valid.labels" >labels
expect 1 '' "train: labels:5: the label 'hexagon' is not among the 6 labels that the model knows*" \
  "$train" "${options[@]}" --valid-sets "$shapes/valid.images" labels -m x.h5
expect 2 '' "translate: --beam-size: has no use with model.h5, which reads images and gives labels*" "$translate" -m model.h5 -b 2 -i three
expect 2 '' "translate: --max-length-factor: has no use with caption.h5, which reads images" \
  "$translate" -m caption.h5 --max-length-factor 1 -i three
# A shortlist is refused before it is read, and a draft model with every beam size.
printf 'heed-shortlist 1\n<0x2F> ring 0.5\n ring 5\n' >shortlist
for model in model.h5 swin.h5 caption.h5; do
  labels=' and gives labels'
  [ "$model" != caption.h5 ] || labels=
  expect 2 '' "translate: --shortlist: has no use with $model, which reads images$labels" "$translate" -m "$model" --shortlist shortlist -i three
  for beam in '' '-b 1'; do
    # shellcheck disable=SC2086
    expect 2 '' "translate: --draft-model: has no use with $model, which reads images$labels" "$translate" -m "$model" $beam --draft-model swin.h5 -i three
  done
done
# Images have no tokens; the target side of the checkpoint makes text of tokens.
for format in piece id jsonl tsv; do
  expect 2 '' "tokenize: --model: the source side of caption.h5 reads images, which have no tokens*" \
    "$HEED_BIN/tokenize" -m caption.h5 --output-format "$format" -i three
done
expect 0 'a ring' '' "$HEED_BIN/tokenize" -m caption.h5 --detokenize <<<'a ring'
printf 'a b\na c\n' >a
"$build_vocab" -q --type words a >a.vocab
"$train" -q -t a a -v a.vocab --task transformer-tiny --dim-emb 8 --transformer-dim-ffn 8 --after 2u -m text.h5 2>/dev/null
expect 2 '' "translate: --on-bad-image: is for models that read images*" "$translate" -m text.h5 --on-bad-image empty
finish
