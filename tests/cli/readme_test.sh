#!/usr/bin/env bash
# Runs the commands of README's tour, one block after the other, after scripts/demo. makefile_test.sh tests the
# Makefile.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1

if [ ! -f "$HEED_SOURCE/build/demo/model.h5" ]; then
  echo "skipped: there is no build/demo/model.h5 (scripts/demo makes it)"
  exit 77
fi
# Links to the project's files, so that the tour writes nothing into the source tree.
for name in data man scripts tests README.md; do ln -s "$HEED_SOURCE/$name" .; done
mkdir -p build/demo build/release && cp "$HEED_SOURCE/build/demo/model.h5" build/demo/ && ln -s "$HEED_BIN" build/release/bin

# Prints the indented blocks from "Five minutes" to the next section. A block with a tab is a Makefile and is left out.
awk '
  /^## / { tour = /^## Five minutes/ }
  !tour { next }
  /^    / { if (!inside) n++; inside = 1; print substr($0, 5) > ("block-" n); next }
  { inside = 0 }
' README.md
blocks=$(find . -maxdepth 1 -name 'block-*' | wc -l)
[ "$blocks" -ge 5 ] || fail "README has $blocks blocks of commands in its tour, not 5 or more"
export PATH=$PWD/build/release/bin:$PATH
for block in $(seq "$blocks"); do
  grep -q $'^\t' "block-$block" && continue
  bash -eu "block-$block" >out 2>err </dev/null || fail "README: exit $? from: $(cat "block-$block"): $(cat err)"
  [ -s out ] || fail "README: no output from: $(cat "block-$block")"
done

# The model of "Your own sentences" has learnt to translate: a training of too few updates gives a BLEU of 0.
expect 0 '*' '' bash -c 'translate -q -m build/demo/pairs.h5 < data/test.en | bleu data/test.fr --score-only --fail-under 40'

# `cmake --install` puts every file where README says.
expect 0 '*' '*' cmake --install "$HEED_BIN/.." --prefix "$PWD/installed"
for file in bin/translate share/man/man1/translate.1 share/man/man5/heed-checkpoint.5 share/man/man7/heed-models.7 share/bash-completion/completions/train; do
  [ -f "installed/$file" ] || fail "cmake --install puts no $file"
done
finish
