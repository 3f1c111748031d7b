#!/usr/bin/env bash
# Tests translate --resume: a job that is killed at any instant goes on and writes the bytes of an uninterrupted job, and
# the partial file of another job is an error.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
translate=$HEED_BIN/translate

head -n 200 "$HEED_SOURCE/data/train.en" >en
head -n 200 "$HEED_SOURCE/data/train.fr" >fr
"$HEED_BIN/build-vocab" -q --type bpe --merges 100 --language en,fr en fr >vocab || fail "build-vocab failed"
train() {
  "$HEED_BIN/train" -q -j 1 -t en fr -v vocab --task transformer-tiny --enc-depth 1 --dec-depth 1 --dim-emb 32 \
    --transformer-heads 2 --transformer-dim-ffn 64 --after 1u --learn-rate 1e-6 "$@" || fail "train failed"
}
train -m m.h5
train -m other.h5 --seed 2
# An empty line, and in line 151 the longest one.
(head -n 60 en; echo; sed -n '62,150p' en; seq -s ' ' 60; sed -n '151,200p' en) >source
short=(-m m.h5 -j 1 --max-output-length 6 -i source)
partial=out.partial

# Every place at which the output can end, with one output line for each input line and with groups of lines.
for options in '' '--n-best 3' '--alignment --scores --maxi-batch 20'; do
  read -ra more <<<"$options"
  "$translate" -q "${short[@]}" "${more[@]}" >expected
  rm -f out
  expect 0 '' '' "$translate" -q "${short[@]}" "${more[@]}" -o out --resume
  cmp out expected || fail "$options: --resume gives something else"
  for bytes in 0 1 30 700 2000 "$(($(wc -c <expected) - 1))" "$(wc -c <expected)"; do
    head -c "$bytes" expected >$partial
    rm out
    expect 0 '' '' "$translate" -q "${short[@]}" "${more[@]}" -o out --resume
    cmp out expected || fail "$options: something else after $bytes bytes"
    [ -e $partial ] && fail "$options: the partial file stays"
  done
done
expect 0 '' 'translate: out: is complete already' "$translate" "${short[@]}" -o out --resume
gzip -c source >source.gz
rm out
"$translate" -q "${short[@]}" >expected
head -n 150 expected >$partial
expect 0 '' 'translate: out.partial: goes on after line 150' "$translate" -m m.h5 -j 1 --max-output-length 6 -i source.gz -o out --resume
cmp out expected || fail "a compressed input gives something else"
mkdir folder
mv out folder/old
ln -s folder/new link
expect 0 '' '' "$translate" "${short[@]}" -o link --resume
cmp folder/new expected && [ -L link ] || fail "a symbolic link does not stay"
(cat fr; tail -n 1 fr) >reference
"$translate" -q -m m.h5 -i source --score reference >scores
head -n 100 scores >$partial
expect 0 '' '' "$translate" -q -m m.h5 -i source --score reference -o out --resume
cmp out scores || fail "--score goes on with something else"
rm out

# An error leaves what is translated, and the same error comes again.
expect 1 '' 'translate: source:151: has * pieces, *' "$translate" "${short[@]}" --max-length 100 --on-long fail -o out --resume
head -n 150 expected | cmp - $partial || fail "not all lines before an error are kept"
expect 1 '' '*translate: source:151: has * pieces, *' "$translate" "${short[@]}" --max-length 100 --on-long fail -o out --resume
expect 0 '' '' "$translate" -q "${short[@]}" -o out --resume
cmp out expected || fail "something else after an error"
rm out

# The partial file of another job.
head -n 30 expected >$partial
for options in '-m other.h5' '--scores' '--n-best 2'; do
  read -ra more <<<"$options"
  expect 1 '' 'translate: out.partial*(*remove*)' "$translate" "${short[@]}" "${more[@]}" -o out --resume
done
head -n 20 source >shorter
expect 1 '' 'translate: out.partial: has the output of 30 lines, but shorter has 20 lines: it belongs to another job (remove it to begin this one)' \
  "$translate" "${short[@]}" -i shorter -o out --resume
head -n 30 expected | cmp - $partial || fail "an error changes the partial file"
(flock 9 && exec "$translate" "${short[@]}" -o out --resume 2>stderr) 9<>$partial && fail "two jobs write one file"
grep -q 'another translate --resume is writing it' stderr || fail "two jobs: $(cat stderr)"
rm $partial
# A user who removes the partial file while a job still writes it, and begins again, keeps the new job's file.
mkfifo lines
"$translate" -q "${short[@]}" -i lines -o out --resume 2>stderr &
exec 3>lines
head -n 3 source >&3
for _ in $(seq 200); do
  [ -s $partial ] && break
  sleep 0.05
done
rm $partial
echo 'of the new job' >$partial
exec 3>&-
wait $! && fail "a job whose partial file was removed ends with success"
grep -q 'out.partial: was removed or replaced by another file while this job wrote it' stderr ||
  fail "a job whose partial file was removed: $(cat stderr)"
[ ! -e out ] || fail "a job puts the partial file of another job in place"
expect 0 'of the new job' '' cat $partial
rm -f out $partial
expect 2 '' 'translate: --resume: needs a file to go on with (-i FILE)' "$translate" -m m.h5 -o out --resume
expect 2 '' 'translate: --resume: needs a file to go on with (-o FILE)' "$translate" -m m.h5 -i source --resume
expect 2 '' 'translate: --resume: a compressed output *' "$translate" "${short[@]}" -o out.gz --resume
spoils='is also the unfinished output of --resume, and one would spoil the other (name another file)'
expect 2 '' "translate: --log out.partial: $spoils" "$translate" "${short[@]}" -o out --resume --log out.partial
ln -s source out.partial
expect 2 '' "translate: -i ./out.partial: $spoils" "$translate" -m m.h5 -i ./out.partial -o out --resume
rm out.partial
expect 0 '' '' "$translate" "${short[@]}" -q -o out --log out.partial
rm -f out out.partial

# Killed again and again, each time a little later.
for _ in $(seq 120); do cat source; done >long
job=("$translate" -q -m m.h5 -j 2 --max-output-length 6 --n-best 2 -i long --maxi-batch 300)
"${job[@]}" >expected || fail "the long job: exit $?"
kills=0
for hundredths in $(seq 15 40); do
  ("${job[@]}" -o out --resume & sleep "0.$hundredths"; kill -9 $! && wait $!) 2>/dev/null
  [ -e out ] && break
  kills=$((kills + 1))
done
"${job[@]}" -o out --resume || fail "after $kills kills: exit $?"
[ "$kills" -ge 2 ] || fail "the job ended before it was killed twice"
cmp out expected || fail "after $kills kills: something else"
finish
