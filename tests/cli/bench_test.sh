#!/usr/bin/env bash
# Checks that the sections of scripts/bench run on very small work, without peers, and that the tables, the TSV and the
# closing line hold the measurements.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
command -v python3 >/dev/null || { echo "no python3" >&2; exit 77; }
bench=$HEED_SOURCE/scripts/bench

expect 0 '*--only SECTION*--moses DIR*' '' "$bench" --help
for section in gemm train translate latency load memory neighbour growth text learn pieces bleu curves gpu; do
  "$bench" --help | grep -q "^  $section  *[a-zA-Z]" || fail "--help does not say what $section is"
done
expect 2 '' "*no section 'speed' (there are gemm, *" "$bench" --only speed
expect 1 '' "bench: nowhere: no train in it (name the folder with heed's programs)" "$bench" --bin nowhere --only bleu
expect 1 '' '*nowhere: no train.en.gz in it (name the folder *' "$bench" --bin "$HEED_BIN" --no-peers --multi30k nowhere --only bleu
expect 1 '' '*nowhere: no bin/python in it (name a virtual *' "$bench" --bin "$HEED_BIN" --venv nowhere --only bleu
expect 2 '' '*--measured: a row needs the sections gemm, train, translate, latency, and neither --quick nor --no-peers' "$bench" --measured FILE --only train
expect 2 '' '*--measured: a row needs *' "$bench" --measured FILE --quick
expect 2 '' '*--draft: needs --model*' "$bench" --draft FILE --only latency
expect 2 '' '*--draft: is measured in the section latency only' "$bench" --model FILE --draft FILE --only train
expect 2 '' '*--svg: draws the sections growth and curves only' "$bench" --svg FILE --only train
expect 2 '' '*--tsv missing/rows.tsv: there is no folder missing' "$bench" --tsv missing/rows.tsv
expect 1 '' 'bench: *README.md: no table of measurements in it (begin with *' "$bench" --measured "$HEED_SOURCE/README.md"
expect 0 '' '*OK' python3 "$HEED_SOURCE/tests/cli/bench_quote_test.py"

export TMPDIR=$PWD
toy=(--quick --no-peers --bin "$HEED_BIN" --lines 40 --rows '^(BLEU|TER)$' --tsv rows.tsv)
expect 0 '# heed beside its peers*- machine: *## load: *| tiny, int8, 30 pieces | ms |*## learn: *| learn BPE 1000 | MB/s |*
## bleu: *| BLEU | s |*| TER | s |*| the same output |*minutes; load * at the end' '*bench: bleu: TER: heed *' "$bench" "${toy[@]}" --only load,learn,bleu
[ "$(head -n 1 rows.tsv | cut -f 1-4,8)" = "section	measurement	unit	heed best	peer median" ] || fail "the TSV begins with $(head -n 1 rows.tsv)"
awk -F '\t' 'NF != 12 || (NR > 1 && !($4 > 0 && $5 > 0 && $11 == 1)) { exit 1 }' rows.tsv || fail "rows without numbers: $(cat rows.tsv)"
[ "$(cut -f 1 rows.tsv | sort -u | tr '\n' ' ')" = 'bleu learn load section ' ] || fail "sections in the TSV: $(cut -f 1 rows.tsv | sort -u)"
[ "$(find . -maxdepth 1 -name 'heed-bench-*')" = '' ] || fail "the folder it worked in is still there"

expect 0 '*| train tiny, bfloat16, 1,000 words | tokens/s |*| translate tiny, float32, beam 4, a file | pieces/s |*| translate tiny, float32, greedy, line by line | pieces/s |* ms a piece*' \
  '*' "$bench" --quick --no-peers --bin "$HEED_BIN" --only gpu --device cpu

# Beside a heed_gemm_bench that only prints a peak, the last line gives a share of that peak.
mkdir bin && ln -s "$HEED_BIN"/* bin/ && rm -f bin/heed_gemm_bench
cat >bin/heed_gemm_bench <<'EOF'
#!/bin/sh
[ "$1" = peak ] && echo "| avx2 | 2 | 50 | 40 | 80 % | 50 | 40 | 80 % | | | |" || echo avx2
EOF
chmod +x bin/heed_gemm_bench
unset HEED_ISA
expect 0 '*minutes; load * at the end*' '*' "$bench" --quick --no-peers --bin bin --only gemm,train --updates 1
cp stdout report.md
expect 0 'heed [0-9]* on * thread*, avx2: training tiny in *float* at [0-9]* % of the peak' '' tail -n 1 report.md
finish
