#!/usr/bin/env bash
# Checks that the scripts that check the project's rules find every violation: breaks each rule in a small source tree.
set -euo pipefail
scripts=$1/scripts
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# expect SCRIPT MESSAGE: checks that SCRIPT exits with 1 and prints exactly MESSAGE
expect() {
  local out
  if out=$("$scripts/$1" "$work"); then fail "$1 accepts: $2"; fi
  [ "$out" = "$2" ] || fail "$1 prints '$out', expected '$2'"
}

# file PATH LINE...: writes the lines to the file PATH of the small source tree
file() {
  mkdir -p "$(dirname "$work/$1")"
  printf '%s\n' "${@:2}" > "$work/$1"
}

# --- check-layers: include directives
file tools/train.cpp '#include "heed/run/train.h"'
file lib/heed/ops/add.h '#pragma once' '#include "heed/tensor/tensor.h"' '#include <vector>'
file lib/heed/checkpoint/h5.cpp '#include <hdf5.h>'
file lib/heed/image/png_reader.cpp '#include <png.h>'
file lib/heed/image/jpeg_reader.cpp '#include <jpeglib.h>' '#include <jerror.h>'
file lib/heed/text/steps.h '#include "heed/text/bpe/bpe.h"' '#include "heed/text/subwords.h"'
file lib/heed/text/unigram/unigram.h '#include "heed/text/bpe/bpe.h"' '#include "heed/text/unigram/piece_trie.h"'
"$scripts/check-layers" "$work" || fail "check-layers refuses a good tree"
broken() {  # broken PATH INCLUDE MESSAGE: a file PATH that includes INCLUDE
  file "$1" '' "#include $2"
  expect check-layers "$1:2: $3"
  rm "$work/$1"
}
broken lib/heed/base/error.h '"heed/text/bpe/bpe.h"' 'base includes text, which stands above it'
broken lib/heed/optim/adam.h '"heed/metrics/bleu.h"' 'optim includes metrics, which stands beside it'
broken lib/heed/ops/sub.cpp '"heed/config/fields.h"' 'ops includes config, which the math never sees'
broken lib/heed/nn/linear.h '"heed/text/bpe/bpe.h"' 'nn includes text, which the math never sees'
broken lib/heed/text/strings/scan.h '"heed/text/moses/punctuation.h"' 'text/strings includes text/moses, which stands above it'
broken lib/heed/text/unigram/viterbi.h '"heed/text/steps.h"' 'text/unigram includes text/, which stands above it'
broken lib/heed/text/moses/truecaser.h '"heed/text/scoring/mteval.h"' 'text/moses includes text/scoring, which stands beside it'
broken lib/heed/text/cuts.h '"heed/text/cellar/wine.h"' 'includes the unknown room text/cellar'
broken lib/heed/ops/sub.cpp '"heed/checkpoint/h5.h"' 'ops includes checkpoint, which stands above it'
broken lib/heed/run/train.cpp '<hdf5.h>' 'HDF5 is for checkpoint/h5.* alone'
broken lib/heed/checkpoint/checkpoint.cpp '<H5Cpp.h>' 'HDF5 is for checkpoint/h5.* alone'
broken lib/heed/image/resize.cpp '<png.h>' 'libpng is for image/png_reader.cpp alone'
broken lib/heed/run/train.cpp '<jpeglib.h>' 'libjpeg is for image/jpeg_reader.cpp alone'
broken lib/heed/image/resize.h '"heed/text/steps.h"' 'image includes text, which stands beside it'
broken lib/heed/ops/sub_cpu.cpp '<cuda_runtime.h>' 'CUDA is for *_cuda.cu, tensor/cuda_* and dist/nccl* alone'
broken lib/heed/train/trainer.cpp '<mpi.h>' 'MPI is for dist/mpi* alone'
broken lib/heed/run/train.cpp '"heed/cellar/wine.h"' 'includes the unknown room cellar'
broken lib/heed/run/train.cpp '"train.h"' 'includes "train.h" without its room (write heed/ROOM/train.h)'
file lib/heed/cellar/wine.h '#pragma once'
expect check-layers 'lib/heed/cellar/wine.h:1: the room cellar has no place yet (give it one in scripts/check-layers)'
rm "$work/lib/heed/cellar/wine.h"
file lib/heed/text/cellar/wine.h '#pragma once'
expect check-layers 'lib/heed/text/cellar/wine.h:1: the room text/cellar has no place yet (give it one in scripts/check-layers)'

# --- lib/heed/README.md: the table "To change this, open that" names existing files
named=$(sed -n '/^## To change this/,/^## Decisions/p' "$1/lib/heed/README.md" | grep -oE '`[a-z0-9_/.-]+/[a-zA-Z0-9_.-]+\.?[a-z0-9]+`' | tr -d '\`' | sort -u)
[ "$(wc -l <<< "$named")" -ge 60 ] || fail "the map names few files: $named"
for name in $named; do
  case $name in man/* | scripts/* | tests/* | data/generator/*) file=$1/$name ;; *) file=$1/lib/heed/$name ;; esac
  [ -f "$file" ] || fail "lib/heed/README.md names $name, which is not there"
done

# --- fresh-machine
status=0
out=$("$scripts/fresh-machine" potato 2>&1) || status=$?
case "$status:$out" in 2:"usage: scripts/fresh-machine bookworm|trixie"*) ;; *) fail "fresh-machine potato: $status: $out" ;; esac
install -D -m 755 "$scripts/fresh-machine" "$work/scripts/fresh-machine"
chmod 755 "$work"  # the user nobody must be able to run the script
as_nobody=()
[ "$(id -u)" -ne 0 ] || as_nobody=(setpriv --reuid=65534 --clear-groups)
status=0
out=$("${as_nobody[@]}" "$work/scripts/fresh-machine" bookworm 2>&1) || status=$?
[ "$status:$out" = "77:fresh-machine: cannot make one here: it needs root (sudo scripts/fresh-machine bookworm)" ] ||
  fail "fresh-machine without root: $status: $out"
if [ "$(id -u)" -eq 0 ]; then
  status=0
  out=$(HEED_FRESH_ROOT=/ "$scripts/fresh-machine" bookworm 2>&1) || status=$?
  [ "$status:$out" = "1:fresh-machine: / is not a bookworm machine that this script has made (name an empty folder)" ] ||
    fail "fresh-machine in /: $status: $out"
fi

# --- scripts that need heed's programs say how to build them
for arguments in cifar10 family multi30k parse textbook-demo 'wmt14 rehearsal'; do
  name=${arguments%% *} status=0
  install -D -m 755 "$scripts/$name" "$work/scripts/$name"
  # shellcheck disable=SC2086 # the words of $arguments are the script and its argument
  out=$(env -u HEED_BIN PATH=/usr/bin:/bin "$work/scripts/"$arguments 2>&1) || status=$?
  [ "$status:$out" = "1:$name: build first (scripts/setup, then cmake --preset release && cmake --build --preset release)" ] ||
    fail "$name without heed's programs: $status: $out"
done

# --- check-ops: gradient checks
file lib/heed/ops/add.h 'template <class T>' 'Variable<T> add(Graph<T>& graph, const Variable<T>& a);' \
  'template <class T>' 'Pair<T> split(Graph<T>& graph, const Variable<T>& a);'
expect check-ops 'lib/heed/ops/add.h: the op add has no tests/ops/add_test.cpp (write one with require_gradients)
lib/heed/ops/add.h: the op split has no tests/ops/add_test.cpp (write one with require_gradients)'
file tests/ops/add_test.cpp 'require_gradients({{2}}, [](auto& graph, auto& in) { return split(graph, in[0]).a; });' \
  'add(graph, x);'
expect check-ops 'tests/ops/add_test.cpp: no require_gradients calls add, declared in lib/heed/ops/add.h (check its gradients in double)'
file tests/ops/add_test.cpp 'require_gradients({{2}}, [](auto& graph, auto& in) {' \
  '  return add(graph, split(graph, in[0]).a);' '});'
"$scripts/check-ops" "$work" || fail "check-ops refuses a good tree"

# --- check-ops: kernels of GPUs
file lib/heed/ops/scale.h 'template <class T>' 'void scale_forward(CpuContext& device, Tensor<T> x);' \
  'void scale_backward(const CpuContext& device, Tensor<T> x);' 'void scale_forward(CudaContext& device, Tensor<T> x);'
expect check-ops 'lib/heed/ops/scale.h: the kernel scale_backward has no overload on CudaContext (write it in scale_cuda.cu)'
rm "$work/lib/heed/ops/scale.h"

# --- check-ops: only kernels know the context of a CPU
mkdir -p "$work"/lib/heed/{nn,model}
file lib/heed/ops/add.cpp '  add_forward(graph.device().cpu(), a.value);'
file lib/heed/ops/add_cpu.cpp 'void add_forward(CpuContext&, Tensor<T> a) {}'
file lib/heed/model/add.h 'CpuContext& device_;'
expect check-ops 'lib/heed/ops/add.cpp:1:  add_forward(graph.device().cpu(), a.value);   (call kernels through Graph::run(), on the context of any device)
lib/heed/model/add.h:1:CpuContext& device_;   (call kernels through Graph::run(), on the context of any device)'
rm "$work"/lib/heed/ops/add.cpp "$work"/lib/heed/model/add.h

# --- check-ops: lambdas in SIMD kernels
kernel() {  # LINE...: writes a kernel file with these lines; lambdas outside of the HWY_* macros are allowed
  file lib/heed/ops/add_cpu.cpp 'const auto before = [](int i) { return i; };' 'HWY_BEFORE_NAMESPACE();' "$@" \
    'HWY_AFTER_NAMESPACE();' 'const auto behind = [] { return 1; };'
}
lacks='a lambda of a SIMD kernel lacks HWY_ATTR (write it behind the parameters)'
kernel 'void add(const T* x, T y[4]) {  // [&](auto d) { is how a lambda begins' \
  '  [[maybe_unused]] const T first = x[f(0)], *rows[2] = {};' '  const auto& [a, b] = pair;' \
  '  for_each_vector<T>(n, [&](auto d, std::int64_t i = f(x[0]))' '                            HWY_ATTR { y[i] += x[i]; });' \
  '  return [] <class D>(D d) HWY_ATTR { return d; };' '}'
"$scripts/check-ops" "$work" || fail "check-ops refuses lambdas with HWY_ATTR"
kernel 'void add() {' '  for_each_vector<T>(n,' '    [&x, y](auto d, T i = f(0)) { store(d, i); });' '}'
expect check-ops "lib/heed/ops/add_cpu.cpp:5: $lacks"
kernel 'const auto powers = [] { return 1; };' 'auto f() { return [=](auto d) -> T { return hn::Zero(d); }; }'
expect check-ops "lib/heed/ops/add_cpu.cpp:3: $lacks
lib/heed/ops/add_cpu.cpp:4: $lacks"
