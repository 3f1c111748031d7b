// Recurrent encoder-decoder models, the baselines that the Transformer is compared with.
//
// An encoder of recurrent layers (GRU or LSTM) reads the source; its highest layer gives the memory, a vector for each
// source token, and a last state. The decoder is recurrent too. Its layer i begins in the state
//
//   h_i = tanh(W_i h + b_i)     and, for an LSTM, c_i = V_i c + d_i,
//
// where h and c are the encoder's last state; for a bidirectional encoder, h is the last state of the forward direction
// and, after it, that of the backward direction, and so is c. A decoder step reads the embedding e of the last token.
// The output layer reads the readout tanh(W [..] + b). The readout has the width of the embeddings, so that the output
// layer can share the weight of the embeddings. The brackets [..] hold these vectors, side by side:
//
//   rnn, context init        s, e         s: the state of the highest layer after the step
//   rnn, every step          s, e, h      The lowest layer also reads h, the encoder's last state, at every step.
//   rnn-attention, additive  s, e, a      The lowest layer also reads a, the attention whose query is the state of the
//                                         highest layer before the step.
//   rnn-attention, dot       s, a         The query of the attention a is s.
//
// Sources: Cho et al. 2014 and Sutskever et al. 2014 (rnn); Bahdanau et al. 2015, section 3 (additive); Luong et al.
// 2015, section 3.1, without input feeding (dot).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "heed/model/model.h"
#include "heed/nn/linear_layer.h"
#include "heed/nn/recurrent_layer.h"

namespace heed {

/// The data of the encoded sources that a recurrent decoder reads at each step, in memory of the device that the object
/// owns. A model with attention has `values` [S, D], one row for each source token, and `keys` [S, D]; `keys` is absent
/// if the values serve as keys. A model that reads a context at every step has `context` [B, D], one row for each
/// sequence, and `context_gates` [B, G D], the part of the gates that the context gives. Tensors that the model does
/// not use are absent.
template <class T>
struct RnnMemory {
  explicit RnnMemory(Device device) : arena(device.arena().source()) {}

  Arena arena;
  Tensor<T> keys = {}, values = {}, context = {}, context_gates = {};
  PackedOffsets offsets = {};  ///< of the sequences in keys and values, in the memory of the device
};

/// The parts that both recurrent models share. Shapes: S source tokens, B sequences, N target tokens, R rows
/// (hypotheses), E the width of embeddings, D the width of recurrent layers.
template <class T>
class RecurrentModel : public Model<T> {
 public:
  std::unique_ptr<DecoderState<T>> make_state(Device device) const override;
  std::vector<Product> products() const override;
  std::optional<ResidualNorms> residual_norms() const override { return {}; }

  /// The encoder's memory [S, D] and last state [B, D].
  struct Encoded {
    Variable<T> memory;
    RecurrentState<T> last;
  };
  Encoded encode(Graph<T>& graph, const PackedIds& source) const;
  /// Returns the first state of each decoder layer, [B, D] each.
  std::vector<RecurrentState<T>> first_states(Graph<T>& graph, const RecurrentState<T>& last) const;
  /// Copies what the decoder needs of the encoded sources, whose offsets are `source`, to `memory`.
  virtual void remember(Graph<T>& graph, const Encoded& encoded, PackedOffsets source, RnnMemory<T>& memory) const = 0;
  /// Takes one decoding step for R rows: `tokens` are the last tokens, sentences[r] is the sequence that row r
  /// translates, and `states` holds the state of each layer [R, D], which the state after the step replaces. Returns
  /// the readout [R, E].
  virtual Variable<T> step(Graph<T>& graph, std::span<const std::int32_t> tokens,
                           std::span<const std::int32_t> sentences, const RnnMemory<T>& memory,
                           std::span<RecurrentState<T>> states) const = 0;

  RecurrentCell cell() const { return fields_.cell; }
  std::int64_t state_width() const { return fields_.dim_rnn; }

 protected:
  /// Creates a model. `context` is the width of the vector that the lowest decoder layer reads in addition to the
  /// embedding (the context or the attention), or 0; `readout` is the number of columns of the input of the readout
  /// layer.
  RecurrentModel(const ModelConfig& config, const RnnFields& fields, std::int64_t context, std::int64_t readout);

  /// Returns the embeddings [N, E] of target tokens.
  Variable<T> embed_target(Graph<T>& graph, std::span<const std::int32_t> ids) const {
    return embed(graph, target_embedding_, ids);
  }
  /// Returns the readout [N, E] of `parts`, each [N, ..], side by side.
  Variable<T> read_out(Graph<T>& graph, std::initializer_list<Variable<T>> parts) const;

  const RnnFields fields_;
  std::optional<RecurrentStack> decoder_;

 private:
  Variable<T> embed(Graph<T>& graph, ParameterId weight, std::span<const std::int32_t> ids) const;

  ParameterId source_embedding_, target_embedding_;
  std::optional<RecurrentStack> encoder_;
  std::vector<LinearLayer> first_hidden_, first_cell_;
  std::optional<LinearLayer> readout_;
};

/// The recurrent model without attention.
template <class T>
class Rnn : public RecurrentModel<T> {
 public:
  explicit Rnn(const RnnConfig& config);

  Variable<T> hidden(Graph<T>& graph, const Batch& batch, Trace<T>* trace = nullptr) const override;
  std::vector<Product> products() const override;
  std::vector<AttentionLayers> attention_layers() const override { return {}; }
  void remember(Graph<T>& graph, const typename RecurrentModel<T>::Encoded& encoded, PackedOffsets source,
                RnnMemory<T>& memory) const override;
  Variable<T> step(Graph<T>& graph, std::span<const std::int32_t> tokens, std::span<const std::int32_t> sentences,
                   const RnnMemory<T>& memory, std::span<RecurrentState<T>> states) const override;

 private:
  bool every_step_;
};

/// The recurrent model with attention.
template <class T>
class RnnAttention : public RecurrentModel<T> {
 public:
  explicit RnnAttention(const RnnAttentionConfig& config);

  Variable<T> hidden(Graph<T>& graph, const Batch& batch, Trace<T>* trace = nullptr) const override;
  std::vector<Product> products() const override;
  std::vector<AttentionLayers> attention_layers() const override;
  void remember(Graph<T>& graph, const typename RecurrentModel<T>::Encoded& encoded, PackedOffsets source,
                RnnMemory<T>& memory) const override;
  Variable<T> step(Graph<T>& graph, std::span<const std::int32_t> tokens, std::span<const std::int32_t> sentences,
                   const RnnMemory<T>& memory, std::span<RecurrentState<T>> states) const override;

 private:
  bool additive() const { return static_cast<bool>(scorer_); }
  Variable<T> additive_hidden(Graph<T>& graph, const Batch& batch, Trace<T>* trace) const;
  Variable<T> dot_hidden(Graph<T>& graph, const Batch& batch, Trace<T>* trace) const;
  Variable<T> project_query(Graph<T>& graph, const Variable<T>& state) const;
  Variable<T> attend(Graph<T>& graph, const Variable<T>& query, std::span<const std::int32_t> sentences,
                     const RnnMemory<T>& memory) const;

  double attention_dropout_;
  // The parts of the scores v . tanh(W_q s + W_k m + b); absent where the scores are dot products.
  ParameterId query_weight_, scorer_;
  std::optional<LinearLayer> key_;
};

}  // namespace heed
