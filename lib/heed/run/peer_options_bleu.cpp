#include "heed/run/peer_options.h"

namespace heed {

std::span<const PeerOption> bleu_peer_options() {
  static constexpr PeerOption options[] = {
      {"test-set", "", "sacreBLEU", "test sets are not downloaded (bleu REF < HYP)"},
      {"t", "", "sacreBLEU", "test sets are not downloaded (bleu REF < HYP)"},
      {"language-pair", "", "sacreBLEU", "test sets are not downloaded (bleu REF < HYP)"},
      {"l", "", "sacreBLEU", "test sets are not downloaded (bleu REF < HYP)"},
      {"list", "", "sacreBLEU", "test sets are not downloaded (bleu REF < HYP)"},
      {"download", "", "sacreBLEU", "test sets are not downloaded (bleu REF < HYP)"},
      {"echo", "", "sacreBLEU", "test sets are not downloaded (bleu REF < HYP)"},
      {"origlang", "", "sacreBLEU", "test sets are not downloaded (bleu REF < HYP)"},
      {"subset", "", "sacreBLEU", "test sets are not downloaded (bleu REF < HYP)"},
      {"detail", "", "sacreBLEU", "test sets are not downloaded (bleu REF < HYP)"},
      {"citation", "", "sacreBLEU", "test sets are not downloaded (bleu REF < HYP)"},
      {"encoding", "", "sacreBLEU", "all text is UTF-8"},
      {"e", "", "sacreBLEU", "all text is UTF-8"},
      {"no-color", "", "sacreBLEU", "the report has no colours"},
      {"paired-ar-ci", "", "sacreBLEU", "--paired-bs gives intervals"},
      {"part", "paired-ar-n", "sacreBLEU"},
      {"max-ngram-order", "max-order", "sacreBLEU"},
      {"sys", "input", "fairseq"},
      {"ref", "", "fairseq", "references stand without an option: bleu REF... < HYP"},
      {"ignore-case", "lowercase", "fairseq"},
      {"order", "max-order", "fairseq"},
      {"sentence-bleu", "sentence-level", "fairseq"},
      {"sacrebleu", "", "fairseq", "the scores are always those of sacreBLEU"},
      {"hypotheses", "input", "Sockeye"},
      {"sentence", "sentence-level", "Sockeye"},
  };
  return options;
}

}  // namespace heed
