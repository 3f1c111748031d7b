#!/usr/bin/env bash
# Tests scripts/wmt14: the rehearsal goes through every step on data/, a second run goes on from what is there, a dry run
# prints the times, and raw files that do not fit are named.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HEED_BIN UPDATES=20 THREADS=2 DEVICE=cpu
wmt14=$HEED_SOURCE/scripts/wmt14

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

if "$wmt14" en-de huge > "$folder/out" 2> "$folder/err"; then fail "wmt14 accepts an unknown size"; fi
grep -q '^usage: scripts/wmt14 en-de' "$folder/err" || fail "wmt14 says no usage"
tail -n 1 "$folder/err" | grep -q '^  test-full.tgz ' || fail "the usage does not end with the last archive: $(tail -n 3 "$folder/err")"
if "$wmt14" en-de base --quick 2> "$folder/err"; then fail "wmt14 accepts an unknown option"; fi
if "$wmt14" en-de base "$folder/nowhere" "$folder/x" 2> "$folder/err"; then fail "wmt14 needs no data"; fi
grep -q "^wmt14: no folder $folder/nowhere (" "$folder/err" || fail "the missing folder is not named: $(cat "$folder/err")"

for run in first again; do
  (cd "$folder" && "$wmt14" rehearsal "$HEED_SOURCE/data" work) > "$folder/$run" 2> "$folder/err" || fail "the rehearsal failed ($run run): $(tail -n 3 "$folder/err")"
  grep -qE '^BLEU on newstest2014, raw text, 13a: [0-9.]+$' "$folder/$run" || fail "no BLEU of raw text ($run run)"
  grep -qE '^BLEU on newstest2014, tokens, compounds split: [0-9.]+$' "$folder/$run" || fail "no BLEU of tokens ($run run)"
done
[ "$(grep -c '^wmt14: unpack .*/server/wmt1[034]/' "$folder/first")" -eq 7 ] || fail "not all archives are unpacked: $(cat "$folder/first")"
[ ! -e "$folder/work/raw" ] || fail "the unpacked files are still there"
grep -q '^wmt14: giga-fren.release2.fixed: 929 pairs$' "$folder/first" || fail "a part is not counted"
if grep -qE 'pairs$|unpack' "$folder/again"; then fail "the second run reads the raw text again"; fi
cmp -s <(tail -n 2 "$folder/first") <(tail -n 2 "$folder/again") || fail "the second run prints another BLEU"
cmp "$HEED_SOURCE/data/test.fr" "$folder/work/test.fr" || fail "the segments of the SGML file are not the lines of the test"

# Tatoeba's form: pairs in one file, of which some sentences are held out.
mkdir "$folder/tatoeba"
paste "$HEED_SOURCE/data/train.en" "$HEED_SOURCE/data/train.fr" | gzip > "$folder/tatoeba/fra-eng.tsv.gz"
"$wmt14" rehearsal "$folder/tatoeba" "$folder/pairs" > "$folder/out" 2> "$folder/err" || fail "the rehearsal on pairs failed: $(tail -n 3 "$folder/err")"
grep -qE '^BLEU on newstest2014, raw text, 13a: [0-9.]+$' "$folder/out" || fail "no BLEU of pairs"
sort -u "$folder/pairs/pairs/test.en" > "$folder/held-out"
[ "$(wc -l < "$folder/held-out")" -gt 20 ] || fail "too few sentences are held out"
if grep -qxFf "$folder/held-out" "$folder/pairs/pairs/train.en"; then fail "a sentence of the test is in the training text"; fi

rm "$folder/work/model.h5"
UPDATES=100000 "$wmt14" rehearsal --dry-run "$HEED_SOURCE/data" "$folder/work" > "$folder/out" 2> "$folder/err" || fail "the dry run failed: $(cat "$folder/err")"
for line in 'speed expected' 'time on this machine +[0-9.]+ hours' 'time on one H200 +[0-9.]+ hours \(the aim' 'time on eight'; do
  grep -qE "^ *$line" "$folder/out" || fail "the dry run has no line '$line': $(cat "$folder/out")"
done
[ ! -e "$folder/work/model.h5" ] || fail "the dry run trains"

# Downloads: one goes on where it stopped, and the text is the same. The path is none that a URL can have as it is.
fetch="$folder/fetch #1 [a] 50%20"
mkdir -p "$fetch/downloads"
head -c 1000 "$folder/work/server/wmt14/dev.tgz" > "$fetch/downloads/dev.tgz.part"
"$wmt14" rehearsal --fetch --dry-run "$HEED_SOURCE/data" "$fetch" > "$folder/out" 2> "$folder/err" || fail "the downloads failed: $(cat "$folder/err")"
[ "$(grep -c "^wmt14: download file://.*/server/wmt1" "$folder/out")" -eq 7 ] || fail "not all archives are downloaded: $(cat "$folder/out")"
for file in train.en.gz train.fr.gz valid.en test.fr; do
  cmp -s "$folder/work/$file" "$fetch/$file" || fail "downloaded archives give another $file"
done

# Killed while the files of an archive get their place: the next run has all of them or unpacks them again. `mv -t` would move file
# after file.
mkdir "$folder/killer"
cat > "$folder/killer/mv" << 'END'
#!/bin/bash
[[ $* == */unpacking* ]] || exec /bin/mv "$@"
[ "$1" != -t ] || /bin/mv -t "$2" "$3"
kill -KILL $PPID
END
chmod +x "$folder/killer/mv"
status=0
{ PATH=$folder/killer:$PATH "$wmt14" rehearsal --dry-run "$HEED_SOURCE/data" "$folder/killed" > "$folder/out" 2>&1; } 2> /dev/null || status=$?
[ $status -ne 0 ] || fail "no kill while unpacking"
grep -q '^wmt14: unpack ' "$folder/out" || fail "killed before unpacking: $(cat "$folder/out")"
"$wmt14" rehearsal --dry-run "$HEED_SOURCE/data" "$folder/killed" > "$folder/out" 2> "$folder/err" || fail "after a kill while unpacking: $(cat "$folder/err")"
cmp -s "$folder/work/train.fr.gz" "$folder/killed/train.fr.gz" || fail "after a kill while unpacking: another text"

# What goes wrong with archives: no connection, another file than expected, a damaged one.
mkdir -p "$folder/bin" "$folder/archives"
printf '#!/bin/sh\nexit 6\n' > "$folder/bin/curl"
chmod +x "$folder/bin/curl"
if PATH=$folder/bin:$PATH "$wmt14" en-de base --fetch "$folder/archives" "$folder/z" > /dev/null 2> "$folder/err"; then fail "wmt14 needs no connection"; fi
grep -q '^wmt14: cannot download https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz (the same command goes on' "$folder/err" ||
  fail "the failed download is not named: $(cat "$folder/err")"
printf '#!/bin/sh\nwhile [ "$1" != --output ]; do shift; done\necho "not found" > "$2"\n' > "$folder/bin/curl"
for run in download damaged; do
  if PATH=$folder/bin:$PATH "$wmt14" en-de base --fetch "$folder/archives" "$folder/z" > "$folder/out" 2> "$folder/err"; then fail "wmt14 takes any archive"; fi
  grep -q "^wmt14: $folder/archives/training-parallel-europarl-v7.tgz has the checksum [0-9a-f]* instead of 0224c7c710" "$folder/err" ||
    fail "the wrong archive is not named ($run): $(cat "$folder/err")"
done
if grep -q download "$folder/out"; then fail "an archive that is there is downloaded"; fi

# Real names: a missing file, and sides of different lengths.
mkdir "$folder/raw"
for language in de en; do
  printf 'a\n' > "$folder/raw/newstest2013.$language"
  kind=ref
  [ $language = de ] || kind=src
  printf '<seg id="1">a</seg>\n' > "$folder/raw/newstest2014-deen-$kind.$language.sgm"
done
for part in europarl-v7 commoncrawl; do
  for language in de en; do printf 'a\nb\n' > "$folder/raw/$part.de-en.$language"; done
done
if "$wmt14" en-de base "$folder/raw" "$folder/y" > /dev/null 2> "$folder/err"; then fail "wmt14 does without a part"; fi
grep -q '^wmt14: no news-commentary-v9.de-en.en (or ' "$folder/err" || fail "the missing file is not named: $(cat "$folder/err")"
printf 'a\n' > "$folder/raw/commoncrawl.de-en.de"
if "$wmt14" en-de base "$folder/raw" "$folder/y" > /dev/null 2> "$folder/err"; then fail "wmt14 takes sides of different lengths"; fi
grep -q "^wmt14: .*/commoncrawl.de-en.en and .*/commoncrawl.de-en.de have different numbers of lines" "$folder/err" ||
  fail "the sides of different lengths are not named: $(cat "$folder/err")"
