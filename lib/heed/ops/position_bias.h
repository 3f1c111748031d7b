// The terms that the positions of query and key add to a self-attention. In the formulas below, query i and key j are
// tokens of one sequence, and j - i is their distance: negative where the key precedes the query.
//
//   alibi     logit(i, j) = q_i k_j / sqrt(d) - slope |j - i|, with a fixed slope for each head (Press et al. 2022)
//   t5        logit(i, j) = q_i k_j / sqrt(d) + table[bucket(j - i), head], with a learned table (Raffel et al. 2020)
//   relative  logit(i, j) = q_i (k_j + a^K_c) / sqrt(d) and out_i = sum_j p_ij (v_j + a^V_c), with learned vectors a^K
//             and a^V for each distance c = clip(j - i, -k, k) (Shaw et al. 2018)
//   window    logit(i, j) = q_i k_j / sqrt(d) + table[c, head], with a learned table; the sequences are windows of a
//             grid, and c is the number of the pair (row difference, column difference) (Liu et al. 2021)
//
// window adds a matrix that depends on the head and on the shape of the window (see window_bias.h).
//
// alibi and t5 add a number that depends on the head and on the distance only. Both are therefore computed once for all
// layers of a stack, as a matrix of one row for each head with the distances side by side, and attention() adds a part
// of the row to the logits of a query. For sequences of up to 3 tokens, the row of a head is
//   distance   -2  -1   0   1   2
// of which the logits of query 0 get the distances 0 1 2, of query 1 -1 0 1, and of query 2 -2 -1 0.
#pragma once

#include <cstdint>
#include <span>

#include "heed/autograd/graph.h"
#include "heed/tensor/packed_windows.h"

namespace heed {

/// Where a bias of windows holds the matrix of one shape of windows: in each head's row, the logits of the window's
/// query i get the columns from column + i * stride on.
struct WindowMatrix {
  std::int64_t column = 0, stride = 0;
};

/// The terms that positions add to a self-attention: a bias of the logits, relative vectors, or nothing.
template <class T>
struct PositionBias {
  /// The bias of the logits [H, C], or absent. With L = `longest`, the logit of query i and key j gets the column
  /// L - 1 + j - i of the head's row. A bias of windows holds a matrix for each shape of `windows` instead.
  Variable<T> bias = {};
  /// The number L of tokens of the longest sequence for which `bias` has columns.
  std::int64_t longest = 0;
  /// The windows of the batch, and where `bias` holds the matrix of each shape; empty where `bias` depends on
  /// distances.
  PackedWindows windows = {};
  std::span<const WindowMatrix> matrices = {};
  /// The vectors a^K and a^V of the distances -k ... k, [2k + 1, d] for heads of d columns, or absent. All heads share
  /// them.
  Variable<T> relative_keys = {}, relative_values = {};

  explicit operator bool() const { return bias || relative_keys; }
};

/// The number of unused columns at the end of each row of a bias, as many as the largest vector has elements. The
/// kernels of attention load whole vectors, which may reach beyond the last distance.
constexpr std::int64_t kPositionBiasSlack = 16;

/// Returns the number C of columns of the bias for sequences of up to `longest` tokens: the distances 1 - longest ... 0
/// of a causal self-attention, or 1 - longest ... longest - 1, and kPositionBiasSlack.
constexpr std::int64_t position_bias_columns(std::int64_t longest, bool causal) {
  return (causal ? longest : 2 * longest - 1) + kPositionBiasSlack;
}

/// Returns the number of columns from one query's biases to the next in the matrix of a shape of windows: the number of
/// tokens, rounded up to whole vectors.
std::int64_t window_matrix_stride(const WindowShape& shape);
/// Returns the number C of columns of the bias for windows of these shapes: those of their matrices, and
/// kPositionBiasSlack.
std::int64_t window_bias_columns(std::span<const WindowShape> shapes);

/// Returns the slope of ALiBi (Press et al. 2022, section 3) for head h of H: 2^(-8 (h + 1) / H) where H is a power of
/// two. Otherwise, as in the authors' program, the first heads get the slopes of the next smaller power of two, and
/// the others every second slope of the next larger one.
double alibi_slope(int head, int heads);

/// Computes the bias of ALiBi (Press et al. 2022) for sequences of up to `longest` tokens: -slope |j - i|. For a causal
/// attention this is the formula of the paper. Without the causal mask, which the paper does not treat, the penalty
/// grows to both sides. The bias has no gradient.
template <class T>
PositionBias<T> alibi_bias(Graph<T>& graph, int heads, std::int64_t longest, bool causal);

/// The distances from this one on share the last bucket of t5_bias(), as in T5.
constexpr int kT5MostDistance = 128;

/// Returns the bucket of a distance among `buckets` buckets, as _relative_position_bucket() of Hugging Face's T5 does.
/// Small distances have buckets of their own; the other buckets grow logarithmically up to kT5MostDistance. Causal: all
/// distances above 0 share the bucket of 0. Otherwise the second half of the buckets is for the distances above 0.
int t5_bucket(std::int64_t distance, int buckets, bool causal);

/// Computes the bias of T5 (Raffel et al. 2020, section 2.1) for sequences of up to `longest` tokens: the number that
/// `table` [buckets, H] holds for the bucket of the distance and for the head. All layers of a stack share the table.
/// Unlike T5, heed divides q_i k_j by sqrt(d), as in all its attention; T5 leaves that to the initial weights.
/// Backward: dtable[bucket(j - i), head] += dbias[head, j - i].
template <class T>
PositionBias<T> t5_bias(Graph<T>& graph, const Variable<T>& table, std::int64_t longest, bool causal);

/// Computes the bias of ALiBi, [H, position_bias_columns(longest, causal)].
template <class T>
void alibi_forward(CpuContext& device, std::int64_t longest, bool causal, Tensor<T> bias);
template <class T>
void alibi_forward(CudaContext& device, std::int64_t longest, bool causal, Tensor<T> bias);
/// Computes the bias of T5 from `table` [buckets, H]: bias [H, position_bias_columns(longest, causal)].
template <class T>
void t5_forward(CpuContext& device, Tensor<T> table, std::int64_t longest, bool causal, Tensor<T> bias);
template <class T>
void t5_forward(CudaContext& device, Tensor<T> table, std::int64_t longest, bool causal, Tensor<T> bias);
/// Adds the gradient `dbias` of the bias of T5 to `dtable` [buckets, H].
template <class T>
void t5_backward(CpuContext& device, Tensor<T> dbias, std::int64_t longest, bool causal, Tensor<T> dtable);
template <class T>
void t5_backward(CudaContext& device, Tensor<T> dbias, std::int64_t longest, bool causal, Tensor<T> dtable);

/// Where an array of biases holds those of the queries of one head in one sequence: the row of query i, with an element
/// for each key, begins at the element first + i * step.
struct BiasRows {
  std::int64_t first = 0, step = 0;
};

/// The operands of a PositionBias for the kernels of attention. Null pointers: absent.
template <class T>
struct PositionArrays {
  const T* bias = nullptr;  ///< [H, bias_stride]
  T* bias_gradient = nullptr;
  std::int64_t bias_stride = 0, longest = 0;
  const WindowMatrix* matrices = nullptr;  ///< of the shapes of windows
  const std::int32_t* shape_of = nullptr;  ///< the shape of each sequence, where there are matrices
  const T *relative_keys = nullptr, *relative_values = nullptr;  ///< [2 distance + 1, d]
  T *relative_keys_gradient = nullptr, *relative_values_gradient = nullptr;
  std::int64_t distance = 0;  ///< k, the distance from which on all keys share a relative vector

  explicit operator bool() const { return bias || relative_keys; }
  /// Returns the number of relative vectors that an attention uses: a causal attention never meets the distances above
  /// 0. Returns 0 where the attention has no relative vectors.
  std::int64_t relative_vectors(bool causal) const {
    return !relative_keys ? 0 : causal ? distance + 1 : 2 * distance + 1;
  }
  /// Returns where `bias` and `bias_gradient` hold the rows of a head's queries in sequence number `sequence`. Rows of
  /// distances overlap: the row of a query begins one distance before the row of the query before.
  BiasRows bias_rows(int sequence, std::int64_t head) const {
    const std::int64_t begin = head * bias_stride;
    if (!matrices) return {begin + longest - 1, -1};
    const WindowMatrix& matrix = matrices[shape_of[sequence]];
    return {begin + matrix.column, matrix.stride};
  }
};

/// Returns the values of a PositionBias as arrays, without the gradients. Throws Error where shapes do not fit an
/// attention `op` over sequences of up to `longest` tokens, with heads of `head_width` columns, and where a bias of
/// windows meets a causal attention, and thus decoding.
template <class T>
PositionArrays<T> position_arrays(const char* op, const PositionBias<T>& positions, int heads, std::int64_t head_width,
                                  std::int64_t longest, bool causal);

}  // namespace heed
