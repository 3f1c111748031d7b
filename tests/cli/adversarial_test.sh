#!/usr/bin/env bash
# Runs the difficult lines of adversarial.txt through every text step. Checks that each output has as many lines as the
# input, and the checksums of adversarial.sums.
#
# The checksums were taken when all lines were equal to the output of Moses' scripts: tokenizer.perl 1.1 with the rules
# of later releases and heed's abbreviations (plain, -a, -penn, -x, -protected), and detokenizer.perl (plain, -u, -penn;
# Korean separately). `adversarial_test.sh update` takes new checksums after an intended change of the output; compare
# the output with Moses' scripts first.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${HEED_BIN:-$here/../../build/release/bin}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/patterns" << 'PATTERNS'
<\/?\S+\/?>
[\w\-\_\.]+\@([\w\-\_]+\.)+[a-zA-Z]{2,}
http[s]?:\/\/[^:\/\s]+(\/\w+)*\/[\w\-\.]*(\/)?
PATTERNS
cd "$work"
lines=$(wc -l < "$here/adversarial.txt")
failed=0
while read -r sum options; do
  # shellcheck disable=SC2086
  "$bin/tokenize" -q -j 2 $options < "$here/adversarial.txt" > out
  if [ "$(wc -l < out)" -ne "$lines" ]; then
    echo "tokenize $options: $(wc -l < out) lines out of $lines" >&2
    failed=1
  fi
  now=$(cksum < out | tr ' ' :)
  if [ "$now" != "$sum" ] && [ "${1:-}" != update ]; then
    echo "tokenize $options: other bytes than before" >&2
    failed=1
  fi
  echo "$now $options" >> sums
done < "$here/adversarial.sums"
if [ "${1:-}" = update ]; then cp sums "$here/adversarial.sums"; fi
exit "$failed"
