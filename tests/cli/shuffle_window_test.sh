#!/usr/bin/env bash
# Checks training from a text on disk, of which a window is in memory (--shuffle-window).
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
train=$HEED_BIN/train
command -v h5diff >/dev/null || { echo "no h5diff (hdf5-tools)"; exit 77; }
files=(-t "$HEED_SOURCE/data/train.en" "$HEED_SOURCE/data/train.fr")
cat "$HEED_SOURCE"/data/train.* | "$HEED_BIN/build-vocab" -q --type bpe -s 500 >vocab || fail "build-vocab failed"
options=(-q -v vocab --task transformer-tiny --enc-depth 1 --dec-depth 1 --dim-emb 16 --transformer-dim-ffn 16 --mini-batch-words 4000
  --dropout 0.2 --lr-warmup 0)
mkdir scratch
window=(--shuffle-window 3000 --tempdir scratch)


"$train" "${files[@]}" "${options[@]}" "${window[@]}" -j 2 --after 2e -m whole.h5 || fail "exit $?"
[ -z "$(ls -A scratch)" ] || fail "it leaves $(ls -A scratch)"

# Interrupted within the second and the third window, and in the second epoch.
for after in 13u 21u 29u 2e; do
  "$train" "${files[@]}" "${options[@]}" "${window[@]}" -j 1 --after "$after" -m parts.h5 || fail "until $after: exit $?"
done
same_parameters whole.h5 parts.h5 "continued"

# A window of all pairs is training in memory; a smaller one is not.
"$train" "${files[@]}" "${options[@]}" -j 1 --after 8u -m memory.h5 || fail "in memory: exit $?"
"$train" "${files[@]}" "${options[@]}" --shuffle-window 7000 -j 1 --after 8u -m all.h5 || fail "one window: exit $?"
same_parameters memory.h5 all.h5 "one window"
"$train" "${files[@]}" "${options[@]}" "${window[@]}" -j 1 --after 8u -m three.h5 || fail "three windows: exit $?"
other_parameters memory.h5 three.h5 "three windows have the order of one"
paste "$HEED_SOURCE"/data/train.{en,fr} | "$train" --tsv - "${options[@]}" "${window[@]}" --after 8u -m stdin.h5 || fail "standard input: exit $?"
same_parameters three.h5 stdin.h5 "standard input"

expect 1 '' "train: whole.h5: cannot go on with this training: --shuffle-window is 3000 there, 2000 here (*" \
  "$train" "${files[@]}" "${options[@]}" --shuffle-window 2000 --after 3e -m whole.h5
expect 1 '' "train: scratch: cannot write a temporary file, after * bytes: File too large (name another folder with --tempdir)" \
  bash -c "ulimit -f 20; exec \"\$@\"" - "$train" "${files[@]}" "${options[@]}" "${window[@]}" --after 1u -m m.h5
expect 2 '' "train: --tempdir: needs a text on disk (--shuffle-window N)*" "$train" "${files[@]}" "${options[@]}" --tempdir . -m m.h5
"$train" --check "${files[@]}" "${options[@]:1}" "${window[@]}" >check 2>&1 || fail "--check: exit $?"
grep -q 'pairs examined  *[12],[0-9]*, one window of --shuffle-window' check || fail "--check: $(cat check)"
finish
