#!/usr/bin/env bash
# Tests bleu with pipes and files: exit codes, messages, a full disk, a closed pipe.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
bleu=$HEED_BIN/bleu

printf 'the cat sat on the mat .\na dog barked\n' >ref
printf 'the cat sat on a mat .\na dog barked\n' >hyp
printf 'one\n' >short
gzip -c ref >ref.gz
: >empty

# The score is the same from a pipe and from files.
expect 0 53.9 '' bash -c "cat hyp | '$bleu' ref -b"
expect 0 53.90 '' "$bleu" ref.gz -i hyp -b -w 2
expect 0 'BLEU|nrefs:2|case:lc|eff:no|tok:intl|smooth:floor*0.10*version:heed.* = *' '' \
  "$bleu" ref ref.gz -f text -tok intl -lc -s floor -i hyp
expect 0 $'1.000\n1.000' '' "$bleu" --d2l 2 ref -i ref.gz
expect 0 '*"score": 53.9,*' '' "$bleu" ref -i hyp
expect 0 '' '' "$bleu" ref -i hyp -b -o score.txt
[ "$(cat score.txt)" = 53.9 ] || fail "-o score.txt: $(cat score.txt)"

# Other metrics, several systems, tests of significance.
expect 0 $'*BLEU|* = 53.9 *\n*chrF2++|*nw:2|* = 78.1\n*TER|* = 10.0' '' "$bleu" ref -i hyp -f text -m ter bleu chrf --chrf-word-order 2
expect 0 '53.9 (μ = * ± *)' '' "$bleu" ref -i hyp -b -ci
expect 0 $'*│ Baseline: hyp │*\n│ * ref │*\n│ * │ * (p = 0.*' '' "$bleu" ref -i hyp ref --paired-bs -f text
expect 0 '*|seed:7|*' '' "$bleu" ref -i hyp ref --paired-ar --paired-ar-n 50 --seed 7 -f tsv
expect 0 'BLEU = 53.90, *hyp_len=10, ref_len=10)' '' "$bleu" ref -i hyp --multi-bleu
expect 0 $'line 1: TER = *' '' "$bleu" ref -i hyp --worst 1 -m ter

# sacreBLEU's other names of the options are accepted.
expect 0 '*' '' "$bleu" ref -i hyp ref --paired-bs --paired-bs-n 9 --paired-jobs 2 -f text
expect 0 'BLEU|#:1|c:mixed|e:no|tok:13a|s:exp|v:heed.* = *' '' "$bleu" ref -i hyp -sh -f text
paste ref hyp >both
expect 0 'BLEU|nrefs:2|* = 100.0 *' '' "$bleu" both -nr 2 -i hyp -f text
expect 1 '' 'bleu: both:1: 2 references instead of 3 (TABs stand between them)' "$bleu" both -nr 3 -i hyp
sed 's/$/\t/' ref >ends
expect 0 'BLEU|nrefs:2|* = 53.9 *' '' "$bleu" ends -nr 2 -i hyp -f text

# A parser accepts the JUnit XML, also when a name has characters that XML must escape.
if command -v python3 >/dev/null; then
  name=$'a&b<"\x01\xff\xef\xbf\xbf>.txt'
  cp hyp "$name"
  "$bleu" ref -i "$name" hyp -m bleu ter -f junit --fail-under 99 >report.xml 2>stderr
  [ $? -eq 3 ] || fail "--format junit --fail-under: not 3"
  parsed=$(python3 -c 'import xml.dom.minidom
suite = xml.dom.minidom.parse("report.xml").documentElement
cases = suite.getElementsByTagName("testcase")
print(suite.getAttribute("tests"), suite.getAttribute("failures"), len(cases), len(suite.getElementsByTagName("failure")),
      ascii(cases[0].getAttribute("classname")), cases[1].getAttribute("name"))' 2>&1)
  [ "$parsed" = "4 2 4 2 'a&b<\"\\ufffd\\ufffd\\ufffd>.txt' TER" ] || fail "--format junit: $parsed"
fi

# Trees by evalb's rules, and labels by the share of equal lines.
printf '( (S (NP-SBJ (DT a) (NN dog)) (VP (VBZ barks)) (. .)) )\n(S (NP (PRP it)) (VP (VBZ rains)))\n' >gold
printf '(TOP (S (NP (DT a)) (VP (NN dog) (VBZ barks)) (. .)))\n(TOP (S (NP (PRP it)) (VP (VBZ rains))))\n' >trees
expect 0 66.67 '' "$bleu" gold -m evalb -b -w 2 -i trees
expect 0 'evalb|nrefs:1|params:COLLINS|labels:yes|version:heed.* = 66.7 66.67/66.67/50.00/100.00 (recall/precision/exact/tags; sentences = 2 errors = 0 skipped = 0)' \
  '' "$bleu" gold -m evalb -f text -i trees
expect 0 $'33.3\n100.0' '' "$bleu" gold -m evalb -sl -b -i trees
expect 0 $'  Sent.*\n   1    4    0   33.33  33.33     1      3    3      1      3     3   100.00\n*Bracketing FMeasure       =  66.67\n*' \
  '' "$bleu" gold -m evalb --evalb-table -i trees
printf 'LABELED 0\nDELETE_LABEL TOP\n' >prm
expect 0 '*|params:prm|labels:no|*' '' "$bleu" gold -m evalb -f text --evalb-params prm -i trees
printf 'a\nb\n' >labels
printf 'a\nc\n' >guesses
expect 0 'exact|nrefs:1|case:mixed|version:heed.* = 50.0 (1 of 2 lines)' '' "$bleu" labels -m exact -f text -i guesses
expect 3 50.0 'bleu: warning: exact 50.00 is below --fail-under 60.0' "$bleu" labels -m exact -b --fail-under 60 -i guesses

# Trees that are broken, or have other words.
printf '(S (NN größe)\n\n' >broken
expect 1 '' 'bleu: broken:1:1: this bracket is never closed (--on-bad-tree skip leaves such trees out and counts them)' \
  "$bleu" gold -m evalb -i broken
expect 1 '' 'bleu: broken:1:1: this bracket is never closed' "$bleu" broken -m evalb -i gold
printf '(S (NN größe) x)\n\n' >broken
expect 1 '' 'bleu: broken:1:15: this word stands beside brackets (*' "$bleu" gold -m evalb -i broken
expect 0 '*sentences = 2 errors = 1 skipped = 1)' '' "$bleu" gold -m evalb -f text -i broken --on-bad-tree skip
# The mistake is in the first line, and then in the second line after a line that can be scored.
for mode in --sentence-level '--worst 1'; do
  # shellcheck disable=SC2086
  expect 1 '' 'bleu: broken:1:15: this word stands beside brackets (*' "$bleu" gold -m evalb $mode -i broken
done
printf '(S (NP a))\n(S (NP b))\n(S (NP c))\n' >gold3
printf '(S (NP a))\n(S (NP b)\n(S (NP c))\n' >broken3
expect 1 100.0 'bleu: broken3:2:1: this bracket is never closed (*' "$bleu" gold3 -m evalb -sl -b -i broken3
expect 1 '' "bleu: trees:2:32: the word 'rains' is 'snows' in the gold tree (--on-bad-tree *)" \
  bash -c "sed 's/rains/snows/' gold | '$bleu' - -m evalb -i trees"
# Scores of single trees end before such a tree, also where it is the first one.
for mode in -sl '--worst 1' --evalb-table; do
  # shellcheck disable=SC2086
  expect 1 '*' 'bleu: broken:1:15: this word stands beside brackets (*' "$bleu" gold -m evalb $mode -i broken
done
sed 's/rains/snows/' gold >snows
expect 1 'evalb|*= 33.3 *sentences = 1 errors = 0 skipped = 0)' "bleu: trees:2:32: the word 'rains' is *" "$bleu" snows -m evalb -sl -i trees
expect 1 '' "bleu: trees:2:32: the word 'rains' is *" "$bleu" snows -m evalb --worst 1 -i trees
expect 1 $'  Sent.*\n   1    4    0   33.33  33.33     1      3    3      1      3     3   100.00' "bleu: trees:2:32: the word 'rains' is *" \
  "$bleu" snows -m evalb --evalb-table -i trees
expect 1 '' 'bleu: prm:1: evalb has no parameter *' bash -c "echo DELETE x >prm; '$bleu' gold -m evalb --evalb-params prm -i trees"
expect 1 '' "bleu: prm:1: '-3' is no whole number *" bash -c "echo CUTOFF_LEN -3 >prm; '$bleu' gold -m evalb --evalb-params prm -i trees"
expect 2 '' 'bleu: evalb compares with one gold tree (give one REF)' "$bleu" gold gold -m evalb -i trees
expect 2 '' 'bleu: --evalb-table needs -m evalb' "$bleu" gold --evalb-table -i trees
expect 2 '' 'bleu: --by-length counts words of text (for trees, see --evalb-cutoff)' "$bleu" gold -m evalb --by-length -i trees
expect 0 '*' 'bleu: warning: --on-bad-tree does nothing without -m evalb' "$bleu" ref -i hyp -b --on-bad-tree skip

# --fail-under and --fail-drop as a check in continuous integration: exit 3.
expect 0 53.9 '' "$bleu" ref -i hyp -b --fail-under 53.8
expect 3 53.9 'bleu: warning: BLEU 53.90 is below --fail-under 54.0' "$bleu" ref -i hyp -b --fail-under 54
expect 3 $'53.9\n10.0' 'bleu: warning: TER 10.00 is above --fail-under 5.0' "$bleu" ref -i hyp -m ter bleu -b -f text --fail-under 5
expect 3 '' 'bleu: warning: *' "$bleu" ref -i hyp -b --fail-under 54 -o gate.txt
[ "$(cat gate.txt)" = 53.9 ] || fail "a score below the threshold is still written"

# Wrong data: exit 1.
expect 1 '' 'bleu: short: has 1 line, but ref has 2 lines (*)' "$bleu" ref -i short
expect 1 '' 'bleu: standard input: has 0 lines, but ref has 2 lines (*)' "$bleu" ref </dev/null
expect 1 '' 'bleu: ref: has 2 lines, but standard input has more than * lines (*)' bash -c "yes 2>/dev/null | timeout 60 '$bleu' ref"
yes 2>/dev/null | timeout 60 "$bleu" ref -sl -b 2>stderr >stdout
[[ $(wc -l <stdout) -eq 2 && $(cat stderr) == *'more than'* ]] || fail "an endless hypothesis: $(head -c 300 stdout) $(cat stderr)"
expect 1 '' 'bleu: standard input: no lines (nothing to score)' "$bleu" empty </dev/null
expect 1 '' 'bleu: missing: cannot open: No such file or directory' "$bleu" missing -i hyp
expect 1 '' 'bleu: .: *' "$bleu" . -i hyp
printf 'a\n\xff\n' >invalid
expect 1 '' 'bleu: invalid:2:1: *' "$bleu" ref -i invalid --on-invalid-utf8 fail
expect 0 '*' 'bleu: warning: *invalid:2:1*' "$bleu" ref -i invalid -b
head -c 20 ref.gz >cut.gz
expect 1 '' 'bleu: cut.gz*' "$bleu" cut.gz -i hyp

# Wrong usage: exit 2.
expect 2 '' 'bleu: no reference (*)' "$bleu"
expect 2 '' 'bleu: unknown option --tokenise: did you mean --tokenize?' "$bleu" ref --tokenise 13a
expect 2 '' "bleu: --metrics 'blue': must be one of bleu, chrf, ter, exact, evalb" "$bleu" ref --metrics blue
expect 2 '' 'bleu: unknown option --ignore-case: did you mean --lowercase? (fairseq)' "$bleu" ref --ignore-case
expect 2 '' "bleu: --tokenize 'moses': must be one of 13a, intl, char, zh, none" "$bleu" ref -tok moses
expect 2 '' 'bleu: --score-only prints numbers without a table (leave out --format junit)' "$bleu" ref -i hyp -b -f junit
expect 2 '' 'bleu: --score-only leaves out what a paired test finds (*)' "$bleu" ref -i hyp ref -b --paired-ar
expect 2 '' "bleu: --fail-under 'high': *" "$bleu" ref --fail-under high
expect 2 '' 'bleu: standard input can be read only once (*)' "$bleu" - -i -

# A full disk is an error; a closed pipe ends the program without a message.
expect_full_disk bleu ref -i hyp
expect 1 '' 'bleu: /dev/full: *No space left on device' "$bleu" ref -i hyp -o /dev/full
for _ in $(seq 20000); do echo 'a line'; done >many
"$bleu" many -i many -sl 2>stderr | head -n 1 >/dev/null
ended=${PIPESTATUS[0]}
[ "$ended" -eq 141 ] || fail "a closed pipe ends with $ended instead of SIGPIPE"
[ -s stderr ] && fail "a closed pipe is not silent: $(cat stderr)"

# As a coprocess, bleu answers each line before the next line is written.
printf 'a line\na line\n' >lines
expect_coprocess "$bleu" lines -sl -b

expect 0 '*usage: bleu*--fail-under*' '' "$bleu" --help
expect 0 'bleu (heed) *' '' "$bleu" --version

finish
