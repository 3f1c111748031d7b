#!/usr/bin/env bash
# Tests scripts/distillation.mk with very short trainings: every file is made once, and the table compares the models.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
command -v make >/dev/null || { echo "no make"; exit 77; }
export HEED_BIN

for part in train:300 valid:20 test:20; do
  for side in en fr; do head -n "${part#*:}" "$HEED_SOURCE/data/${part%:*}.$side" | gzip >"${part%:*}.$side.gz"; done
done
small='--enc-depth 1 --dec-depth 1 --dim-emb 16 --transformer-dim-ffn 16 -j 2 --mini-batch-words 500 -q'
for variable in FOLDER WORK; do
  expect 2 '' "*$variable=a folder: the name of a folder must have no space*" make -s -f "$HEED_SOURCE/scripts/distillation.mk" $variable='a folder'
done
# run [SAMPLES]
run() {
  make -s -f "$HEED_SOURCE/scripts/distillation.mk" FOLDER=. GZ=.gz WORK=work PIECES='--max-size 300' TEACHER_LENGTH=4u STUDENT_LENGTH=4u SAMPLES="${1:-2}" \
    TEACHER="--task transformer-tiny $small" STUDENT="--task transformer-tiny --transformer-decoder-autoreg none $small" CANDIDATES='1 2' >out 2>err
}
run || fail "make: exit $?, $(cat err)"
grep -qE '^model +BLEU +ms/line$' out || fail "no table: $(cat out)"
for name in 'teacher, beam of 5' 'student, 4 iterations, 1 lengths' 'student, 4 iterations, 2 lengths'; do
  grep -qE "^$name +[0-9.]+ +[0-9.]+$" out || fail "no line '$name': $(cat out err)"
done
[ "$(wc -l <work/distilled.fr)" -eq 300 ] || fail "the distilled corpus has $(wc -l <work/distilled.fr) lines"
# The student learns from the corpus and two samples of each line, all translated by the teacher.
for part in en fr; do [ "$(wc -l <work/lesson2.$part)" -eq 900 ] || fail "lesson2.$part has $(wc -l <work/lesson2.$part) lines"; done
cmp -s <(tail -n 300 work/lesson2.en) work/sampled2.en || fail "the samples are not at the end of the lesson"
cmp -s work/sampled1.en work/sampled2.en && fail "both samples are the same"
# Again, only the comparison is done.
touch -d '2000-01-01' mark
cp -p work/student2.h5 before.h5
run || fail "make again: exit $?, $(cat err)"
[ work/student2.h5 -nt before.h5 ] && fail "the student was trained again"
# Without the mark of its end, a training goes on: it is finished at once.
rm work/student2
run || fail "make after an interruption: exit $?, $(cat err)"
[ -e work/student2 ] || fail "the student's training was not finished: $(cat err)"
# A translation that is older than its model is made anew, and so is the beginning of one. A beginning that is newer goes on.
for name in distilled sampled1 sampled2; do cp work/$name.fr $name.expected; done
echo old >work/distilled.fr
(sed -n 1p sampled1.expected; echo old; sed -n 3p sampled1.expected) >work/sampled1.fr.partial
rm work/sampled1.fr
touch -d '2000-01-01' work/distilled.fr work/sampled1.fr.partial
head -n 3 sampled2.expected >work/sampled2.fr.partial
rm work/sampled2.fr
run || fail "make with old translations: exit $?, $(cat err)"
for name in distilled sampled1 sampled2; do cmp -s work/$name.fr $name.expected || fail "$name.fr is not what the teacher translates"; done
grep -q 'sampled2.fr.partial: goes on after line 3$' err || fail "an interrupted translation does not go on: $(cat err)"
# Another number of samples has another student, and both stay.
cp -p work/student2.h5 before.h5
run 0 || fail "make without samples: exit $?, $(cat err)"
for part in en fr; do [ "$(wc -l <work/lesson0.$part)" -eq 300 ] || fail "lesson0.$part has $(wc -l <work/lesson0.$part) lines"; done
[ -e work/student0 ] || fail "no student without samples: $(cat err)"
cmp -s work/student0.h5 work/student2.h5 && fail "the student without samples is the one with samples"
run || fail "make with samples again: exit $?, $(cat err)"
[ work/student2.h5 -nt before.h5 ] && fail "the student was trained again after one without samples"
finish
