#!/usr/bin/env bash
# Checks the searches of translate beside beam search: exact search, diverse beams, rules about pieces, coverage.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
translate=$HEED_BIN/translate

# A model that has learned a little: the words of a line, from the last to the first.
awk 'BEGIN { srand(7); for (i = 0; i < 400; ++i) { line = turned = ""; n = 1 + int(4 * rand())
  for (j = 0; j < n; ++j) { w = substr("abcde", 1 + int(5 * rand()), 1); line = line (j ? " " : "") w; turned = w (j ? " " : "") turned }
  print line > "source"; print turned > "target" } }'
"$HEED_BIN/build-vocab" -q --type words source target >vocab || fail "build-vocab failed"
"$HEED_BIN/train" -q -j 1 -t source target -v vocab -m m.h5 --task transformer-tiny --enc-depth 1 --dec-depth 1 --dim-emb 32 \
  --transformer-heads 2 --transformer-dim-ffn 64 --mini-batch-words 400 --after 60u || fail "train failed"
"$HEED_BIN/train" -q -j 1 -t source target -v vocab -m rnn.h5 --task rnn --dim-emb 16 --dim-rnn 16 --after 1u || fail "train failed"
head -n 12 source >few

# The beam that holds everything finds what exact search finds. 5 words and </s>, at most 3 pieces.
all=(-m m.h5 -j 1 -i few --max-output-length 3 --n-best 40)
for options in '--normalize 0' '--normalize 1' '--length-penalty 0.7' '--normalize 0 --no-repeat-ngram-size 1' '--repetition-penalty 1.5' '--shortlist list'; do
  [ -e list ] || "$HEED_BIN/build-vocab" -q --shortlist source target >list || fail "build-vocab --shortlist failed"
  read -ra more <<<"$options"
  "$translate" -q "${all[@]}" "${more[@]}" -b 200 >beam || fail "$options: exit $?"
  "$translate" -q "${all[@]}" "${more[@]}" -b 1 --search exhaustive >exact || fail "$options, exhaustive: exit $?"
  # The last digits of sums that are computed in two ways may differ.
  cut -d '|' -f 1-6 beam >beam.text
  cut -d '|' -f 1-6 exact >exact.text
  cmp beam.text exact.text || fail "$options: exact search finds other translations than the widest beam: $(diff beam exact | head -n 4)"
  [ "$(wc -l <exact)" -ge 400 ] || fail "$options: $(wc -l <exact) translations"
done
expect 1 '*' 'translate: few:*: --search exhaustive: more than 8 prefixes may lead to a better translation than the best one so far (raise --max-expansions, or*' \
  "$translate" -q -m m.h5 -j 1 -i few --search exhaustive --normalize 1 --max-expansions 8
# The lines before the first line on which the search gives up are written.
{ echo; cat few; } >with_empty
for threads in 1 2; do
  expect 1 '' 'translate: with_empty:2: --search exhaustive: more than 1 prefixes may lead to a better translation than the best one so far (raise --max-expansions, or take a lower --max-output-length, which leaves fewer)' \
    "$translate" -q -m m.h5 -j $threads -i with_empty --search exhaustive --normalize 0 --max-expansions 1
  [ "$(od -An -c stdout | tr -d ' ')" = '\n' ] || fail "the empty line before the error: $(od -c stdout)"
done

# Temperature 0 is greedy search, with all digits.
"$translate" -q -m m.h5 -i source -b 1 --word-scores >greedy
"$translate" -q -m m.h5 -i source --search sample --temperature 0 --word-scores | cmp - greedy || fail "--temperature 0 is not greedy search"

# Rules and groups.
"$translate" -q -m m.h5 -i source --min-output-length 4 --max-output-length 5 >free
"$translate" -q -m m.h5 -i source --min-output-length 4 --max-output-length 5 --no-repeat-ngram-size 1 >once
repeats() { awk '{ delete seen; for (i = 1; i <= NF; ++i) if (seen[$i]++) { ++count; break } } END { print count + 0 }' "$1"; }
[ "$(repeats free)" -gt 50 ] && [ "$(repeats once)" -eq 0 ] || fail "--no-repeat-ngram-size: $(repeats free) and $(repeats once) lines repeat"
expect 0 '?*' '' "$translate" -q -m m.h5 -i few -b 6 --beam-groups 3 --diversity-strength 2 --n-best 6
awk -F ' [|][|][|] ' '{ print $1, substr($2, 1, 1) }' stdout | sort -u | wc -l >diverse
"$translate" -q -m m.h5 -i few -b 6 --n-best 6 | awk -F ' [|][|][|] ' '{ print $1, substr($2, 1, 1) }' | sort -u | wc -l >alike
[ "$(cat diverse)" -gt "$(cat alike)" ] || fail "diverse beams begin with $(cat diverse) words, one beam with $(cat alike)"

# The coverage penalty is that of the attention which inspect-attention shows.
"$translate" -q -m m.h5 -i few --n-best 4 >plain
"$translate" -q -m m.h5 -i few --n-best 4 --coverage-penalty 0.5 >covered
awk -F ' [|][|][|] ' 'NR == FNR { source[FNR - 1] = $0; next } { print source[$1] "\t" $2 }' few plain >pairs
"$HEED_BIN/inspect-attention" -q -m m.h5 --tsv -i pairs --format tsv >weights
awk '
  FILENAME == "weights" { if (FNR > 1 && $8 != "</s>") sum[$1, $7] += $9; next }
  { split($0, field, " [|][|][|] ") }
  FILENAME == "plain" { penalty = 0; for (i = 0; (FNR, i) in sum; ++i) penalty += log(sum[FNR, i] < 1 ? sum[FNR, i] : 1)
    expected[field[1], field[2]] = field[4] + 0.5 * penalty; next }
  { if (!((field[1], field[2]) in expected)) next
    d = field[4] - expected[field[1], field[2]]
    if (d < -0.002 || d > 0.002) { print $0, expected[field[1], field[2]]; bad = 1 }
    if (field[1] == line && field[4] > best) { print "not sorted:", $0; bad = 1 }
    line = field[1]; best = field[4]; ++compared }
  END { exit bad || compared < 40 }' weights plain covered >difference || fail "--coverage-penalty: $(head -n 3 difference)"
cmp -s plain covered && fail "--coverage-penalty changes nothing"

# The command line.
for option in '--beam-groups 2' '--coverage-penalty 1'; do
  # shellcheck disable=SC2086
  expect 2 '' "translate: ${option% *}: needs beam search (leave --search out)" "$translate" -m m.h5 -i few --search exhaustive $option
done
expect 2 '' 'translate: --diversity-strength: needs groups (--beam-groups G)' "$translate" -m m.h5 -i few --diversity-strength 1
expect 2 '' 'translate: --max-expansions: needs --search exhaustive' "$translate" -m m.h5 -i few --max-expansions 10
expect 2 '' 'translate: --beam-groups 3 does not divide --beam-size 4 (give a multiple of 3 with -b)' "$translate" -m m.h5 -i few --beam-groups 3
expect 2 '' 'translate: --coverage-penalty: rnn.h5 is a model of the task rnn, which has no attention to the source' \
  "$translate" -m rnn.h5 -i few --coverage-penalty
expect 2 '' 'translate: --draft-model: has no use with --search exhaustive (leave one of them out)' \
  "$translate" -m m.h5 -i few -b 1 --draft-model m.h5 --search exhaustive
expect 2 '' 'translate: --draft-model: has no use with --no-repeat-ngram-size and --repetition-penalty, for which all scores are needed (leave one of them out)' \
  "$translate" -m m.h5 -i few -b 1 --draft-model m.h5 --no-repeat-ngram-size 3
expect 2 '' 'translate: --no-repeat-ngram-size: has no use with --score, which translates nothing' "$translate" -m m.h5 -i few --score few --no-repeat-ngram-size 2
expect 2 '' 'translate: *--diverse-beam-groups*--beam-groups*fairseq*' "$translate" -m m.h5 -i few --diverse-beam-groups 2
expect 0 '?*' '' "$translate" -q -m rnn.h5 -i few --search exhaustive --max-length-factor 0 --max-output-length 3
finish
