#pragma once

#include <span>

#include "heed/config/command_line.h"

namespace heed {

// Tables of the options of Marian, fairseq, OpenNMT-py, Sockeye, sacreBLEU, subword-nmt, SentencePiece and Moses, and a
// few of Hugging Face Transformers, vLLM and llama.cpp, that have another name in heed, or that heed does not have.
// Each program of heed has a table. When the user gives an unknown option, the error message takes heed's name of the
// option from the table.

std::span<const PeerOption> train_peer_options();
std::span<const PeerOption> translate_peer_options();
std::span<const PeerOption> tokenize_peer_options();
std::span<const PeerOption> build_vocab_peer_options();
std::span<const PeerOption> bleu_peer_options();
std::span<const PeerOption> inspect_attention_peer_options();
std::span<const PeerOption> kernel_regression_peer_options();

}  // namespace heed
