#!/usr/bin/env bash
# Runs train on a disk that is too small: the message names the file, the exit code is 1, and the files that were on the
# disk are unchanged.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
train=$HEED_BIN/train

mkdir disk
mount -t tmpfs -o size=512k none disk 2>/dev/null || { echo "only root can mount a small disk"; exit 77; }
trap 'cd /; umount "$OLDPWD/disk"; rm -rf "$OLDPWD"' EXIT

head -n 60 "$HEED_SOURCE/data/train.en" >a.en
head -n 60 "$HEED_SOURCE/data/train.fr" >a.fr
cat a.en a.fr | "$HEED_BIN/build-vocab" -q --type bpe -s 110 >vocab || fail "build-vocab failed"
small=(--enc-depth 1 --dec-depth 1 --dim-emb 16 --transformer-heads 2 --transformer-dim-ffn 16)
common=("$train" -q -j 1 -t a.en a.fr -v vocab --after 3u --task transformer-tiny)
"${common[@]}" "${small[@]}" -m disk/old.h5 || fail "a small model does not fit on the disk"
"${common[@]}" -m large.h5 || fail "train failed"
cp disk/old.h5 old.h5

# Checks that no new file is left beside the old model, and that the message names the model and no temporary file.
full() {
  expect 1 '' "train: $1: */weight: cannot write: No space left on device" "${@:2}"
  cmp -s old.h5 disk/old.h5 || fail "$1: the model on the disk was changed"
  [ "$(ls -A disk)" = old.h5 ] || fail "$1: there is more on the disk: $(ls -A disk)"
}
full disk/new.h5 "${common[@]}" -m disk/new.h5
full disk/new.h5 "$train" --average large.h5 large.h5 -o disk/new.h5
mv disk/old.h5 training.h5
"$train" -q --average training.h5 -o disk/old.h5 || fail "--average failed"
cp disk/old.h5 old.h5
full disk/old.h5 "$train" --average large.h5 large.h5 -o disk/old.h5
cp training.h5 old.h5
cp training.h5 disk/old.h5
# The disk becomes full during a training: the previous checkpoint is complete, and the same command continues from it.
mv disk/old.h5 disk/m.h5
free=$(df -k --output=avail disk | tail -n 1)
dd if=/dev/zero of=disk/filler bs=1k count=$((free - 80)) 2>/dev/null
expect 1 '' 'train: disk/m.h5: *cannot write: No space left on device' "${common[@]}" "${small[@]}" -m disk/m.h5 --after 6u
cmp -s old.h5 disk/m.h5 || fail "the training on the disk was changed"
rm disk/filler
expect 0 '' '*goes on after update 3*' "${common[@]}" "${small[@]}" --no-quiet -m disk/m.h5 --after 6u

finish
