#!/usr/bin/env bash
# Tests inspect-attention with pipes and files and a model after a very short training: formats, exit codes, messages,
# wrong input, a full disk, a closed pipe, an idle input.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
inspect=$HEED_BIN/inspect-attention

head -n 200 "$HEED_SOURCE/data/train.en" >en
head -n 200 "$HEED_SOURCE/data/train.fr" >fr
"$HEED_BIN/build-vocab" -q --type bpe --merges 100 --language en,fr en fr >vocab || fail "build-vocab failed"
"$HEED_BIN/train" -q -j 1 -t en fr -v vocab -m m.h5 --task transformer-tiny --enc-depth 1 --dec-depth 2 --dim-emb 32 \
  --transformer-heads 2 --transformer-dim-ffn 64 --after 20u || fail "train failed"
printf "i'm home.\nhe's calm.\n" >src
printf "je suis chez moi.\nil est calme.\n" >ref
header=$'line\tkind\tlayer\thead\tquery\tquery_token\tkey\tkey_token\tweight'

# TSV into a pipe. The target is translated, or comes from a file, from standard input, or from the second column.
expect 0 "$header"$'\n1\tcross\t2\tmean\t0\t*\n2\tcross\t2\tmean\t0\t*' '' "$inspect" -m m.h5 -i src
expect 0 "$header"$'\n1\tcross\t2\tmean\t0\t*' '' "$inspect" -m m.h5 -i src -t ref
cp stdout given
expect 0 "$(cat given)" '' bash -c "'$inspect' -m m.h5 -i src -t - <ref"
expect 0 "$(cat given)" '' bash -c "paste src ref | '$inspect' -m m.h5 --tsv"
expect 0 "$(grep -v '^2' given)" '' bash -c "cat src - | '$inspect' -m m.h5 --lines 1 -t ref" </dev/null
expect 0 $'{"line":2,"kind":"encoder","layer":1,"head":2,"rows":*' '' "$inspect" -m m.h5 -i src --lines 2 --kind encoder --head 2 -f jsonl
"$HEED_BIN/translate" -q -m m.h5 -i src >translated || fail "translate failed"
"$inspect" -m m.h5 -i src -f table | sed -nE 's/^line .* → //p' | cmp - translated || fail "what it translates is not what translate gives"

# Pharaoh links: one output line for each input line, also for empty lines.
expect 0 $'[0-9]*-0 *\n\n[0-9]*-0 *' '' bash -c "sed '1a\\\\' src | '$inspect' -m m.h5 -f pharaoh -t <(sed '1a\\\\' ref)"
[ "$(wc -l <stdout)" -eq 3 ] || fail "pharaoh: $(wc -l <stdout) lines of 3"

# Heat maps, tables and pictures. The output's name chooses the format, and a picture appears only when it is complete.
expect 0 $'line 1: i\'m home. -> je suis chez moi.\ncross attention, layer 2, mean of heads\n*weight 0 *' '' \
  "$inspect" -m m.h5 -i src -t ref --lines 1 -f heatmap --ascii
expect 0 $'line 1: *\ndecoder attention, layer 1, head 1\n*<s>*1.00  0.00*' '' \
  "$inspect" -m m.h5 -i src -t ref --lines 1 -f table --kind decoder --layer 1 --head 1
expect 0 '' '' "$inspect" -m m.h5 -i src -t ref --kind all --layer all --head all -o map.svg
[[ $(head -c 5 map.svg) == '<?xml' && $(tail -c 7 map.svg) == '</svg>' ]] || fail "map.svg is no whole SVG"
expect 0 '' '' "$inspect" -m m.h5 -i src -t ref -o map.png
[ "$(head -c 4 map.png | tail -c 3)" = PNG ] || fail "map.png is no PNG"
expect 1 '' '*' "$inspect" -m m.h5 -i src -t missing -o none.svg
[ ! -e none.svg ] || fail "a failed run leaves none.svg"

expect 0 '' '' "$inspect" -m m.h5 -i src -t ref -o map.SVG
[[ $(head -c 5 map.SVG) == '<?xml' ]] || fail "map.SVG is no SVG"
expect 2 '' 'inspect-attention: -o map.pdf: there is no format for .pdf files (*' "$inspect" -m m.h5 -i src -t ref -o map.pdf

# Summaries of all lines. The links that pharaoh writes are right by themselves.
expect 0 $'kind\tlayer\thead\tsentences\tqueries\tentropy\tdistance\tlargest\tfirst\tend\nencoder\t1\t1\t2\t*\nencoder\t1\t2\t2\t*' '' \
  "$inspect" -m m.h5 -i src --stats --kind encoder
[ "$("$inspect" -m m.h5 -i src --stats --kind all | wc -l)" -eq 11 ] || fail "--stats does not show 2 heads of 1 + 2 + 2 layers"
for head in 1 2 mean; do
  "$inspect" -m m.h5 -i src -t ref -f pharaoh --layer 1 --head $head >gold
  expect 0 $'kind\tlayer\thead\tlinks\tprecision\trecall\taer\ncross\t1\t'$head$'\t*\t1.0000\t1.0000\t0.0000' '' \
    "$inspect" -m m.h5 -i src -t ref --gold gold --layer 1 --head $head
done
tr -- - p <gold >possible
expect 0 $'*\ncross\t1\tmean\t*\t1.0000\t0.0000\t0.0000' '' "$inspect" -m m.h5 -i src -t ref --gold possible --layer 1 --head mean
expect 0 '*lowest alignment error rate: 0.0000, layer 1, mean of heads' '' \
  bash -c "'$inspect' -m m.h5 -i src -t ref --gold - --layer 1 --head mean -f table <gold"
head -n 1 gold >short
expect 1 '' 'inspect-attention: short: has 1 line, but src has 2 lines (each source line needs its alignment, if only an empty line)' \
  "$inspect" -m m.h5 -i src -t ref --gold short
cat gold gold >longer
expect 1 '' 'inspect-attention: src: has 2 lines, but longer has 4 lines (*' "$inspect" -m m.h5 -i src -t ref --gold longer
printf '0-0\n0-0 9p0\n' >outside
expect 1 '' "inspect-attention: outside:2:5: '9p0' leads out of the sentences of * and * words (align the same two texts)" \
  "$inspect" -m m.h5 -i src -t ref --gold outside
printf '0-0\n0:0\n' >broken
expect 1 '' "inspect-attention: broken:2:1: '0:0' is no link, source-target from 0 (such as 0-0 1-2, or 0p0 for a possible one)" \
  "$inspect" -m m.h5 -i src -t ref --gold broken
expect 1 '' 'inspect-attention: missing: *No such file or directory*' "$inspect" -m m.h5 -i src -t ref --gold missing
expect 2 '' 'inspect-attention: --gold: the alignments are those of given targets (-t TARGET or --tsv)' "$inspect" -m m.h5 -i src --gold gold
expect 2 '' 'inspect-attention: --gold - reads standard input, and so does the input (give files)' "$inspect" -m m.h5 -t ref --gold -
expect 2 '' 'inspect-attention: --layer 3: the model has 2 such layers' "$inspect" -m m.h5 -i src --stats --layer 3
expect 2 '' 'inspect-attention: --head 3: the model has 2 heads a layer' "$inspect" -m m.h5 -i src --stats --head 3

# A file has the colours of the terminal for which it is written, and --ascii has no mark that is not ASCII.
COLORTERM=truecolor "$inspect" -m m.h5 -i src -t ref --color always -f heatmap -o colors || fail "-f heatmap -o colors: exit $?"
grep -q $'\x1b\\[48;2;' colors || fail "a file of a heat map has no 24-bit colours in spite of COLORTERM"
COLORTERM='' "$inspect" -m m.h5 -i src -t ref --color always -f heatmap -o colors || fail "-f heatmap -o colors: exit $?"
grep -q $'\x1b\\[48;5;' colors || fail "a file of a heat map has no colours of the palette without COLORTERM"
expect 0 $'line 1: i\'m home. -> *\ncross attention, layer 1, head 1\n*' '' \
  env TERM=dumb "$inspect" -m m.h5 -i src --lines 1 --layer 1 --head 1 -f heatmap --ascii

# A table is as wide as --width says.
"$inspect" -m m.h5 -i src -t ref -f table --top 4 --width 30 >listed || fail "--top 4 --width 30: exit $?"
[ "$(wc -L <listed)" -le 30 ] || fail "--top 4 --width 30: $(wc -L <listed) columns"

# The words of decoder attention are numbered as those of the text: <s> is none of them, and the first word looks at itself.
expect 0 $'0-0 *-1*\n0-0 *-1*' '' "$inspect" -m m.h5 -i src -t ref --kind decoder -f pharaoh

# HTML and HDF5.
expect 0 '' '' "$inspect" -m m.h5 -i src -t ref --kind all --layer all --head all -o map.html
[[ $(head -n 1 map.html) == '<!DOCTYPE html>' && $(tail -n 1 map.html) == '</html>' ]] || fail "map.html is no whole page"
expect 0 '' '' "$inspect" -m m.h5 -i src -t ref --kind all --layer all --head all -o map.h5
if command -v h5dump >/dev/null; then
  h5dump -d /lines/2/cross/layer_2 map.h5 >dump || fail "map.h5 is no HDF5 file"
  grep -q 'DATASPACE *SIMPLE { ( 2, [0-9]*, [0-9]* )' dump || fail "map.h5: $(head -n 5 dump)"
  "$inspect" -m m.h5 -i src -t ref --lines 2 --head 1 | awk -F '\t' 'NR > 1 { print $9 }' >weights
  h5dump -y -w 1 -d /lines/2/cross/layer_2 map.h5 | sed -nE '/DATA \{/,$s/^ *([0-9.e-]+),?$/\1/p' | head -n "$(wc -l <weights)" | paste - weights |
    awk '{ d = $1 - $2; if (d > 1e-5 || d < -1e-5) bad = 1; ++n } END { exit bad || n < 10 }' || fail "map.h5 has other weights than TSV"
fi
find . -name '*.maps.tmp' | grep -q . && fail "a temporary file is left"
expect 1 '' '*' "$inspect" -m m.h5 -i src -t missing -o none.h5
[ -e none.h5 ] && fail "a failed run leaves none.h5"
find . -name '*.maps.tmp' | grep -q . && fail "a failed run leaves a temporary file"
expect 1 '' 'inspect-attention: nowhere/x.h5: *No such file or directory*' "$inspect" -m m.h5 -i src -o nowhere/x.h5
# HDF5 into a pipe, through a name of a descriptor or of a FIFO; the file is made in TMPDIR.
mkdir tmp
mkfifo pipe
"$inspect" -m m.h5 -i src -t ref -f hdf5 -o direct || fail "-f hdf5 -o direct: exit $?"
for name in /dev/stdout /dev/fd/1 pipe; do
  if [ "$name" = pipe ]; then cat pipe >piped & fi
  TMPDIR=$PWD/tmp "$inspect" -m m.h5 -i src -t ref -f hdf5 -o "$name" 2>stderr | cat >stdout
  [ "${PIPESTATUS[0]}" -eq 0 ] || fail "-f hdf5 -o $name: $(cat stderr)"
  if [ "$name" = pipe ]; then wait $! && mv piped stdout; fi
  [[ $(head -c 4 stdout | tail -c 3) == HDF && $(wc -c <stdout) -eq $(wc -c <direct) ]] ||
    fail "-f hdf5 -o $name: $(wc -c <stdout) bytes, no HDF5 file of $(wc -c <direct) bytes"
done
[ -z "$(ls tmp)" ] || fail "a temporary file is left: $(ls tmp)"
expect 1 '' 'inspect-attention: nowhere: cannot create a temporary file: No such file or directory (set TMPDIR to another folder)' \
  env TMPDIR=nowhere "$inspect" -m m.h5 -i src -f hdf5 -o /dev/null
# A model with one attention: the recurrent one.
"$HEED_BIN/train" -q -j 1 -t en fr -v vocab -m r.h5 --task rnn-attention --dim-emb 16 --dim-rnn 16 --after 2u || fail "train failed"
expect 0 $'kind*\ncross\t1\t1\t2\t*' '' "$inspect" -m r.h5 -i src --stats
expect 0 '' '' "$inspect" -m r.h5 -i src -o r.html
expect 2 '' 'inspect-attention: --rollout: the model has no encoder attention (it has cross)' "$inspect" -m r.h5 -i src --rollout
expect 2 '' 'inspect-attention: --query: is for models that read images (*); r.h5 reads text' "$inspect" -m r.h5 -i src --query 1,1

# Wrong input.
expect 1 '' 'inspect-attention: missing.h5: cannot open*' "$inspect" -m missing.h5 -i src
head -c 3000 m.h5 >cut.h5
expect 1 '' 'inspect-attention: cut.h5: *' "$inspect" -m cut.h5 -i src
expect 1 '' 'inspect-attention: missing: *No such file or directory*' "$inspect" -m m.h5 -i missing
expect 1 '*' 'inspect-attention: ref: has 2 lines, but standard input has 3 lines (*' bash -c "cat src src | head -n 3 | '$inspect' -m m.h5 -t ref"
expect 1 '*' 'inspect-attention: src:1: no TAB in this line (*' "$inspect" -m m.h5 -i src --tsv
expect 1 '*' 'inspect-attention: src: has 2 lines, but --lines asks for line 7' "$inspect" -m m.h5 -i src --lines 7
printf 'ok\na \xff b\n' >invalid
expect 0 '*' 'inspect-attention: warning: invalid:2:3: invalid UTF-8 replaced by U+FFFD; *' "$inspect" -m m.h5 -i invalid
expect 1 '*' 'inspect-attention: invalid:2:3: invalid UTF-8 (*' "$inspect" -m m.h5 -i invalid --on-invalid-utf8 fail
head -c 1000000 /dev/zero | tr '\0' 'a' >long
expect 1 '*' 'inspect-attention: long:1: has * pieces, more than 1000 (--max-length N allows more*' "$inspect" -m m.h5 -i long
expect 2 '' 'inspect-attention: needs a model: -m MODEL.h5 *' "$inspect" -i src
expect 2 '' "inspect-attention: --device: 'gpu' is none of auto, cpu and cuda:N (such as cuda:0)" "$inspect" -m m.h5 -i src --device gpu
expect 1 '' 'inspect-attention: *--device cpu*' "$inspect" -m missing.h5 -i src --device cuda:99
expect 2 '' 'inspect-attention: --device: has no use with --kind positions*' "$inspect" -m m.h5 --kind positions --device cpu
expect 2 '' 'inspect-attention: *--layers*--layer*' "$inspect" -m m.h5 -i src --layers 2
expect 2 '' 'inspect-attention: --layer 3: the model has 2 such layers' "$inspect" -m m.h5 -i src --layer 3
for option in layer head lines query; do
  expect 2 '' "inspect-attention: --$option: the value is empty (give one, or leave the option out)" "$inspect" -m m.h5 -i src "--$option" ''
done
expect 2 '' 'inspect-attention: --tsv and --target exclude each other*' "$inspect" -m m.h5 --tsv -t ref

expect_full_disk inspect-attention -m m.h5 -i src
# A file of HDF5 that is larger than the buffer of the output.
for _ in $(seq 100); do echo "i'm home ."; done >many
expect 1 '' 'inspect-attention: /dev/full: cannot write: No space left on device' "$inspect" -q -m m.h5 -i many -t many -f hdf5 -o /dev/full
expect_coprocess "$inspect" -m m.h5 -f pharaoh
yes "i'm home." 2>yes-stderr | "$inspect" -m m.h5 2>stderr | head -n 1 >stdout
[ "${PIPESTATUS[1]}" -eq 141 ] || fail "a closed pipe does not end it as SIGPIPE does"
[ -s stderr ] && fail "a closed pipe is not silent: $(cat stderr)"
finish
