# Functions for the tests of the programs, which source this file. Changes into a new temporary folder.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

fail() {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}

# expect CODE OUT-PATTERN ERR-PATTERN COMMAND...: runs COMMAND and checks the exit code and the complete stdout and
# stderr, which must match the patterns (bash globs)
expect() {
  local code=$1 out=$2 err=$3 got
  shift 3
  "$@" >stdout 2>stderr
  got=$?
  [ "$got" -eq "$code" ] || fail "$*: exit $got instead of $code ($(cat stderr))"
  # shellcheck disable=SC2053
  [[ $(cat stdout) == $out ]] || fail "$*: stdout '$(head -c 2000 stdout)' is not like '$out'"
  # shellcheck disable=SC2053
  [[ $(cat stderr) == $err ]] || fail "$*: stderr '$(head -c 2000 stderr)' is not like '$err'"
}

# same_parameters A.h5 B.h5 WHAT: checks that two models have the same parameters, bit for bit; needs h5diff
same_parameters() {
  h5diff "$1" "$2" /parameters /parameters >difference || fail "$3: $(head -n 5 difference)"
}

# other_parameters A.h5 B.h5 WHAT: checks that two models have different parameters; needs h5diff
other_parameters() {
  h5diff "$1" "$2" /parameters /parameters >difference
  [ $? -eq 1 ] || fail "$3"
}

# expect_full_disk TOOL ARGUMENT...: checks that writing to a full disk is an error
expect_full_disk() {
  local tool=$1
  [ -w /dev/full ] || return 0
  "$HEED_BIN/$@" >/dev/full 2>stderr
  [ $? -eq 1 ] || fail "$tool: a full disk does not exit with 1"
  [[ $(cat stderr) == *"$tool: standard output: cannot write: No space left on device" ]] || fail "full disk: $(cat stderr)"
}

# expect_coprocess COMMAND...: checks that COMMAND answers each line before the next line is written
expect_coprocess() {
  rm -f questions answers
  mkfifo questions
  "$@" <questions >answers 2>/dev/null &
  exec 3>questions
  local line
  for line in 1 2; do
    echo 'a line' >&3
    for _ in $(seq 200); do
      [ "$(wc -l <answers)" -ge "$line" ] && break
      sleep 0.05
    done
    [ "$(wc -l <answers)" -eq "$line" ] || fail "$*: an idle input does not flush"
  done
  exec 3>&-
  wait $! || fail "$*: fails at the end of a coprocess"
}

finish() {
  [ "$failures" -eq 0 ] && exit 0
  echo "$failures failed" >&2
  exit 1
}
