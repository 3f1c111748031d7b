#!/usr/bin/env bash
# Installs the library, builds the programs of lib/heed/EXAMPLES.md with find_package(heed), as a user would, and compares
# what the programs print with the page. One more program includes all installed headers.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1

cache=$HEED_BIN/../CMakeCache.txt
setting() { sed -n "s/^$1:[A-Z]*=//p" "$cache"; }
if [ -n "$(setting HEED_SANITIZE)$(setting CMAKE_CROSSCOMPILING_EMULATOR)" ]; then
  echo "skipped: a library with sanitizers, or for another processor, does not link with a plain program"
  exit 77
fi

# Writes each block of the page to the file that the block's first line names, and each block after "It prints:" to
# NAME.out.
awk '
  /^```/ && inside { inside = 0; close(file); next }
  /^```(cmake|cpp)$/ { inside = 1; file = ""; next }
  /^```$/ && prints { inside = 1; file = name ".out"; printf "" > file; prints = 0; next }
  !inside { if ($0 == "It prints:") prints = 1; next }
  file == "" { file = $2; name = $2; sub(/\.cpp$/, "", name) }
  { print > file }
' "$HEED_SOURCE/lib/heed/EXAMPLES.md"
programs=(*.cpp)
[ ${#programs[@]} -ge 3 ] || fail "EXAMPLES.md has ${#programs[@]} programs, not 3 or more"

expect 0 '*' '' cmake --install "$HEED_BIN/.." --prefix "$PWD/installed" --component development
[ -z "$(find installed -name '*-inl.h')" ] || fail "cmake --install puts headers that only heed's kernels include"
(cd installed/include && find heed -name '*.h' | sort | sed 's/.*/#include <&>/') >headers.cpp
[ "$(wc -l <headers.cpp)" -ge 100 ] || fail "cmake --install puts $(wc -l <headers.cpp) headers, not 100 or more"
echo 'int main() {}' >>headers.cpp
printf '%s\n' 'add_executable(headers headers.cpp)' 'target_link_libraries(headers PRIVATE heed::heed)' >>CMakeLists.txt
expect 0 '*' '*' cmake -B build -DCMAKE_PREFIX_PATH="$PWD/installed" -DCMAKE_CXX_COMPILER="$(setting CMAKE_CXX_COMPILER)" \
  -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror"
expect 0 '*' '*' cmake --build build
for program in "${programs[@]}"; do
  name=${program%.cpp}
  [ -s "$name.out" ] || fail "EXAMPLES.md does not say what $program prints"
  "build/$name" >printed || fail "$program: exit $?"
  diff "$name.out" printed >&2 || fail "$program prints something else than EXAMPLES.md says"
done
finish
