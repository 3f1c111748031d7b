# Trains a model that translates all words of a line at once (train --task nat) with an ordinary Transformer as its teacher
# (knowledge distillation, Kim and Rush 2016), and compares both. Every step is a command of heed:
#   1. the teacher, an ordinary Transformer, is trained on the corpus;
#   2. the teacher translates the sources of the corpus, with a beam of 5: the distilled corpus;
#   3. with SAMPLES=N, a model of the other direction is trained, and samples N more sources for each target of the corpus;
#      the teacher translates these too;
#   4. the student, WORK/student0.h5 or WORK/studentN.h5, is trained on all sources with the teacher's translations;
#   5. both translate the test part, line by line as for a user who waits: the table has BLEU and milliseconds.
#
# usage: make -f scripts/distillation.mk [VARIABLE=VALUE...]
# Without variables it uses heed's data/, and takes some minutes. For Multi30k English-German, where it takes hours:
#   make -f scripts/distillation.mk FOLDER=../shared/corpora/multi30k TEST=test_2016_flickr GZ=.gz VALID=val T=de \
#     WORK=build/multi30k-nat PIECES='--merges 10000' TEACHER_LENGTH=3000u STUDENT_LENGTH=14000u TEACHER='$(MULTI30K_TEACHER)' STUDENT='$(MULTI30K_STUDENT)' \
#     SAMPLES=2 REVERSE='$(MULTI30K_REVERSE)' REVERSE_LENGTH=2500u
# After an interruption, the same command goes on. The programs are those of HEED_BIN (build/release/bin), or of the
# search path.

S = en
T = fr
# The corpus: FOLDER/{TRAIN,VALID,TEST}.{S,T}GZ
FOLDER = data
TRAIN = train
VALID = valid
TEST = test
GZ =
# All files that are made.
WORK = build/distillation
PIECES = --max-size 2000
COMMON = --tied-embeddings-all --label-smoothing 0.1 --save-freq 1e --average-last 8 --valid-metrics perplexity bleu
TEACHER = --task transformer-tiny --dropout 0.1 --mini-batch-words 2000
TEACHER_LENGTH = 20e
STUDENT = --task transformer-tiny --transformer-decoder-autoreg none --dropout 0.1 --mini-batch-words 2000
STUDENT_LENGTH = 60e
# More sources for the student: on a small corpus, they are worth several BLEU.
SAMPLES = 0
REVERSE = $(TEACHER)
REVERSE_LENGTH = $(TEACHER_LENGTH)
# What the comparison uses.
PRECISION = float32
ITERATIONS = 4
CANDIDATES = 1 3

MULTI30K = --mini-batch-words 4096 --optimizer-params 0.9 0.98 1e-8
MULTI30K_TEACHER = --task transformer-mini --dropout 0.3 $(MULTI30K) --learn-rate 0.0035 --lr-warmup 1000
MULTI30K_REVERSE = --task transformer-tiny --dropout 0.3 $(MULTI30K) --learn-rate 0.005 --lr-warmup 800
MULTI30K_STUDENT = --task transformer-tiny --transformer-decoder-autoreg none --dropout 0.2 $(MULTI30K) --learn-rate 0.005 --lr-warmup 2000

# A space would divide a name in two.
$(foreach variable,FOLDER WORK,$(if $(word 2,$($(variable))),$(error $(variable)=$($(variable)): the name of a folder must have no space)))

HEED_BIN ?= $(CURDIR)/build/release/bin
export PATH := $(HEED_BIN):$(PATH)
train = $(FOLDER)/$(TRAIN)
valid = $(FOLDER)/$(VALID).$(S)$(GZ) $(FOLDER)/$(VALID).$(T)$(GZ)
reverse_valid = $(FOLDER)/$(VALID).$(T)$(GZ) $(FOLDER)/$(VALID).$(S)$(GZ)
samples := $(foreach n,$(shell seq $(SAMPLES)),$(WORK)/sampled$(n))
# Each number of samples has lessons and a student of its own, so that the same WORK serves all of them.
lesson = $(WORK)/lesson$(words $(samples))
student = $(WORK)/student$(words $(samples))
learn_pieces = build-vocab --type bpe $(PIECES) --lowercase --normalize-punctuation
source = $(FOLDER)/$(TEST).$(S)$(GZ)
reference = $(FOLDER)/$(TEST).$(T)$(GZ)

.DELETE_ON_ERROR:
.PHONY: compare
compare: $(WORK)/teacher $(student)
	@printf '%-36s %6s %8s\n' model BLEU ms/line
	@measure() { \
	  name=$$1; shift; \
	  translate -i $(source) -o $(WORK)/found --precision $(PRECISION) -j 1 --maxi-batch 1 --stats "$$@" 2> $(WORK)/stats || { cat $(WORK)/stats >&2; exit 1; }; \
	  printf '%-36s %6s %8s\n' "$$name" "$$(bleu $(reference) --lowercase -b < $(WORK)/found)" \
	    "$$(sed -nE 's|.* ([0-9.]+) lines/s.*|\1|p' $(WORK)/stats | awk '{ printf "%.2f", 1000 / $$1 }')"; \
	}; \
	measure 'teacher, beam of 5' -m $(WORK)/teacher.h5 -b 5; \
	for n in $(CANDIDATES); do \
	  measure "student, $(ITERATIONS) iterations, $$n lengths" -m $(student).h5 --iterations $(ITERATIONS) --length-candidates $$n; \
	done

$(WORK)/vocab:
	mkdir -p $(WORK)
	$(learn_pieces) --language $(S),$(T) $(train).$(S)$(GZ) $(train).$(T)$(GZ) -o $@

$(WORK)/reverse.vocab:
	mkdir -p $(WORK)
	$(learn_pieces) --language $(T),$(S) $(train).$(T)$(GZ) $(train).$(S)$(GZ) -o $@

# The empty files teacher, reverse, student0 and so on say that a training is finished; the model file exists before.
$(WORK)/teacher: $(WORK)/vocab
	train -t $(train).$(S)$(GZ) $(train).$(T)$(GZ) --valid-sets $(valid) -v $< -m $@.h5 $(COMMON) $(TEACHER) --after $(TEACHER_LENGTH)
	touch $@

# A complete translation would satisfy translate --resume even if its model or its source is another now, and so would the
# beginning of a translation if the first and the last of its lines are the same. Both are removed, unless the beginning is
# newer than what it is made from.
begin = @rm -f $@; for file in $^; do [ $@.partial -nt $$file ] || rm -f $@.partial; done

$(WORK)/distilled.$(T): $(WORK)/teacher
	$(begin)
	translate -m $<.h5 -b 5 -i $(train).$(S)$(GZ) -o $@ --resume

$(WORK)/reverse: $(WORK)/reverse.vocab
	train -t $(train).$(T)$(GZ) $(train).$(S)$(GZ) --valid-sets $(reverse_valid) -v $< -m $@.h5 $(COMMON) $(REVERSE) --after $(REVERSE_LENGTH)
	touch $@

$(WORK)/sampled%.$(S): $(WORK)/reverse
	$(begin)
	translate -m $<.h5 --search sample --top-k 10 --seed $* -i $(train).$(T)$(GZ) -o $@ --resume

$(WORK)/sampled%.$(T): $(WORK)/teacher $(WORK)/sampled%.$(S)
	$(begin)
	translate -m $<.h5 -b 5 -i $(WORK)/sampled$*.$(S) -o $@ --resume

$(lesson).$(S): $(samples:=.$(S))
	mkdir -p $(WORK)
	gzip -cdf $(train).$(S)$(GZ) $^ > $@

$(lesson).$(T): $(WORK)/distilled.$(T) $(samples:=.$(T))
	cat $^ > $@

$(student): $(lesson).$(S) $(lesson).$(T)
	train -t $^ --valid-sets $(valid) -v $(WORK)/vocab -m $@.h5 $(COMMON) $(STUDENT) --after $(STUDENT_LENGTH)
	touch $@
