#!/usr/bin/env bash
# Checks what data/README.md says about the corpus and the treebank in data/, and that data/generator/make-data writes the
# same bytes again; then the same for the pictures in data/shapes/ and data/generator/make-shapes.
set -euo pipefail
export LC_ALL=C.UTF-8
source=${HEED_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
data=$source/data
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  echo "data_test: $*" >&2
  exit 1
}

# textbook FILE: prints the file in lower case, with a space before punctuation, as the textbook's exercise needs it
textbook() { sed -E 's/ ?([.,!?])/ \1/g' "$1" | sed -e 's/.*/\L&/'; }

for part in train valid test; do
  for language in en fr; do
    file=$data/$part.$language
    [ -s "$file" ] || fail "$file is missing or empty"
    iconv -f UTF-8 -t UTF-8 "$file" > /dev/null || fail "$file is not UTF-8"
    ! LC_ALL=C grep -nP '\xCC[\x80-\xBF]|\xCD[\x80-\xAF]' "$file" || fail "$file has a combining mark: it is not NFC"
    # shellcheck disable=SC1112  # the typographic quote is intended
    ! grep -nE '^$|^ | $|  |	|’|@|~' "$file" || fail "$file has an empty line, a stray space or a stray mark"
    ! grep -nvE '[.!?]$' "$file" || fail "$file has a line without final punctuation"
  done
  [ "$(wc -l < "$data/$part.en")" -eq "$(wc -l < "$data/$part.fr")" ] || fail "$part.en and $part.fr differ in length"
  paste <(textbook "$data/$part.en") <(textbook "$data/$part.fr") > "$scratch/$part"
done

[ "$(cat "$scratch"/{train,valid,test} | wc -l)" -ge 3000 ] || fail "fewer than 3,000 pairs"
for part in valid test; do
  [ "$(wc -l < "$scratch/$part")" -eq 250 ] || fail "$part has not 250 pairs"
done
for side in 1 2; do
  repeated=$(cat "$scratch"/{train,valid,test} | cut -f "$side" | sort | uniq -d)
  [ -z "$repeated" ] || fail "a sentence stands twice: $repeated"
done

while IFS= read -r pair; do
  grep -qxF "$pair" "$scratch/train" || fail "train lacks: $pair"
  for side in 1 2; do
    for word in $(cut -f "$side" <<< "$pair" | tr -d '.!'); do
      count=$(head -n 600 "$scratch/train" | cut -f "$side" | tr ' ' '\n' | grep -cxF "$word")
      [ "$count" -ge 2 ] || fail "\"$word\" stands fewer than 2 times in the first 600 pairs"
    done
  done
done << 'PAIRS'
go .	va !
i lost .	j'ai perdu .
he's calm .	il est calme .
i'm home .	je suis chez moi .
PAIRS

# Each word of the held-out sentences occurs in the training sentences.
for side in 1 2; do
  cut -f "$side" "$scratch/train" | tr ' ' '\n' | sort -u > "$scratch/known"
  unknown=$(cat "$scratch"/{valid,test} | cut -f "$side" | tr ' ' '\n' | sort -u | comm -23 - "$scratch/known")
  [ -z "$unknown" ] || fail "held out, but not in train: $unknown"
done

# The shapes: a path, a sentence and a label for each picture; each file listed once; 32 x 32 pixels, 8-bit RGB; all
# pictures different.
shapes=$data/shapes
for part in train:900 valid:100 test:100; do
  for side in images sentences labels; do
    [ "$(wc -l < "$shapes/${part%:*}.$side")" -eq "${part#*:}" ] || fail "${part%:*}.$side has not ${part#*:} lines"
  done
done
cat "$shapes"/{train,valid,test}.images | sort > "$scratch/listed"
(cd "$shapes" && printf '%s\n' images/*) | cmp - "$scratch/listed" || fail "the lists do not name each file of data/shapes/images/ once"
while IFS= read -r image; do
  head -c 29 "$shapes/$image" | od -An -v -tx1 | tr -d ' \n'
  echo " $image"
done < "$scratch/listed" > "$scratch/headers"
! grep -v '^89504e470d0a1a0a0000000d4948445200000020000000200802000000 ' "$scratch/headers" || fail "a picture is not a PNG file of 32 x 32 pixels in 8-bit RGB"
repeated=$(cd "$shapes" && xargs cksum < "$scratch/listed" | cut -d ' ' -f 1,2 | sort | uniq -d)
[ -z "$repeated" ] || fail "a picture stands twice, with the checksum $repeated"

# The sentences and labels: the pattern; the label is the first shape; no sentence in two parts, and none of two
# figures twice; each word of a held-out sentence in at least three training sentences.
colour='(red|orange|yellow|green|blue|purple)'
shape='(circle|ring|square|diamond|triangle|cross)'
pattern="a (large|small) $colour $shape|a large $colour $shape (above|below|to the left of|to the right of) a small $colour $shape"
! cat "$shapes"/*.sentences | grep -nvxE "$pattern" || fail "a sentence of data/shapes/ does not follow the pattern"
for part in train valid test; do
  cut -d ' ' -f 4 "$shapes/$part.sentences" | cmp - "$shapes/$part.labels" || fail "a label of $part is not the first shape of the sentence"
  sort -u "$shapes/$part.sentences"
done | sort | uniq -d > "$scratch/repeated"
! grep . "$scratch/repeated" || fail "a sentence of data/shapes/ stands in two parts"
repeated=$(cat "$shapes"/*.sentences | grep ' a ' | sort | uniq -d)
[ -z "$repeated" ] || fail "a sentence of two figures stands twice: $repeated"
for word in $(cat "$shapes"/{valid,test}.sentences | tr ' ' '\n' | sort -u); do
  [ "$(grep -cw "$word" "$shapes/train.sentences")" -ge 3 ] || fail "\"$word\" stands in fewer than 3 training sentences"
done

# French spelling: elision before a vowel, contracted articles, masculine forms before a vowel.
! grep -nE "(^|[ '])([JjNnDdLlMmTtSs]e|[Ll]a|[Qq]ue|[MmTtSs]a|[Cc]e) [aeiyhàâéèêîôœ]" "$data"/*.fr || fail "a word is not elided"
! grep -nE "(^| )([Dd]e|[Àà]) (le|les) [[:alpha:]-]+[ .?!]" "$data"/*.fr | grep -vE "(de|à) (le|les) [[:alpha:]]+(er|ir|re)[ .?!]" || fail "an article is not contracted"
! grep -nE "(beau|nouveau|vieux) (ami|arbre|oiseau|hôtel|homme|ordinateur|hôpital|enfant)" "$data"/*.fr || fail "bel, nouvel or vieil is missing"

# The trees: their number, none twice, and every word and label of the held-out parts stands in the training part.
for part in train:1200 valid:120 test:120; do
  [ "$(wc -l < "$data/trees/${part%:*}.trees")" -eq "${part#*:}" ] || fail "trees/${part%:*}.trees has not ${part#*:} trees"
done
[ -z "$(cat "$data"/trees/*.trees | sort | uniq -d)" ] || fail "a tree stands twice"
! grep -nvE '^\( \((S|SQ) .* \)$' "$data"/trees/*.trees || fail "a tree without the bracket of the Penn Treebank"
tr -s ' ()' '\n' < "$data/trees/train.trees" | sort -u > "$scratch/known"
unknown=$(cat "$data"/trees/{valid,test}.trees | tr -s ' ()' '\n' | sort -u | comm -23 - "$scratch/known")
[ -z "$unknown" ] || fail "held out, but not in trees/train.trees: $unknown"

if ! command -v python3 > /dev/null; then
  echo "skipped the comparison with data/generator/make-data: there is no python3"
  exit 77
fi
PYTHONHASHSEED=1 python3 "$source/data/generator/make-shapes" "$scratch/shapes" > /dev/null
diff -rq "$shapes" "$scratch/shapes" || fail "data/generator/make-shapes writes other files: run it and commit data/shapes/"
echo "data_test: $(wc -l < "$scratch/listed") pictures, all as promised"

PYTHONHASHSEED=1 python3 "$source/data/generator/make-data" "$scratch/again" > /dev/null
for part in train valid test; do
  for language in en fr; do
    cmp "$data/$part.$language" "$scratch/again/$part.$language" || fail "data/generator/make-data writes another $part.$language: run it and commit data/"
  done
  cmp "$data/trees/$part.trees" "$scratch/again/trees/$part.trees" || fail "data/generator/make-data writes another trees/$part.trees: run it and commit data/"
done
echo "data_test: $(cat "$scratch"/{train,valid,test} | wc -l) pairs, all as promised"
