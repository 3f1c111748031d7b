#!/usr/bin/env bash
# Tests train from the outside: which files it writes, exit codes, and a clear message for each kind of wrong input.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
train=$HEED_BIN/train

head -n 60 "$HEED_SOURCE/data/train.en" >a.en
head -n 60 "$HEED_SOURCE/data/train.fr" >a.fr
head -n 59 a.fr >short.fr
paste a.en a.fr >a.tsv
gzip -c a.fr >a.fr.gz
: >empty
cat a.en a.fr | "$HEED_BIN/build-vocab" -q --type bpe -s 110 >vocab || fail "build-vocab failed"
small=(--task transformer-tiny --enc-depth 1 --dec-depth 1 --dim-emb 16 --transformer-dim-ffn 16 --mini-batch-words 200 -j 2)

# stdout has only data, and stderr all messages. Files, TSV and gzip give the same model.
expect 0 '' '*train: saved m.h5 after update *finished: --after 2e is reached' \
  "$train" "${small[@]}" -t a.en a.fr.gz -v vocab -m m.h5 --after 2e --plot curve.svg
[ -s curve.svg ] || fail "no curve.svg"
# A report has the learning rate of the update that it names.
expect 0 $'*\tlearning_rate\t*\nupdate\t1\t*\t0.1\t*' '' "$train" "${small[@]}" -q -t a.en a.fr -v vocab -m rate.h5 --after 1u \
  --optimizer sgd -l 0.1 --lr-schedule linear --lr-warmup 0 --log-format tsv
# The chrF of a validation is that of the program bleu for greedy translations, lower-cased where the vocabulary lower-cases.
cat a.en a.fr | "$HEED_BIN/build-vocab" -q --type bpe -s 100 --lowercase >lower.vocab || fail "build-vocab --lowercase failed"
"$train" -q "${small[@]}" -t a.en a.fr -v lower.vocab -m scored.h5 --after 200u -l 0.01 --lr-warmup 20 --precision float32 --log-format tsv \
  --valid-sets a.tsv --valid-freq 200u --valid-metrics chrf >scored.tsv || fail "train --valid-metrics chrf failed"
"$HEED_BIN/translate" -q -m scored.h5 -b 1 --precision float32 -i a.en -o scored.fr || fail "translate failed"
score=$("$HEED_BIN/bleu" a.fr -m chrf --chrf-lowercase -b -w 6 -i scored.fr)
awk -F '\t' -v score="$score" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "chrf") column = i }
  $1 == "validation" { found = $column; same = score > 1 && score < 99 && (found - score) ^ 2 < 1e-8 }
  END { if (!same) print "the chrF of the validation is " found ", bleu says " score; exit !same }' scored.tsv || fail "$(cat scored.tsv)"
# A picture that cannot be written does not end a training; after its end, the error is the program's. The training takes
# seconds, so that it is not at its end when the folder goes away.
mkdir pictures
"$train" "${small[@]}" -t a.en a.fr -v vocab -m long.h5 --after 3000u --disp-freq 1u --plot pictures/curve.svg 2>err &
training=$!
for ((i = 0; i < 3000; ++i)); do [ ! -e pictures/curve.svg ] || break; sleep 0.01; done
mv pictures gone
wait "$training" && fail "a lost picture is no error"
[ "$(grep -c 'warning: pictures/curve.svg: .*(the training goes on, and tries again to draw the picture)' err)" -eq 1 ] &&
  grep -q 'saved long.h5 after update 3,000' err && grep -q '^train: pictures/curve.svg: ' err || fail "a lost picture: $(tail -n 5 err)"
expect 0 'event?update?epoch*update?2?*saved?*finished?*' '' \
  bash -c "'$train' ${small[*]} -q --tsv - -v vocab -m n.h5 --after 2e --log-format tsv --disp-freq 1u <a.tsv"
if command -v h5diff >/dev/null; then h5diff m.h5 n.h5 /parameters /parameters || fail "a TSV gives another model"; fi
expect 0 '{"event":"update",*}' '' "$train" "${small[@]}" -q -t a.en a.fr -v vocab -m m.h5 --after 3e --log-format jsonl --log all
grep -q '^train: m.h5: goes on after update 4' all || fail "-q leaves --log without messages: $(cat all)"
expect 0 '*goes on after update*speed expected*target tokens/s*products of the layers*Mflop a target token*optimiser*GB/s*waiting at barriers*' '' "$train" "${small[@]}" -t a.en a.fr -v vocab -m m.h5 --after 9e --dry-run
expect 0 '*pairs read*duplicates*one side 3 times longer*unknown: 0*of them in the training text: 60*parameters*memory*speed*target tokens/s*time until 20e*' '*' \
  "$train" "${small[@]}" -t a.en a.fr --valid-sets a.tsv -v vocab --check
[ -e MODEL.h5 ] && fail "--check wrote a model"
# The report counts lines with invalid UTF-8 in both files, for a reader who does not see the warnings.
sed '3s/^/\xff/' a.en >bytes.en
sed '2s/^/\xff/; 5s/$/\xc3/' a.fr >bytes.fr
expect 0 $'*pairs read *\n! lines with invalid UTF-8    3, the first is line 2\n*' '*' "$train" "${small[@]}" -t bytes.en bytes.fr -v vocab --check
expect 0 $'*\n  lines with invalid UTF-8    0\n*' '*' "$train" "${small[@]}" -t a.en a.fr -v vocab --check
expect 0 '' 'train: wrote c.h5, the average of 2 models' "$train" --average m.h5 n.h5 -o c.h5
expect 0 '' 'train: wrote one.h5, the average of 1 model' "$train" --average m.h5 -o one.h5
expect 0 '' 'train: wrote one.h5, the average of 2 models' "$train" --average m.h5 n.h5 -o one.h5
cp n.h5 before.h5
expect 1 '' 'train: n.h5: holds the state of a training, which the average would replace (name another file with -o, or remove it)' \
  "$train" --average m.h5 -o n.h5
cmp -s n.h5 before.h5 || fail "--average changed a training"

# A vocabulary is read once, so that it may come from a pipe.
expect 0 '*epoch*' '' "$train" "${small[@]}" -t a.en a.fr -v <(cat vocab) -m x.h5 --dry-run
expect 0 '*epoch*' '' "$train" "${small[@]}" -t a.en a.fr -v <(cat vocab) <(cat vocab) -m x.h5 --dry-run
expect 0 '*epoch*' '' bash -c "cat vocab | '$train' ${small[*]} -t a.en a.fr -v - -m x.h5 --dry-run"

# What limits the length of validation text is not what limits the length of training text.
expect 0 '*' '*; --max-length, --on-long)*: longer than 8 tokens; such pairs cropped: * of 60 (*; --max-positions or --fixed-length)*' \
  "$train" "${small[@]}" --transformer-decoder-autoreg none --fixed-length 8 --max-length 8 --on-long crop -t a.en a.fr \
  --valid-sets a.en a.fr -v vocab -m x.h5 --dry-run

# R-Drop: the number of threads changes no bit; the speed is measured; another value goes on with a warning.
for threads in 1 2; do
  "$train" "${small[@]}" -q -j $threads -t a.en a.fr -v vocab -m r$threads.h5 --after 2e --r-drop || fail "train --r-drop: exit $?"
  "$HEED_BIN/translate" -q -m r$threads.h5 --score a.fr <a.en >r$threads
done
cmp r1 r2 || fail "--r-drop: the number of threads changes the training"
"$HEED_BIN/translate" -q -m m.h5 --score a.fr <a.en | cmp -s - r1 && fail "--r-drop changes nothing"
expect 0 '*speed expected*' '' "$train" "${small[@]}" -t a.en a.fr -v vocab -m x.h5 --after 9e --r-drop 3 --dry-run
expect 0 '' 'train: warning: --valid-metrics has changed: the scores of earlier validations are forgotten, and the count of --early-stopping begins anew' \
  bash -c "'$train' ${small[*]} -q -t a.en a.fr -v vocab -m v.h5 --after 1e --valid-sets a.tsv --valid-metrics perplexity &&
    '$train' ${small[*]} -q -t a.en a.fr -v vocab -m v.h5 --after 1e --valid-sets a.tsv --valid-metrics perplexity bleu"
expect 0 '' 'train: warning: the text of --valid-sets has changed: the scores of earlier validations are forgotten, and the count of --early-stopping begins anew' \
  "$train" "${small[@]}" -q -t a.en a.fr -v vocab -m v.h5 --after 2e --valid-sets <(head -n 30 a.tsv) --valid-metrics perplexity bleu
expect 0 '' 'train: warning: --r-drop was 5 and is now 3: *' "$train" "${small[@]}" -q -t a.en a.fr -v vocab -m r1.h5 --after 9e --r-drop 3
expect 2 '' 'train: --r-drop: needs dropout, without which both passes are the same (--dropout P)' \
  "$train" "${small[@]}" -t a.en a.fr -v vocab -m x.h5 --r-drop --dropout 0
expect 2 '*' 'train: --cluster: the speed of a training with --r-drop is measured, not predicted, so that nothing is known of other machines (see --dry-run in train(1))' \
  "$train" "${small[@]}" -t a.en a.fr -v vocab -m x.h5 --after 9e --r-drop --dry-run --cluster nodes=4,bandwidth=25G,latency=5us

# train names the instruction set, and HEED_ISA can choose one; a wrong name is an error before any file is read.
if [ "$(uname -m)" = x86_64 ]; then
  expect 0 '*, float32 on 2 threads with sse2 and *' '' env HEED_ISA=sse2 \
    "$train" "${small[@]}" -t a.en a.fr -v vocab -m x.h5 --dry-run
  expect 0 '' 'translate: 60 lines, *, sse2*translate: expected * pieces/s, of which:*' env HEED_ISA=sse2 "$HEED_BIN/translate" -m m.h5 -i a.en -o a.out --stats
fi
expect 2 '' 'train: HEED_ISA=mmx: unknown instruction set (this machine has: *)' env HEED_ISA=mmx \
  "$train" "${small[@]}" -t a.en missing -v vocab -m x.h5 --precision float32
expect 2 '' 'inspect-attention: HEED_ISA=mmx: unknown instruction set (this machine has: *)' env HEED_ISA=mmx \
  "$HEED_BIN/inspect-attention" -m missing.h5 -i a.en

# --device: a GPU that is not there, or that this build cannot use, is named before any text is read.
expect 2 '' "train: --device: 'gpu' is none of auto, cpu and cuda:N (such as cuda:0)" \
  "$train" "${small[@]}" -t a.en missing -v vocab -m x.h5 --device gpu
expect 2 '' "train: --device: 'cuda:1x' is none of auto, cpu and cuda:N (such as cuda:0)" \
  "$train" "${small[@]}" -t a.en missing -v vocab -m x.h5 --device cuda:1x
expect 1 '' 'train: *--device cpu*' "$train" "${small[@]}" -t a.en a.fr -v vocab -m x.h5 --device cuda:99
expect 0 '*speed expected*' '' "$train" "${small[@]}" -t a.en a.fr -v vocab -m x.h5 --device cpu --dry-run

# Wrong usage: exit 2.
expect 2 '' 'train: no text to train on (*' "$train" -v vocab -m x.h5
expect 2 '' 'train: no vocabulary (*' "$train" -t a.en a.fr -m x.h5
expect 2 '' 'train: no name for the model (*' "$train" -t a.en a.fr -v vocab
expect 2 '' 'train: -t takes two files*' "$train" -t a.en -v vocab -m x.h5
expect 2 '' "train: --after '20x': not an amount of training (*" "$train" -t a.en a.fr -v vocab -m x.h5 --after 20x
expect 2 '' 'train: unknown option --lr: did you mean --learn-rate? (fairseq)' "$train" --lr 1
expect 2 '' 'train: unknown option --drop-out: did you mean --dropout?' "$train" --drop-out 1
expect 2 '' "train: --optimizer 'adm': must be one of adam, adamw, sgd" "$train" --optimizer adm
expect 2 '' 'train: --dim-emb 30 is not a multiple of --transformer-heads 4' \
  "$train" -t a.en a.fr -v vocab -m x.h5 --task transformer-tiny --dim-emb 30
# What needs no text is wrong before the text is read.
early() { expect "$1" '' "train: $2" "$train" "${small[@]}" -t missing missing -v vocab -m x.h5 "${@:3}"; }
early 2 '--early-stopping needs something to validate on (give --valid-sets)' --early-stopping 2
early 2 '--keep-best needs something to validate on (give --valid-sets)' --keep-best
early 2 '--plot-with needs a picture to draw (give --plot FILE.svg)' --plot-with m.h5
early 2 '--lr-schedule linear needs an end that is the same in every run (give --after in e, u or t)' --lr-schedule linear --after 8h
early 1 'missing.h5: cannot open: No such file or directory*' --plot curve.svg --plot-with m.h5 missing.h5
early 1 'c.h5: holds no state of a training that could be drawn (--plot-with)' --plot curve.svg --plot-with c.h5
expect 2 '' 'train: --average needs a file to write (-o C.h5)' "$train" --average m.h5
expect 2 '' 'train: -o -: a checkpoint cannot go to standard output (name a file)' "$train" --average m.h5 -o -
expect 2 '' 'train: -m -: a checkpoint cannot go to standard output (name a file)' "$train" "${small[@]}" -t a.en a.fr -v vocab -m -
# A checkpoint with the name of a compressed file could be written, but neither be resumed from nor be read by translate.
expect 2 '' 'train: -m x.h5.gz: a checkpoint is not compressed (take .gz off the name)' "$train" "${small[@]}" -t a.en a.fr -v vocab -m x.h5.gz
expect 2 '' 'train: -o c.xz: a checkpoint is not compressed (take .xz off the name)' "$train" --average m.h5 -o c.xz
expect 2 '' 'train: --plot -: the name of a picture ends in .svg or .png' "$train" "${small[@]}" -t a.en a.fr -v vocab -m x.h5 --plot -
[ -e ./- ] && fail "a file has the name -"
expect 2 '' 'train: --check and --dry-run exclude each other (give one of them)' \
  "$train" "${small[@]}" -t a.en a.fr -v vocab -m x.h5 --check --dry-run
ln -s a.fr link.svg
replaces() {
  expect 2 '' "train: --plot $2: is also the file of $1, and one would spoil the other (name another file)" \
    "$train" "${small[@]}" "${@:3}" -v vocab -m x.h5 --plot "$2"
}
replaces -v "$PWD/vocab" -t a.en a.fr
replaces -t ./a.en -t a.en a.fr
replaces -t link.svg -t a.en a.fr
replaces --tsv a.tsv --tsv a.tsv
replaces --trees trees --trees trees
replaces --valid-sets a.tsv -t a.en a.fr --valid-sets a.tsv
replaces --guided-alignment links -t a.en a.fr --guided-alignment links
replaces --pretrained-model m.h5 -t a.en a.fr --pretrained-model m.h5
replaces --teacher m.h5 -t a.en a.fr --teacher n.h5 m.h5
replaces --plot-with m.h5 -t a.en a.fr --plot-with m.h5
replaces --log messages -t a.en a.fr --log messages
# So it is with the files that train writes beside the model.
beside() {
  local file=$1 what=$2 option=$3
  shift 3
  [ "$option" = --log ] || touch -a "$file"
  expect 2 '' "train: $option $file: is also $what, and one would spoil the other (name another file)" \
    "$train" "${small[@]}" -t a.en a.fr --valid-sets a.tsv -v vocab -m beside.h5 "$option" "$file" "$@"
  [ "$option" != --log ] || [ ! -e "$file" ] || fail "--log $file: was opened"
}
beside beside.best-bleu.h5 'a file of --keep-best' --pretrained-model --keep-best
beside ./beside.best-perplexity.h5 'a file of --keep-best' --teacher --keep-best
beside beside.update-12.h5 'a file of --keep-last' --plot-with --plot curve.svg --keep-last 2
beside beside.update-0.h5 'a file of --average-last' --plot --average-last 2
beside beside.best-evalb.h5 'a file of --keep-best' --log --keep-best
beside .beside.h5.lock 'the lock file of -m beside.h5' --log
beside .beside.h5.lock 'the lock file of -m beside.h5' --plot
ln -s beside.update-3.h5 three.h5
beside three.h5 'a file of --keep-last' --teacher --keep-last 2
rm -f beside.* .beside.* three.h5
# Other names, and names without the option that would write them, are free.
for name in beside.update-3.svg beside.update-x.h5 beside.best-bleu.h5; do
  expect 0 '*until*' '*' "$train" "${small[@]}" -t a.en a.fr -v vocab -m beside.h5 --log "$name" --keep-last 2 --dry-run
done
ln -s new.svg new.h5
for picture in new.h5 new.svg; do
  expect 2 '' 'train: -m new.h5: is also the file of --plot, and *' "$train" "${small[@]}" -t a.en a.fr -v vocab -m new.h5 --plot "$picture"
done
for twice in '-t - -' '--tsv - --valid-sets -' '--trees - --valid-sets a.en -' '-t a.en - --guided-alignment -' '--tsv - -v -'; do
  # shellcheck disable=SC2086
  expect 2 '' "train: * - reads standard input, and so does * (give files)" \
    "$train" "${small[@]}" -m x.h5 $twice <a.tsv
done
expect 2 '' 'train: --after: has no use with --average, which trains nothing' "$train" --average m.h5 -o c.h5 --after 2e
expect 2 '' 'train: --valid-freq: needs something to validate on (give --valid-sets)' \
  "$train" "${small[@]}" -t a.en a.fr -v vocab -m x.h5 --valid-freq 2e
expect 2 '' 'train: --max-positions: needs --transformer-positions learned' \
  "$train" "${small[@]}" -t a.en a.fr -v vocab -m x.h5 --max-positions 64

# Wrong data: exit 1, before the training begins.
bad() {
  local err=$1
  shift
  expect 1 '' "train: $err" "$train" "${small[@]}" -m x.h5 "$@"
  [ -e x.h5 ] && fail "$*: a model was written"
}
bad 'short.fr: has 59 lines, but a.en has 60 lines (*' -t a.en short.fr -v vocab
bad 'missing: cannot open: No such file or directory' -t a.en missing -v vocab
bad 'missing: cannot open*' -t a.en a.fr -v missing
bad 'empty + empty: is empty (*' -t empty empty -v vocab
bad 'standard input:1: no TAB in this line (*' --tsv - -v vocab <a.en
bad 'a.en:1*' -t a.en a.fr -v a.en
bad '*a.en:*: * tokens with </s>, more than 3 (*' -t a.en a.fr -v vocab --max-length 3 --on-long fail
bad '*no pair is left of 60*' -t a.en a.fr -v vocab --max-length 2
printf 'fine\nbad \xff\n' >invalid
bad 'invalid:2:5: invalid UTF-8 (*' -t invalid invalid -v vocab --on-invalid-utf8 fail
printf '\n\n' >blank
bad 'blank + blank: no pair is left of 2: 2 empty, 0 too long' -t a.en a.fr --valid-sets blank blank -v vocab
head -c 1000000 /dev/zero | tr '\0' 'x' >long
echo >>long
bad '*no pair is left of 1: 0 empty, 1 too long*' -t long long -v vocab
expect 1 '' 'train: no/such/folder/x.h5: cannot open for writing: No such file or directory' \
  "$train" "${small[@]}" -t a.en a.fr -v vocab -m no/such/folder/x.h5
expect 1 '' 'train: /dev/full: *' "$train" "${small[@]}" -t a.en a.fr -v vocab -m /dev/full

# there ERR ARGUMENT...: checks that train does not continue from the file x.h5, and leaves it unchanged
there() {
  local err=$1 before
  shift
  before=$(cksum <x.h5)
  expect 1 '' "*train: x.h5: $err" "$train" "${small[@]}" -v vocab -m x.h5 "$@"
  [ "$(cksum <x.h5)" = "$before" ] || fail "$err: the file was changed"
}
cp a.en x.h5
there 'is not a heed checkpoint: not an HDF5 file (*' -t a.en a.fr
head -c 3000 m.h5 >x.h5
there '*' -t a.en a.fr
cp c.h5 x.h5
there 'is a model without training state, *' -t a.en a.fr
cp m.h5 x.h5
there "cannot go on with this training: --dim-emb is 16 there, 32 here (*" -t a.en a.fr --dim-emb 32
there "cannot go on with this training: the training text's fingerprint is * (*" -t a.fr a.en
changed="cannot go on with this training: the training text's fingerprint is * there, * here"
there "$changed; the number of training examples is 60 there, 59 here (*" -t <(tail -n +2 a.en) <(tail -n +2 a.fr)
there "$changed; --max-length is 256 there, 8 here (*" -t a.en a.fr --max-length 8
there "$changed; --pretokenized is false there, true here (*" -t a.en a.fr --pretokenized
there 'cannot go on with this training: --optimizer is adam there, sgd here (*' -t a.en a.fr --optimizer sgd
cat a.en a.fr | "$HEED_BIN/build-vocab" -q --type words >vocab
there 'cannot go on with this training: the source vocabulary has *' -t a.en a.fr

# A forged /training/state is an error that names the field (batch is -1). The last 20 bytes of the file are the
# checksum.
"$train" "${small[@]}" -q -t a.en a.fr -v vocab -m forged.h5 --after 3u || fail "train: exit $?"
LC_ALL=C sed -E 's/(serialization::archive [0-9]+ 0 3 1 3 3 3 )0 [0-9]/\1-1 /' forged.h5 | head -c -20 >x.h5
cmp -s <(head -c -20 forged.h5) x.h5 && fail "the forged state is the old one"
there '/training/state: batch is -1, not 0 to 1 (the file is damaged or forged; *' -t a.en a.fr

# A training can be continued with batches of another size, also twice.
words() {
  "$train" "${small[@]}" -q -t a.en a.fr -v vocab -m words.h5 --mini-batch-words "$1" --after "$2" --disp-freq 1u --log-format tsv 2>/dev/null
}
words 100 15u >one.tsv && words 40000 20u >two.tsv && words 40000 25u >three.tsv || fail "other batches: exit $?"
awk -F '\t' '$1 == "update" && !($6 > 0 && $6 < 100) { bad = 1 } $1 == "update" { ++n } END { exit bad || n != 25 }' one.tsv two.tsv three.tsv ||
  fail "other batches: $(cat one.tsv two.tsv three.tsv)"

cluster=nodes=3,bandwidth=1G,latency=50us
expect 0 '*speed expected*  1 machine *target tokens/s*  2 machines *% of 2 times the speed of one*  3 machines *% of 3 times the speed of one*each sends in an update *MB' '' \
  "$train" "${small[@]}" -t a.en a.fr -v vocab -m new.h5 --dry-run --cluster "$cluster"
expect 2 '' 'train: --cluster: needs --dry-run, which predicts the speed*' "$train" "${small[@]}" -t a.en a.fr -v vocab -m new.h5 --cluster "$cluster"
expect 2 '' 'train: --cluster nodes=3: nodes, bandwidth and latency are needed (such as nodes=16,*' \
  "$train" "${small[@]}" -t a.en a.fr -v vocab -m new.h5 --dry-run --cluster nodes=3
expect 2 '*' 'train: --cluster: the speed of this kind of model is measured, not predicted, so that nothing is known of other machines (see --dry-run in train(1))' \
  "$train" --task rnn -q -t a.en a.fr -v vocab -m new.h5 --dry-run --cluster "$cluster"
expect 2 '*' 'train: --cluster: the speed of this kind of model is measured, not predicted, so that nothing is known of other machines (see --dry-run in train(1))' \
  "$train" "${small[@]}" --transformer-positions rotary -t a.en a.fr -v vocab -m new.h5 --dry-run --cluster "$cluster"

# Only one training at a time writes a model; --dry-run and --check are allowed meanwhile. After kill -9 the model is
# not locked, and the next training removes the temporary files.
long=("$train" "${small[@]}" -q -t a.en a.fr -v vocab -m l.h5 --after 100Ku --save-freq 1e)
saved() {
  for _ in $(seq 300); do
    [ -e l.h5 ] && return
    sleep 0.1
  done
  fail "l.h5 does not appear"
}
for signal in TERM KILL; do
  rm -f l.h5
  "${long[@]}" &
  saved
  expect 1 '' "train: l.h5: another training (process $!) is writing it (wait for it, stop it, or name another model with -m)" "${long[@]}"
  expect 1 '' "train: l.h5: another training (process $!) is writing it (*with -o)" "$train" --average m.h5 n.h5 -o l.h5
  expect 0 '*until*100Ku*' '' "${long[@]}" --dry-run
  expect 0 '*time until 100Ku*' '' "${long[@]}" --check
  kill -$signal $!
  wait $! 2>/dev/null
  code=$?
  case $signal,$code in TERM,75 | KILL,137) ;; *) fail "SIG$signal: exit $code" ;; esac
  [ $signal = KILL ] || [ "$(echo .l.*)" = '.l.*' ] || fail "an interrupted training leaves $(echo .l.*)"
done
: >.l.h5.12.tmp
expect 0 '' '*' "${long[@]}" --after 1u
[ "$(echo .l.*)" = '.l.*' ] || fail "the training after kill -9 leaves $(echo .l.*)"

# --dry-run leaves the temporary files of other processes alone, even those of the same process number (which a training
# on another machine may have).
expect 0 '*until*100Ku*' '' bash -c 'echo partly >.l.h5.$$.tmp; exec "$@" --dry-run' - "${long[@]}"
[ "$(cat .l.h5.*.tmp)" = partly ] || fail "train --dry-run removes a temporary file of another process"
rm .l.h5.*.tmp

# A validation after an update that has diverged has the worst scores, and translates nothing: the training goes on.
expect 1 '' '*update 2: the loss is not finite*validation after update 2: *bleu 0.00*back to update 0*diverges however small*' \
  "$train" "${small[@]}" -t a.en a.fr -v vocab -m wild.h5 --optimizer sgd -l 1e19 --clip-norm 0 --lr-warmup 0 --after 12u \
  --valid-sets a.tsv --valid-freq 2u --valid-metrics perplexity bleu

# The score of such a validation is never the best, also BLEU, and --check counts such updates.
diverging=("${small[@]}" -t a.en a.fr -v vocab --optimizer sgd -l 1e30 --clip-norm 0 --lr-warmup 0)
expect 1 '' '*validation after update 1:  bleu 0.00  perplexity 1.798e+308  *diverges however small*' "$train" "${diverging[@]}" -m worst.h5 \
  --valid-sets a.tsv --valid-freq 1u --valid-metrics bleu perplexity --keep-best
grep -qF '(best)' stderr && fail "a model that has diverged is the best: $(cat stderr)"
[ -e worst.best-bleu.h5 ] && fail "a model that has diverged is kept as the best"
expect 0 $'*\n! updates not finite          20 of 20 (lower --learn-rate)\n*' '*' "$train" "${diverging[@]}" --check
expect 0 '*' '*' "$train" "${small[@]}" -t a.en a.fr -v vocab --check
grep -q 'not finite' stdout && fail "--check counts updates that are finite: $(cat stdout)"

# Models that --keep-last has kept stay without the option; a finished training can still be averaged.
kept=("$train" "${small[@]}" -t a.en a.fr -v vocab -m kept.h5)
"${kept[@]}" -q --after 3e --keep-last 3 || fail "--keep-last: exit $?"
files=$(echo kept*.h5)
expect 0 '' 'train: kept.h5: training is finished already: --after 3e is reached' "${kept[@]}" --after 3e
expect 0 '' '*is finished already*train: saved kept.h5, the average of the last 3 saved models' "${kept[@]}" --after 3e --average-last 3
expect 0 '' 'train: kept.h5: training is finished already: --after 3e is reached' "${kept[@]}" --after 3e --average-last 3
"${kept[@]}" -q --after 4e || fail "after --keep-last: exit $?"
[ "$(echo kept*.h5)" = "$files" ] || fail "without --keep-last, there are other files: $(echo kept*.h5)"
expect 0 '' '*is finished already*train: removed kept.update-*.h5 to kept.update-*.h5, 2 models that are kept no longer (--keep-last, --average-last)' \
  "${kept[@]}" --after 4e --keep-last 1
"$train" "${small[@]}" -q -t a.en a.fr -v vocab -m bare.h5 --after 1e || fail "train: exit $?"
expect 0 '' '*is finished already*train: bare.h5: no kept model is left to average (--average-last; --keep-last keeps models)' \
  "$train" "${small[@]}" -t a.en a.fr -v vocab -m bare.h5 --after 1e --average-last 2

# A finished training has no result that another option could change: only a training that goes on warns of the option.
changed=("$train" "${small[@]}" -t a.en a.fr -v vocab -m kept.h5 --label-smoothing 0.2)
expect 0 '' 'train: kept.h5: training is finished already: --after 4e is reached' "${changed[@]}" --after 4e
expect 0 '*finished after update*' '' "${changed[@]}" --after 4e --dry-run
expect 0 '' 'train: kept.h5: training is finished already: --after 4e is reached*train: saved kept.h5, the average of *' \
  "${changed[@]}" --after 4e --keep-last 2 --average-last 1
grep -q warning stderr && fail "a warning about a finished training: $(cat stderr)"
expect 0 '*goes on after update*' '*warning: --label-smoothing was 0.1 and is now 0.2: the result will differ *' "${changed[@]}" --after 5e --dry-run
expect 0 '' '*warning: --label-smoothing was 0.1 and is now 0.2: the result will differ *' "${changed[@]}" --after 5e

# The curves of models of one name have the names of their folders.
mkdir left right
for side in left right; do
  "$train" "${small[@]}" -q -t a.en a.fr -v vocab -m $side/m.h5 --after 1e || fail "train: exit $?"
done
"$train" "${small[@]}" -q -t a.en a.fr -v vocab -m third.h5 --after 1e --plot both.svg --plot-with left/m.h5 right/m.h5 || fail "--plot-with: exit $?"
for name in left/m right/m third; do
  grep -qF ">$name<" both.svg || fail "no curve of $name"
done

# A training that ended by early stopping stays finished, also when the file of the best model is missing.
early=("$train" "${small[@]}" -t a.en a.fr -v vocab --valid-sets a.en a.fr -m early.h5 -l 1e-30 --valid-freq 1u --after 100u
  --early-stopping 2 --keep-best)
expect 0 '' '*finished: no better perplexity in 2 validations*' "${early[@]}" --valid-metrics perplexity
rm early.best-perplexity.h5 || fail "no file of the best model"
expect 0 '' '*is missing*training is finished already: no better*' "${early[@]}" --valid-metrics perplexity

# Out of memory: the message says what needs less. The attention of one pair of 30,000 words takes gigabytes.
yes a | head -n 30000 | tr '\n' ' ' >endless
echo >>endless
expect 1 '' 'train: out of memory (give smaller batches with --mini-batch-words, shorter sequences with --max-length, *' \
  bash -c 'ulimit -v 2000000; exec "$@"' - "$train" "${small[@]}" -q -t endless endless -v vocab -m endless.h5 -j 1 --max-length 100000 --after 1u
[ -e endless.h5 ] && fail "out of memory: a model"

# When the reader of the records ends, train ends without a message, like every program.
rm -f x.h5
cat a.en a.fr | "$HEED_BIN/build-vocab" -q --type bpe -s 110 >vocab
{ "$train" "${small[@]}" -q -t a.en a.fr -v vocab -m x.h5 --after 50e --disp-freq 1u --log-format jsonl; echo "$?" >code; } 2>stderr | head -n 1 >/dev/null
[ "$(cat code)" = 141 ] || fail "a closed pipe: exit $(cat code)"
[ -s stderr ] && fail "a closed pipe: $(cat stderr)"

finish
