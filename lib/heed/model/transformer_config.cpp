#include "heed/model/transformer_config.h"

#include <algorithm>

#include "heed/base/error.h"
#include "heed/text/strings/piece_set.h"

namespace heed {
namespace {

struct Sizes {
  TransformerSize size;
  int depth;  // number of encoder layers, and also of decoder layers
  std::int64_t dim_emb;
  int heads;
  std::int64_t dim_ffn;
};

/// The sizes behind `train --task transformer-SIZE`. A size decides nothing else: dropout, norm, activation etc. are
/// the same for all sizes and are the default values of TransformerConfig. base and big have the sizes of Vaswani et
/// al. 2017, table 3. The manual page man/train.1 repeats these numbers under --task.
constexpr Sizes kSizes[] = {{TransformerSize::tiny, 4, 128, 4, 256},
                            {TransformerSize::mini, 3, 256, 4, 1024},
                            {TransformerSize::small, 6, 512, 4, 1024},
                            {TransformerSize::base, 6, 512, 8, 2048},
                            {TransformerSize::big, 6, 1024, 16, 4096}};

}  // namespace

TransformerConfig::TransformerConfig(TransformerSize size) {
  for (const Sizes& sizes : kSizes) {
    if (sizes.size != size) continue;
    enc_depth = dec_depth = sizes.depth;
    dim_emb = sizes.dim_emb;
    heads = sizes.heads;
    dim_ffn = sizes.dim_ffn;
    return;
  }
  throw Error("internal: unknown size of a Transformer");
}

void TransformerConfig::validate() const {
  const auto number = [](auto n) { return std::to_string(n); };
  if (dim_emb % heads != 0)
    throw UsageError("--dim-emb " + number(dim_emb) + " is not a multiple of --transformer-heads " + number(heads));
  if (is_within_attention(positions) && attention != AttentionScoring::dot)
    throw UsageError("--transformer-positions " + std::string(enum_name(positions)) +
                     " needs --attention dot: additive scores have no terms of positions");
  if (positions == PositionEncoding::rotary && dim_emb / heads % 2 != 0)
    throw UsageError("--dim-emb " + number(dim_emb) + " with --transformer-heads " + number(heads) +
                     " gives heads of the odd width " + number(dim_emb / heads) +
                     ": rotary positions rotate pairs of columns");
  if (is_sinusoidal(positions) && dim_emb % 2 != 0)
    throw UsageError("--dim-emb " + number(dim_emb) + " is odd: sinusoidal positions need an even width");
  check_tied_embeddings(tied_embeddings, *this);
  if (word_positions && (is_sinusoidal(positions) || positions == PositionEncoding::learned))
    throw UsageError(
        "--transformer-word-positions takes the place of positions that are added to the embeddings: "
        "give --transformer-positions rotary, relative, t5, alibi or none");
  if (word_positions && dim_emb % 2 != 0)
    throw UsageError("--dim-emb " + number(dim_emb) +
                     " is odd: --transformer-word-positions adds sinusoids, which need an even width");
  if (counts_words()) {
    PieceSet::parse(source_word_ends, source_vocabulary);
    PieceSet::parse(target_word_ends, target_vocabulary);
  }
  if (counts_words() && is_parallel())
    throw UsageError(
        std::string(word_positions ? "--transformer-word-positions" : "--transformer-next-word") +
        ": needs a decoder that writes one token after the other, so that the words before a token are known");
  if (fixed_length > 0 && positions == PositionEncoding::learned && fixed_length > max_positions)
    throw UsageError("--fixed-length " + number(fixed_length) + " is more than --max-positions " +
                     number(max_positions));
  if (cross_attention == CrossAttention::layerwise && enc_depth != dec_depth)
    throw UsageError("--cross-attention layerwise needs as many encoder layers as decoder layers, but --enc-depth is " +
                     number(enc_depth) + " and --dec-depth " + number(dec_depth) +
                     " (give both the same number, or --cross-attention mix)");
  if (tied_layers.empty()) return;
  if (normalization == Normalization::batch)
    throw UsageError(
        "--tied-layers does not go with --transformer-normalization batch: each use of a layer would need "
        "running averages of its own");
  const int tied = static_cast<int>(tied_layers.size());
  if (tied != enc_depth || tied != dec_depth)
    throw UsageError("--tied-layers has " + number(tied) + " numbers, but --enc-depth is " + number(enc_depth) +
                     " and --dec-depth " + number(dec_depth) +
                     " (give one number for each layer; encoder and decoder need the same depth)");
  for (int i = 0; i < tied; ++i) {
    const int owner = parameters_of_layer(i);
    if (owner < 0 || owner > i || parameters_of_layer(owner) != owner)
      throw UsageError("--tied-layers: layer " + number(i + 1) + " cannot have the parameters of layer " +
                       number(owner + 1) + " (give " + number(i + 1) +
                       ", for parameters of its own, or the number of an earlier layer that has its own)");
  }
}

std::optional<int> TransformerConfig::longest_sequence() const {
  std::optional<int> longest;
  if (positions == PositionEncoding::learned) longest = max_positions;
  if (fixed_length > 0) longest = std::min(longest.value_or(fixed_length), fixed_length);
  return longest;
}

std::string TransformerConfig::describe() const {
  return std::to_string(enc_depth) + " + " + std::to_string(dec_depth) + " layers, width " + std::to_string(dim_emb) +
         ", " + std::to_string(heads) + " heads, feed-forward " + std::to_string(dim_ffn) +
         (is_parallel() ? ", all positions at once" : "");
}

std::string TransformerConfig::unmet_need(std::string_view option) const {
  if (option == "transformer-dim-aan" && decoder_autoreg != DecoderAutoreg::average)
    return "--transformer-decoder-autoreg average";
  if ((option == "length-range" || option == "fixed-length") && !is_parallel())
    return "--transformer-decoder-autoreg none (as --task nat has it)";
  if (option == "length-range" && fixed_length > 0) return "predicted lengths (--fixed-length 0)";
  if (option == "max-positions" && positions != PositionEncoding::learned) return "--transformer-positions learned";
  return {};
}

}  // namespace heed
