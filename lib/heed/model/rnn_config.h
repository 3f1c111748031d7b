#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "heed/model/config_fields.h"
#include "heed/ops/recurrent_cell.h"

namespace heed {

/// How the encoder of a recurrent model reads the source: from the first token to the last, or in both directions, each
/// with half of the width.
enum class RnnEncoder { forward, bidirectional };
/// How the decoder of a recurrent model without attention knows the source: by its first state only (Sutskever et al.
/// 2014), or also by a context that it reads at every step (Cho et al. 2014).
enum class RnnContext { init, every_step };

template <>
struct EnumNames<RecurrentCell> {
  static constexpr std::pair<RecurrentCell, std::string_view> values[] = {{RecurrentCell::gru, "gru"},
                                                                          {RecurrentCell::lstm, "lstm"}};
};
template <>
struct EnumNames<RnnEncoder> {
  static constexpr std::pair<RnnEncoder, std::string_view> values[] = {{RnnEncoder::forward, "forward"},
                                                                       {RnnEncoder::bidirectional, "bidirectional"}};
};
template <>
struct EnumNames<RnnContext> {
  static constexpr std::pair<RnnContext, std::string_view> values[] = {{RnnContext::init, "init"},
                                                                       {RnnContext::every_step, "every-step"}};
};
/// The fields of both recurrent models.
struct RnnFields : VocabularySizes {
  std::int64_t dim_emb = 512, dim_rnn = 512;
  int enc_depth = 2, dec_depth = 2;
  RecurrentCell cell = RecurrentCell::gru;
  RnnEncoder encoder = RnnEncoder::bidirectional;
  TiedEmbeddings tied_embeddings = TiedEmbeddings::none;
  bool output_bias = true;
  double dropout = 0.2;  ///< dropout probability on embeddings, between layers and before the output layer

  /// Lists the fields that the user can choose with options of `train`.
  template <class Visitor>
  void option_fields(Visitor& visit) {
    visit(dim_emb, {.name = "dim-emb", .help = "width of embeddings", .value = "N", .min = 1, .max = kMostWidth});
    visit(dim_rnn,
          {.name = "dim-rnn", .help = "width of the recurrent layers", .value = "N", .min = 1, .max = kMostWidth / 8});
    visit(enc_depth, {.name = "enc-depth", .help = "encoder layers", .value = "N", .min = 1, .max = 1024});
    visit(dec_depth, {.name = "dec-depth", .help = "decoder layers", .value = "N", .min = 1, .max = 1024});
    visit(cell, {.name = "rnn-cell", .help = "cell of the recurrent layers"});
    visit(encoder,
          {.name = "rnn-encoder",
           .help = "read the source from its beginning, or in both directions with half of the width for each"});
    visit(tied_embeddings,
          {.name = "tied-embeddings",
           .help = "share one weight: none; decoder's embedding and output layer; these and the encoder's embedding",
           .implicit = "decoder"});
    visit(output_bias, {.name = "output-bias", .help = "give the output layer a bias"});
    visit(dropout, dropping_field("dropout", "dropout on embeddings, between layers and before the output layer"));
  }

  std::optional<int> longest_sequence() const { return {}; }
  bool is_parallel() const { return false; }
  std::string unmet_need(std::string_view) const { return {}; }
  /// Describes the sizes: "2 + 2 layers, embeddings 512, bidirectional gru 512".
  std::string describe() const;
  void validate() const;
};

/// The complete definition of a recurrent encoder-decoder model without attention.
struct RnnConfig : RnnFields {
  static constexpr std::string_view kArchitecture = "rnn", kName = "RNN";

  RnnContext context = RnnContext::init;

  template <class Visitor>
  void option_fields(Visitor& visit) {
    RnnFields::option_fields(visit);
    visit(context, {.name = "rnn-context",
                    .help = "the source decides the decoder's first state only, or is also read at every step"});
  }
  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Model");
    VocabularySizes::fields(visit);
    option_fields(visit);
  }
};

/// The complete definition of a recurrent encoder-decoder model with attention.
struct RnnAttentionConfig : RnnFields {
  static constexpr std::string_view kArchitecture = "rnn-attention", kName = "RNN with attention";

  AttentionScoring attention = AttentionScoring::additive;
  double attention_dropout = 0;

  template <class Visitor>
  void option_fields(Visitor& visit) {
    RnnFields::option_fields(visit);
    visit(attention, {.name = "attention",
                      .help = "additive: before each step, as Bahdanau et al.; dot: after it, as Luong et al."});
    visit(attention_dropout, kAttentionDropoutField);
  }
  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Model");
    VocabularySizes::fields(visit);
    option_fields(visit);
  }
};

}  // namespace heed
