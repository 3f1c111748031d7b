#include "heed/run/peer_options.h"

namespace heed {

std::span<const PeerOption> inspect_attention_peer_options() {
  static constexpr PeerOption options[] = {
      {"models", "model", "Marian"},
      {"path", "model", "fairseq"},
      {"vocabs", "", "Marian", "a model holds its vocabularies"},
      {"src", "input", "OpenNMT-py"},
      {"ref", "target", "fairseq"},
      {"tgt", "target", "OpenNMT-py"},
      {"score", "target", "translate"},
      {"print-alignment", "alignment", "fairseq"},
      {"report-align", "alignment", "OpenNMT-py"},
      {"attn-debug", "format table", "OpenNMT-py"},
      {"output-type", "format", "Sockeye"},
      {"beam", "beam-size", "fairseq"},
  };
  return options;
}

}  // namespace heed
