#!/usr/bin/env bash
# Tests kernel-regression with pipes and files: columns, pictures, exit codes, messages, a full disk, a closed pipe, an
# idle input.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
tool=$HEED_BIN/kernel-regression

printf '0\t1\n2\t5\n' >pairs
printf '1\n0.5\n' >queries
gzip -c pairs >pairs.gz

# Predictions: for each pair, for queries in a file or a pipe, for evenly spaced x.
expect 0 $'0\t1.476811688088*\n2\t4.523188311911*' '' bash -c "'$tool' <pairs"
expect 0 $'1\t3\n0.5\t2.075*' '' "$tool" -i pairs.gz --queries queries
expect 0 $'1\t3\n0.5\t2.075*' '' bash -c "'$tool' -i pairs --queries - <queries"
expect 0 $'x\taverage\tboxcar\n0\t3\t1\n1\t3\tnan\n2\t3\t5' 'kernel-regression: warning: boxcar: 1 query has no pair within the bandwidth, first x = 1; *' \
  "$tool" -i pairs -p average boxcar --steps 3 --header
expect 0 '' '' "$tool" -i pairs -o out.gz
[ "$(zcat out.gz | wc -l)" -eq 2 ] || fail "-o out.gz: $(zcat out.gz)"

# The numbers of the output are the numbers of the input, and go through the tool unchanged.
expect 0 '' '' "$tool" --make -q --points 20 --pairs-output made -o predicted
[ "$(wc -l <made)" -eq 20 ] || fail "--pairs-output: $(wc -l <made) lines"
expect 0 "$(cut -f 1 made)" '' bash -c "'$tool' -p average <made | cut -f 1"
expect 0 $'x\tgaussian\tlearned\ttruth\n0\t*\t*\t0\n0.1\t*' 'kernel-regression: learned the bandwidth 0.*' \
  "$tool" --make -p gaussian learned --header

# Pictures appear when they are complete.
expect 0 '' '' "$tool" --make -q -p all --plot fit.svg --heatmap weights.svg -o /dev/null
for picture in fit weights; do
  [[ $(head -c 5 $picture.svg) == '<?xml' && $(tail -c 7 $picture.svg) == '</svg>' ]] || fail "$picture.svg is no whole SVG"
done
expect 0 '' '' "$tool" --make --plot fit.png --heatmap weights.png -o /dev/null
for picture in fit weights; do
  [ "$(head -c 4 $picture.png | tail -c 3)" = PNG ] || fail "$picture.png is no PNG"
done
expect 1 '*' 'kernel-regression: none/fit.svg: *No such file or directory*' "$tool" -i pairs --plot none/fit.svg
expect 0 $'Kernel regression\n. 2 pairs   \\* Gaussian, bandwidth 1\ny\n*rows: query x; columns: x of the pairs\n*weight 0 *' '' \
  "$tool" -i pairs -f plot heatmap --ascii

COLORTERM=truecolor "$tool" -i pairs -f heatmap --color always -o colors || fail "-f heatmap -o colors: exit $?"
grep -q $'\x1b\\[48;2;' colors || fail "a file has no 24-bit colours in spite of COLORTERM"
expect 0 'Kernel regression*' 'kernel-regression: warning: boxcar: 1 query has no pair within the bandwidth, first x = 1; *' \
  "$tool" -i pairs -p boxcar --steps 3 -f plot
expect 1 '' $'*: w 9.99*e+159, loss nan\nkernel-regression: learning diverged in epoch 1 *' "$tool" --make -p learned -l 1e160 -v

# Wrong input.
expect 1 '' 'kernel-regression: missing: *No such file or directory*' "$tool" -i missing
expect 1 '' "kernel-regression: standard input: has no pairs (a line is: x TAB y)" "$tool" </dev/null
printf '1\t2\n3 4\n' >bad
expect 1 '' "kernel-regression: bad:2: no TAB in this line (a line is: x TAB y; tr ' ' '\\\\t' writes TABs)" "$tool" -i bad
printf '1\t2\n3\tfour\n' >bad
expect 1 '' "kernel-regression: bad:2:3: 'four' is not a number (*)" "$tool" -i bad
printf '1\n2\n1e\n' >bad
expect 1 '*' "kernel-regression: bad:3:1: '1e' is not a number (*)" "$tool" -i pairs --queries bad
expect 1 '' 'kernel-regression: bad:3:1: *' "$tool" -i pairs --queries bad -o none
[ ! -e none ] || fail "a failed run leaves its output"
head -n 1 pairs >one
expect 1 '' 'kernel-regression: one: has one pair, but learning the bandwidth needs at least 2 (*' "$tool" -i one -p learned
expect 0 $'0\t1' '' "$tool" -i one
expect 2 '' 'kernel-regression: --points: has no use without --make' "$tool" -i pairs --points 3
expect 2 '' 'kernel-regression: -o fit.svg: the output is text (--plot FILE draws the predictions, *' "$tool" -i pairs -o fit.svg
expect 2 '' 'kernel-regression: unknown option --kernel: did you mean --pooling? (R)*' "$tool" -i pairs --kernel gaussian
expect 2 '' "kernel-regression: --pooling 'gauss': must be one of average, gaussian, *" "$tool" -i pairs -p gauss

expect_full_disk kernel-regression --make
expect_full_disk kernel-regression -i pairs --queries queries
mkfifo asked answers
"$tool" -i pairs --queries - <asked >answers &
exec 3>asked 4<answers
for query in 1 0.5; do
  echo "$query" >&3
  read -r -t 10 answer <&4 || fail "an idle input does not flush"
  [[ $answer == "$query"$'\t'* ]] || fail "the query $query has the answer '$answer'"
done
exec 3>&- 4<&-
wait $! || fail "fails at the end of a coprocess"
yes 1 2>/dev/null | "$tool" -i pairs --queries - 2>stderr | head -n 1 >stdout
[ "${PIPESTATUS[1]}" -eq 141 ] || fail "a closed pipe does not end it as SIGPIPE does"
[ -s stderr ] && fail "a closed pipe is not silent: $(cat stderr)"

# On a terminal, the tool draws.
if command -v script >/dev/null; then
  COLUMNS=80 TERM=xterm script -qec "'$tool' --make" /dev/null </dev/null | tr -d '\r' >drawn
  grep -q 'rows: query x (2 together)' drawn || fail "no picture on a terminal: $(head -c 500 drawn)"
fi
finish
