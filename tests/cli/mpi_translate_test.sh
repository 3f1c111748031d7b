#!/usr/bin/env bash
# Checks translation by several processes under mpirun: the output of one process for any number of ranks, errors that
# are told once, killed ranks, and jobs that go on with another number of ranks.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
source "$HEED_SOURCE/tests/cli/mpi.sh"
translate=$HEED_BIN/translate
export -f ranks

head -n 200 "$HEED_SOURCE/data/train.en" >en
head -n 200 "$HEED_SOURCE/data/train.fr" >fr
"$HEED_BIN/build-vocab" -q --type bpe --merges 100 --language en,fr en fr >vocab || fail "build-vocab failed"
"$HEED_BIN/train" -q -j 1 -t en fr -v vocab -m m.h5 --task transformer-tiny --enc-depth 1 --dec-depth 1 --dim-emb 32 \
  --transformer-heads 2 --transformer-dim-ffn 64 --after 1u --learn-rate 1e-6 || fail "train failed"
# An empty line and a line that is longer than the others together.
(sed -n '1,99p' en; echo; sed -n '101,150p' en; seq -s ' ' 160; sed -n '151,200p' en) >source
(cat fr; echo) >reference
short=(-m m.h5 -j 1 --max-output-length 6)

# The bytes of one process.
for options in '' '--n-best 3 --alignment' '--scores --maxi-batch 9 --mini-batch 4' '--search sample --n-best 2'; do
  read -ra more <<<"$options"
  "$translate" -q "${short[@]}" "${more[@]}" -i source >expected 2>log || fail "$options: exit $?"
  for number in 2 3; do
    expect 0 '' '' ranks "$number" "$translate" -q "${short[@]}" "${more[@]}" -i source -o out
    cmp out expected || fail "$options on $number ranks: other bytes"
    rm -f out
  done
done
"$translate" -q "${short[@]}" -i source >expected
"$translate" -q -m m.h5 -i source --score reference >scores || fail "--score: exit $?"
ranks 3 "$translate" -q -m m.h5 -j 2 -i source --score reference | cmp - scores || fail "--score: other bytes"
# Standard input goes to rank 0 alone; only rank 0 logs.
expect 0 '*' 'translate: 201 lines, * pieces/s, 3 threads on 3 ranks, *' \
  bash -c 'ranks 3 "$@" <source' bash "$translate" "${short[@]}" --stats
cmp stdout expected || fail "standard input: other bytes"
expect 0 '' '' ranks 1 "$translate" "${short[@]}" -i /dev/null
expect 0 '*' 'translate: warning: source:151: a line of more than 300 pieces, only the beginning was translated; such lines: 1 (*' \
  ranks 3 "$translate" "${short[@]}" --max-length 300 -i source

# Errors are told once, and end all; what is translated before them is written.
expect 1 '*' 'translate: source:151: has * pieces, more than the longest that is translated, 300 (*' \
  ranks 3 "$translate" "${short[@]}" --max-length 300 --on-long fail -i source
head -n 150 expected | cmp - stdout || fail "not all lines before an error are written"
head -n 30 fr >short
expect 1 '*' 'translate: short: has 30 lines, but source has 201 lines *' \
  ranks 2 "$translate" -m m.h5 -i source --score short
expect 1 '' 'translate: missing.h5: cannot open: No such file or directory' ranks 3 "$translate" -m missing.h5 -i source
expect 1 '' 'translate: nothing: cannot open: No such file or directory' ranks 3 "$translate" -m m.h5 -i nothing
expect 2 '' 'translate: --top-k: needs --search sample' ranks 2 "$translate" -m m.h5 --top-k 3 -i source
expect 2 '' 'translate: unknown option --beams*' ranks 2 "$translate" --beams 3
expect 1 '' 'translate: /dev/full: *No space left on device' ranks 2 "$translate" "${short[@]}" -i source -o /dev/full
expect 1 '' 'translate: rank 1 on * translates something else: there, --beam-size is 2; on rank 0, --beam-size is 4 (*' \
  ranks 1 "$translate" "${short[@]}" -i source : -n 1 "$translate" "${short[@]}" -b 2 -i source
mkdir other
expect 1 '' 'translate: rank 1: m.h5: cannot open: No such file or directory' \
  ranks 1 "$translate" "${short[@]}" -i source : -n 1 -wdir "$PWD/other" "$translate" "${short[@]}" -i source
"$HEED_BIN/train" -q -j 1 -t en fr -v vocab -m other/m.h5 --task transformer-tiny --enc-depth 1 --dec-depth 1 --dim-emb 32 \
  --transformer-heads 2 --transformer-dim-ffn 64 --after 1u --learn-rate 1e-6 --seed 2 || fail "train failed"
# Only rank 0 needs the input.
expect 1 '' 'translate: rank 1 on * translates something else: there, m.h5 has * bytes and the checksum *; on rank 0, m.h5 *' \
  ranks 1 "$translate" "${short[@]}" -i source : -n 1 -wdir "$PWD/other" "$translate" "${short[@]}" -i source
cp m.h5 other
ranks 1 "$translate" "${short[@]}" -i source : -n 1 -wdir "$PWD/other" "$translate" "${short[@]}" -i source | cmp - expected || fail "two folders: other bytes"
# Images that some ranks cannot read: all of them count, and the first of them is named, whichever rank reads it.
shapes=$HEED_SOURCE/data/shapes
"$HEED_BIN/train" -q -j 1 -t "$shapes/train.images" "$shapes/train.labels" --task vit --patch-size 8 --dim-emb 16 --enc-depth 1 \
  --transformer-heads 2 --transformer-dim-ffn 32 --mini-batch 50 --after 1u -m images.h5 || fail "train on images failed"
(sed -n "1,3s|^|$shapes/|p" "$shapes/test.images"; seq -f 'missing%g.png' 4 24) >some
expect 0 '*' 'translate: warning: *some:4: *missing4.png: *; lines left empty because their image cannot be read: 21' \
  ranks 3 "$translate" -m images.h5 -j 1 --on-bad-image empty -i some
mv stdout labels
"$translate" -q -m images.h5 -j 1 --on-bad-image empty -i some 2>log | cmp - labels || fail "bad images on three ranks: other bytes"
for n in $(seq 24); do cp "$shapes/$(sed -n "${n}p" "$shapes/test.images")" "$n.png" && echo "$n.png"; done >all
cp images.h5 other
expect 1 '*' 'translate: rank 1: all:*.png: *No such file or directory' \
  ranks 1 "$translate" -m images.h5 -i all : -n 1 -wdir "$PWD/other" "$translate" -m images.h5 -i all
mkdir alone
cp "$translate" alone
expect 2 '' 'translate: started 2 times by a launcher, but MPI cannot be loaded: *mpi.so: *' \
  env OMPI_COMM_WORLD_SIZE=2 alone/translate -m m.h5 -i source
if ldd "$translate" | grep -q libmpi; then fail "translate is linked to MPI"; fi

# long: a job that takes long enough to be met.
for _ in $(seq 80); do cat source; done >long
killed() { # killed COMMAND...: runs COMMAND on three ranks until it is at work, and kills the newest rank
  rm -f .whole.*.tmp
  timeout -k 5 60 mpirun --mca odls_base_sigkill_timeout 0 -n 3 "$@" >out 2>messages &
  local launcher=$!
  for _ in $(seq 100); do
    find . -name 'whole.partial' -size +0 -o -name '.whole.*.tmp' -size +0 | grep -q . && break
    sleep 0.02
  done
  pkill -KILL -n -f "^$translate .*-i long" # the launchers' command lines begin otherwise
  wait "$launcher"
}
killed "$translate" "${short[@]}" -i long -o whole
code=$?
[ "$code" -ne 0 ] && grep -q 'noticed that process rank [0-2] .*Killed' messages || fail "kill -9 of a rank: exit $code, $(tail -n 5 messages)"
[ -e whole ] && fail "a killed job leaves its output"
# A killed job goes on, with another number of ranks.
"$translate" -q "${short[@]}" -i long >expected
killed "$translate" "${short[@]}" -i long -o whole --resume && fail "the long job ended before it was killed"
[ -s whole.partial ] || fail "a killed job leaves nothing to go on from"
expect 0 '' 'translate: whole.partial: goes on after line *' ranks 2 "$translate" "${short[@]}" -i long -o whole --resume
cmp whole expected || fail "--resume on two ranks: other bytes"
expect 0 '' 'translate: whole: is complete already' ranks 2 "$translate" "${short[@]}" -i long -o whole --resume
finish
