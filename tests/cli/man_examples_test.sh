#!/usr/bin/env bash
# Runs every example of the man pages in a folder with the files that the examples name.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
PATH=$HEED_BIN:$PATH

# Writes each example of a man page, the lines between .EX and .EE, into a file.
examples_of() {
  sed -n '/^\.SH EXAMPLES/,$p' "$1" | sed -n '/^\.EX/,/^\.EE/p' |
    sed -E 's/\\-/-/g; s/\\\(aq/'"'"'/g; s/\\e/\\/g; s/--after [0-9]+[A-Za-z]*/--after 2u/' |
    awk -v to="$2" '/^\.EX/ { n++; next } /^\.EE/ { next } { print > (to n) }'
}

for side in en fr; do
  head -n 150 "$HEED_SOURCE/data/train.$side" >train.$side
  head -n 20 "$HEED_SOURCE/data/valid.$side" >valid.$side
  head -n 30 "$HEED_SOURCE/data/test.$side" >test.$side
done
# Copies of the French files stand for German text.
for part in train valid test; do cp $part.fr $part.de; done
gzip -c train.de >corpus.de.gz
cp test.en raw.en && cp test.de raw.de
for name in old.txt new.txt ref.1 ref.2 test.hyp; do cp test.fr $name; done
paste train.en train.fr >train.tsv
for side in en fr; do head -n 100 train.$side >mine.$side; done
printf '0.5\t2\n1\t3.5\n2.5\t1\n' >pairs.tsv
printf '0\n1.5\n' >queries.txt
for name in train gold parsed; do printf '(S (NP (DT a) (NN dog)) (VP (VBZ barks)))\n' >$name.trees; done
build-vocab -q -s 300 -l en,fr train.en train.fr >joint.vocab || fail "build-vocab failed"
build-vocab -q -s 300 -l en train.en >vocab || fail "build-vocab failed"
train -q -t train.en train.fr -v joint.vocab -m model.h5 --task transformer-tiny --dim-emb 16 --transformer-heads 2 \
  --transformer-dim-ffn 16 --after 1u || fail "train failed"
train -q -t train.en train.fr -v vocab -m general.h5 --task transformer-tiny --tied-embeddings-all --after 1u || fail "train failed"
for part in train test; do sed "s|^|$HEED_SOURCE/data/shapes/|" "$HEED_SOURCE/data/shapes/$part.images" | head -n 30 >$part.images; done
head -n 30 "$HEED_SOURCE/data/shapes/train.labels" >train.labels
train -q --task vit -t train.images train.labels -m vit.h5 --patch-size 8 --dim-emb 16 --transformer-heads 2 --transformer-dim-ffn 16 \
  --after 1u || fail "train --task vit failed"
cp "$HEED_SOURCE/tests/text/reference/sentencepiece/unigram.model" spm.model
for name in a b c; do cp model.h5 $name.h5; done

for page in "$HEED_SOURCE"/man/*.1; do
  tool=$(basename "$page" .1)
  examples_of "$page" "$tool-example-"
  [ -s "$tool-example-1" ] || fail "man/$tool.1 has no example between .EX and .EE"
done
for example in *-example-*; do
  rm -rf try && mkdir try && cp -- *.images *.trees *.en *.fr *.de *.gz *.txt *.tsv ref.* *.hyp *.model *.h5 joint.vocab vocab try
  case $example in train-*) rm try/model.h5 ;; esac
  if grep -q $'^\t' "$example"; then
    (cd try && make -s -f "../$example") >out 2>err
  else
    (cd try && bash -eu -o pipefail "../$example") >out 2>err </dev/null
  fi
  case $?,$(cat "$example") in
    0,* | 1,"tokenize "*--check*) ;;  # exit 1 of --check means that some lines are not restored
    *) fail "$example: $(cat "$example"): $(cat err)" ;;
  esac
done

# Runs the commands of the page about models in one folder, with short trainings: the last --after counts.
{
  echo 'train() { command train "$@" --after 2u; }'
  sed -E 's/\\-/-/g; s/\\e$/\\/' "$HEED_SOURCE/man/heed-models.7" | awk '
    goes_on || /^ *(build-vocab|train|translate|tokenize|inspect-attention|bleu|kernel-regression) (-|data\/)/ {
      print
      goes_on = /\\$/
    }'
} >models.sh
[ "$(grep -c '^train -' models.sh)" -ge 9 ] || fail "man/heed-models.7 has few commands: $(cat models.sh)"
rm -rf try && mkdir try && ln -s "$HEED_SOURCE/data" try/data
(cd try && bash -eu -o pipefail ../models.sh) >out 2>err </dev/null || fail "man/heed-models.7: $(cat err)"
finish
