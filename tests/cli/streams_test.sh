#!/usr/bin/env bash
# Tests every program with closed standard streams, with outputs that are symbolic links or also inputs, and with logs.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1

head -n 60 "$HEED_SOURCE/data/train.en" >a.en
head -n 60 "$HEED_SOURCE/data/train.fr" >a.fr
cat a.en a.fr | "$HEED_BIN/build-vocab" -q --type bpe -s 110 >vocab || fail "build-vocab failed"
train=("$HEED_BIN/train" -q -j 1 --task transformer-tiny --enc-depth 1 --dec-depth 1 --dim-emb 16 --transformer-dim-ffn 16)
"${train[@]}" -t a.en a.fr -v vocab -m m.h5 --after 2u || fail "train failed"

# A closed input or output is an error, not an empty file; no file that a program opens takes the closed stream's
# number.
closed_input() {
  expect 1 '' "${1##*/}: standard input: cannot read: Bad file descriptor" bash -c '"$@" <&-' - "$@"
}
closed_output() {
  expect 1 '' "*${1##*/}: standard output: cannot write: Bad file descriptor" bash -c '"$@" <a.en >&-' - "$@"
}
for command in tokenize 'tokenize -m m.h5' 'translate -m m.h5' build-vocab 'bleu a.en' 'inspect-attention -m m.h5'; do
  # shellcheck disable=SC2086
  set -- $command
  closed_input "$HEED_BIN/$1" "${@:2}"
  closed_output "$HEED_BIN/$1" "${@:2}"
done
closed_input "$HEED_BIN/kernel-regression"
closed_output "$HEED_BIN/kernel-regression" --make
closed_input "${train[@]}" --tsv - -v vocab -m x.h5
[ -e x.h5 ] && fail "train wrote a model from a closed input"
for tool in tokenize translate build-vocab bleu inspect-attention kernel-regression train; do closed_output "$HEED_BIN/$tool" --help; done
expect 0 '' '' bash -c "'$HEED_BIN/tokenize' -i a.en -o out <&- >&- 2>&-"
"$HEED_BIN/tokenize" <a.en | cmp -s - out || fail "a closed stdin, stdout and stderr change what is written to a file"
expect 1 '' '' bash -c "'$HEED_BIN/tokenize' -m missing.h5 -o out 2>&-"

# A program replaces or creates the file to which a link leads; the link stays.
mkdir files
echo old >files/file
for name in file new; do
  ln -s "files/$name" "to-$name"
  expect 0 '' '' "$HEED_BIN/tokenize" -i a.en -o "to-$name"
  [ -L "to-$name" ] || fail "to-$name: the link was replaced"
  cmp -s out "files/$name" || fail "to-$name: the file was not written"
done
ln -s files/m.h5 link.h5
"${train[@]}" -t a.en a.fr -v vocab -m link.h5 --after 2u || fail "train -m link.h5 failed"
expect 0 '' '*goes on after update 2*' "${train[@]}" --no-quiet -t a.en a.fr -v vocab -m link.h5 --after 3u
[ -L link.h5 ] || fail "train replaced the link"
ln -s files/average.h5 average.h5
for _ in new old; do expect 0 '' '' "$HEED_BIN/train" -q --average m.h5 -o average.h5; done
[ -L average.h5 ] || fail "train --average replaced the link"
[ "$(ls -A files | tr '\n' ' ')" = 'average.h5 file m.h5 new ' ] || fail "beside the files: $(ls -A files)"
ln -s a.en to-a.en
ln -s /proc/self/fd/1 like-dev-stdout
expect 0 '' '' bash -c "'$HEED_BIN/tokenize' -i a.en -o like-dev-stdout >through"
cmp -s out through || fail "-o /dev/stdout into a file gives something else"
echo before >through
expect 0 '' '' bash -c "('$HEED_BIN/tokenize' -i a.en -o like-dev-stdout; echo after) >>through"
{ echo before; cat out; echo after; } | cmp -s - through || fail "-o /dev/stdout >>through replaces what the file holds"

# A file that is replaced keeps its permissions, and its temporary file has them, too. A new file gets those of the umask.
permissions() { stat -L -c %a "$@" | tr '\n' ' '; }
private=(private.txt private.h5 private.maps.h5 private.svg)
touch private.txt private.maps.h5 private.svg
cp m.h5 private.h5
chmod 600 "${private[@]}"
(umask 027 && "$HEED_BIN/tokenize" -i a.en -o new.txt) || fail "tokenize -o new.txt failed"
[ "$(permissions new.txt)" = '640 ' ] || fail "a new file has the permissions $(permissions new.txt)"
ln -s private.txt to-private
expect 0 '' '' "$HEED_BIN/tokenize" -i a.en -o to-private
"${train[@]}" -t a.en a.fr -v vocab -m private.h5 --after 3u || fail "train -m private.h5 failed"
expect 0 '' '' "$HEED_BIN/inspect-attention" -q -m m.h5 -i a.en --lines 1 -o private.maps.h5
expect 0 '*' '' "$HEED_BIN/kernel-regression" -q --make --plot private.svg
for file in "${private[@]}"; do [ -s "$file" ] || fail "$file was not written"; done
[ "$(permissions "${private[@]}")" = '600 600 600 600 ' ] || fail "${private[*]} have the permissions $(permissions "${private[@]}")"
mkfifo slow
mkdir during && touch during/private && chmod 600 during/private
"$HEED_BIN/tokenize" -i slow -o during/private &
exec 3>slow
for _ in $(seq 200); do
  [ "$(find during -name '.private.*.tmp' | wc -l)" -eq 0 ] || break
  sleep 0.02
done
[ "$(permissions during/.private.*.tmp)" = '600 ' ] || fail "the temporary file of a private file is not private: $(ls -lA during)"
exec 3>&-
wait $! || fail "tokenize -i slow failed"
# A file of a group stays with the group, so that its members can go on reading it.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null && chmod 755 . && setpriv --reuid 65534 "$HEED_BIN/tokenize" -i a.en >/dev/null 2>&1; then
  mkdir -m 777 team && touch team/file team/owned && chown 1234:4321 team/* && chmod 660 team/*
  expect 0 '' '' setpriv --reuid 65534 --regid 65534 --groups 4321 "$HEED_BIN/tokenize" -i a.en -o team/file
  expect 0 '' '' "$HEED_BIN/tokenize" -i a.en -o team/owned
  [ "$(stat -c '%a %u %g' team/file team/owned | tr '\n' ' ')" = '660 65534 4321 660 1234 4321 ' ] || fail "the files of a group are $(ls -lA team)"
fi
# A write-protected file is not replaced. (Root may write it.)
if [ "$(id -u)" -ne 0 ]; then others=(); else others=(setpriv --reuid 65534 --regid 65534 --clear-groups); fi
chmod 755 . && mkdir -m 777 protected && cp a.en m.h5 protected/ && chmod 444 protected/*
if [ "$(id -u)" -ne 0 ] || { command -v setpriv >/dev/null && chown 65534 protected/* && "${others[@]}" "$HEED_BIN/tokenize" -i a.en >/dev/null 2>&1; }; then
  expect 1 '' 'tokenize: protected/a.en: cannot open for writing: Permission denied' "${others[@]}" "$HEED_BIN/tokenize" -i a.fr -o protected/a.en
  expect 1 '' 'train: protected/m.h5: cannot open for writing: Permission denied' "${others[@]}" "${train[@]}" -t a.en a.fr -v vocab -m protected/m.h5 --after 3u
  cmp -s a.en protected/a.en && cmp -s m.h5 protected/m.h5 || fail "a write-protected file was replaced"
  # A folder may take files of a user who cannot list it.
  mkdir drop && chmod 333 drop
  expect 0 '' '' "${others[@]}" "$HEED_BIN/tokenize" -i a.en -o drop/file
  chmod 755 drop && [ -s drop/file ] || fail "no file in a folder that cannot be read"
fi
expect 1 '' 'tokenize: a.en/out: cannot open for writing: Not a directory' "$HEED_BIN/tokenize" -i a.fr -o a.en/out

# No output takes the place of an input or of another output, and no file has an empty name.
spoils() {
  expect 2 '' "${3##*/}: $1: is also the file of $2, and one would spoil the other (name another file)" "${@:3}"
}
cp a.en before
spoils '-o a.en' -i "$HEED_BIN/tokenize" -i a.en -o a.en
spoils '-o to-a.en' -i "$HEED_BIN/tokenize" -i "$PWD/./a.en" -o to-a.en
spoils '--log a.en' -i "$HEED_BIN/tokenize" -i a.en --log a.en
spoils '-o a.en' 'an input' "$HEED_BIN/build-vocab" a.fr a.en -o a.en
spoils '-o v' --codes-output "$HEED_BIN/build-vocab" --type bpe -s 110 a.en -o v --codes-output ./v
spoils '-o m.h5' -m "$HEED_BIN/translate" -m m.h5 -i a.en -o m.h5
spoils '-o a.en' 'an input' "$HEED_BIN/bleu" a.en -i a.fr -o a.en
spoils '-o a.fr' -t "$HEED_BIN/inspect-attention" -m m.h5 -i a.en -t a.fr -o a.fr
spoils '--plot p.svg' --heatmap "$HEED_BIN/kernel-regression" --make --plot p.svg --heatmap p.svg
spoils '-o m.h5' --average "$HEED_BIN/train" --average m.h5 -o m.h5
echo 'input = a.en' >settings
spoils '-o settings' --config "$HEED_BIN/tokenize" --config settings -o settings
cmp -s before a.en || fail "a refused output has changed a.en"
[ -e v ] && fail "build-vocab wrote one of two outputs with one name"
expect 0 '' '' "$HEED_BIN/tokenize" -i /dev/null -o /dev/null --log /dev/null
expect 2 '' 'tokenize: -i: the name of the file is empty (name a file)' "$HEED_BIN/tokenize" -i "" -o out
expect 2 '' 'bleu: an input: the name of the file is empty (name a file)' "$HEED_BIN/bleu" "" -i a.fr
expect 2 '' 'tokenize: --config: the name of the file is empty (name a file)' "$HEED_BIN/tokenize" -i a.en --config ""
expect 1 '' 'build-vocab: missing/codes: cannot open for writing: No such file or directory' \
  "$HEED_BIN/build-vocab" --type bpe -s 110 a.en -o v --codes-output missing/codes
[ -e v ] && fail "build-vocab wrote a vocabulary before it noticed that the folder of the codes is missing"

# A log has the error that ends a program, and stderr has the messages of a log that cannot be written.
expect 1 '' 'tokenize: missing: cannot open: No such file or directory' "$HEED_BIN/tokenize" -i missing --log log
cmp -s stderr log || fail "--log lacks the error: $(cat log)"
printf 'a \xff\n' >invalid
if [ -w /dev/full ]; then
  expect 0 '*' $'tokenize: warning: /dev/full: cannot write: No space left on device (all messages come here from now on)
tokenize: warning: invalid:1:3: invalid UTF-8*' "$HEED_BIN/tokenize" -i invalid --log /dev/full
fi
expect 2 '' 'tokenize: --log log.gz: messages are not compressed (take .gz off the name)' "$HEED_BIN/tokenize" --log log.gz <a.en
[ ! -e log.gz ] || fail "a log has the name of a compressed file"
expect 1 '' 'tokenize: files: cannot open for writing: Is a directory' "$HEED_BIN/tokenize" --log files <a.en
expect 1 '' 'tokenize: files: is a folder (name a file)' "$HEED_BIN/tokenize" --config files <a.en

finish
