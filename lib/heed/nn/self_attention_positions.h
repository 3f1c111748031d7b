#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "heed/autograd/graph.h"
#include "heed/nn/position_table.h"
#include "heed/nn/sinusoid_table.h"
#include "heed/ops/position_bias.h"

namespace heed {

/// What the self-attention layers of a stack (encoder or decoder) share in one computation: a bias of the logits (ALiBi
/// and T5), the cosines and sines by which queries and keys are rotated (rotary positions), or nothing.
template <class T>
struct StackPositions {
  PositionBias<T> bias = {};
  Tensor<T> rotations = {};
};

/// The position encoding within the self-attention of one stack of layers. Encodings outside attention add nothing.
class SelfAttentionPositions {
 public:
  /// The number of buckets of T5, as in the paper.
  static constexpr int kT5Buckets = 32;
  /// The distance from which on all keys share a relative vector: k in Shaw et al. 2018, whose base model has 16.
  static constexpr int kRelativeDistance = 16;

  /// Adds the parameters that the layers share to `layout`: for t5, the table <stack>/position_bias/weight [kT5Buckets,
  /// H]. `width` is D and `heads` is H; `causal` tells whether the stack is a decoder.
  SelfAttentionPositions(ParameterLayout& layout, const std::string& stack, PositionEncoding kind, std::int64_t width,
                         int heads, bool causal)
      : kind_(kind), heads_(heads), causal_(causal) {
    if (kind == PositionEncoding::rotary) rotations_ = std::make_shared<Rotations>(2 * (width / heads));
    if (kind == PositionEncoding::t5)
      table_ = layout.add(stack + "/position_bias/weight", {kT5Buckets, heads},
                          Initialiser::normal(1 / std::sqrt(static_cast<double>(width))));
  }

  /// Computes what the layers share in one computation, for sequences of up to `longest` tokens. In decoding, `longest`
  /// includes the token of the step.
  template <class T>
  StackPositions<T> shared(Graph<T>& graph, std::int64_t longest) const {
    StackPositions<T> out;
    if (kind_ == PositionEncoding::alibi) out.bias = alibi_bias(graph, heads_, longest, causal_);
    if (kind_ == PositionEncoding::t5) out.bias = t5_bias(graph, graph.parameter(table_), longest, causal_);
    if (kind_ == PositionEncoding::rotary)
      out.rotations = graph.device().upload(rotations_->get<T>(longest).row_block(0, longest));
    return out;
  }

  /// Appends the table of what the layers share to `tables`, for `positions` positions; nothing where they share
  /// nothing. Memory for the computation comes from the arena of the graph.
  template <class T>
  void add_tables(Graph<T>& graph, PositionTable::Stack stack, std::int64_t positions,
                  std::vector<PositionTable>& tables) const {
    const StackPositions<T> all = shared(graph, positions);
    if (all.bias.bias) {
      const std::int64_t distances = causal_ ? positions : 2 * positions - 1;
      tables.push_back({.stack = stack,
                        .term = kind_ == PositionEncoding::alibi ? PositionTable::Term::alibi : PositionTable::Term::t5,
                        .row_axis = "head",
                        .column_axis = "distance",
                        .first_row = 1,
                        .first_column = 1 - positions,
                        .rows = heads_,
                        .columns = distances,
                        .values = table_values(graph.device().download(all.bias.bias.value), 0, 0, heads_, distances)});
    }
    if (all.rotations) {
      const Tensor<T> rotations = graph.device().download(all.rotations);
      const std::int64_t width = rotations.columns() / 2;
      PositionTable table{.stack = stack,
                          .term = PositionTable::Term::rotary,
                          .row_axis = "position",
                          .column_axis = "component",
                          .rows = positions,
                          .columns = width};
      for (std::int64_t p = 0; p < positions; ++p)
        for (std::int64_t c = 0; c < width; ++c)
          table.values.push_back(static_cast<float>(rotations.row(p)[c % 2 == 0 ? c : width + c]));
      tables.push_back(std::move(table));
    }
  }

  /// Returns the distance at which the relative vectors of each layer are clipped, or 0 where the layers have none: an
  /// argument of MultiHeadAttention.
  int relative_distance() const { return kind_ == PositionEncoding::relative ? kRelativeDistance : 0; }

 private:
  /// The tables of rotations in float and in double, of which a model uses one.
  struct Rotations {
    explicit Rotations(std::int64_t width)
        : single(PositionEncoding::rotary, width), twice(PositionEncoding::rotary, width) {}
    template <class T>
    Tensor<T> get(std::int64_t length) const {
      if constexpr (std::is_same_v<T, float>)
        return single.get(length);
      else
        return twice.get(length);
    }
    SinusoidTable<float> single;
    SinusoidTable<double> twice;
  };

  PositionEncoding kind_;
  int heads_;
  bool causal_;
  std::shared_ptr<const Rotations> rotations_;
  ParameterId table_;
};

}  // namespace heed
