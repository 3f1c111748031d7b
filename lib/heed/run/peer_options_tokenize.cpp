#include "heed/run/peer_options.h"

namespace heed {

std::span<const PeerOption> tokenize_peer_options() {
  static constexpr PeerOption options[] = {
      {"tok", "mode", "sacreBLEU"},
      {"tokenize", "mode", "sacreBLEU"},
      {"lc", "lowercase", "sacreBLEU"},
      {"no-xml-escape", "no-escape", "sacremoses"},
      {"xml-escape", "escape", "sacremoses"},
      {"aggressive-dash-splits", "aggressive-hyphens", "sacremoses"},
      {"protected-patterns", "protected", "sacremoses"},
      {"processes", "threads", "sacremoses"},
      {"custom-nonbreaking-prefixes", "", "sacremoses", "the abbreviations are those of the --language"},
      {"encoding", "", "sacremoses", "all text is UTF-8"},
      {"x", "skip-xml", "Moses"},
      {"b", "", "Moses", "output is flushed whenever the input pauses"},
      {"u", "uppercase-first", "Moses"},
      {"time", "stats", "Moses"},
      {"lines", "", "Moses", "threads share the text by themselves (--threads N)"},
      {"corpus", "input", "Moses"},
      {"bpe-codes", "codes", "fairseq"},
      {"num-workers", "threads", "subword-nmt"},
      {"model-file", "model", "SentencePiece"},
      {"output-type", "output-format", "SentencePiece"},
      {"out-type", "output-format", "SentencePiece"},
      {"nbest-size", "n-best", "SentencePiece"},
      {"alpha", "sample-alpha", "SentencePiece"},
      {"enable-sampling", "sample-alpha", "SentencePiece"},
      {"random-seed", "seed", "SentencePiece"},
      {"generate-vocabulary", "", "SentencePiece", "build-vocab --counts-output FILE counts pieces"},
      {"normalization-rule-name", "normalize", "SentencePiece"},
      {"add-bos", "extra-options bos", "SentencePiece"},
      {"add-eos", "extra-options eos", "SentencePiece"},
      {"reverse", "extra-options reverse", "SentencePiece"},
      {"emit-unk-piece", "extra-options unk", "SentencePiece"},
      {"remove-extra-whitespaces", "", "SentencePiece", "--normalize-only always removes them"},
      {"use-internal-normalization", "", "SentencePiece", "tokenize without --normalize-only does the model's own"},
      {"decompile", "", "SentencePiece", "a model's normalisation is not written as a table"},
  };
  return options;
}

}  // namespace heed
