#include "heed/ops/packed_linear.h"

#include <algorithm>
#include <type_traits>

#include "heed/base/thread_team.h"
#include "heed/ops/gemm/gemm.h"
#include "heed/tensor/bfloat16.h"

namespace heed {
namespace {

/// Rounds `size` numbers to bfloat16 and stores the rounded numbers as T: out[i] = from[i], rounded.
template <class T>
void round_all(const T* from, std::int64_t size, T* out) {
  std::transform(from, from + size, out,
                 [](T value) { return static_cast<T>(round_to_bfloat16(static_cast<float>(value))); });
}

/// Returns the form in which weights are packed for the device's precision on this CPU.
template <class T>
PackedForm form_of(const CpuContext& device) {
  if (!std::is_same_v<T, float> || device.precision == Precision::float32) return PackedForm::float32;
  if (device.precision == Precision::int8) return PackedForm::int8;
  return takes_bfloat16(device) ? PackedForm::bfloat16 : PackedForm::rounded;
}

/// Returns the size of a packed weight with n rows of k numbers, in elements of T.
template <class T>
std::int64_t packed_size(PackedForm form, std::int64_t n, std::int64_t k) {
  switch (form) {
    case PackedForm::bfloat16:
      return bfloat16_tile_words(k, n);
    case PackedForm::int8:
      return int8_weight_bytes(n, k) / static_cast<std::int64_t>(sizeof(float));
    default:
      return Panels<T>::size(n, k);
  }
}

/// Packs the rows begin ... end - 1 of a weight [n, k]. `rows` points to row `begin`; `memory` is the memory of the
/// whole packed weight.
template <class T>
void pack_rows(PackedForm form, std::int64_t n, std::int64_t k, std::int64_t begin, std::int64_t end, const T* rows,
               T* memory) {
  if constexpr (std::is_same_v<T, float>) {
    if (form == PackedForm::int8)
      return quantize_weight(n, k, begin, end, rows, k, reinterpret_cast<std::byte*>(memory));
    if (form == PackedForm::bfloat16) {
      bfloat16_tiles(reinterpret_cast<std::uint32_t*>(memory) + bfloat16_tile_words(k, begin), k, end - begin,
                     {rows, k, true});
      return;
    }
  }
  std::vector<T> copy(static_cast<std::size_t>(form == PackedForm::rounded ? (end - begin) * k : 0));
  if (form == PackedForm::rounded) round_all(rows, (end - begin) * k, copy.data());
  pack_panels(end - begin, k, form == PackedForm::rounded ? copy.data() : rows, k, memory + begin * k);
}

/// Calls pack(begin, end) for pieces (ranges of rows) of a weight [n, k] that together cover all n rows. The threads of
/// `team` share the pieces; without a team, the caller's thread packs all of them.
template <class Pack>
void for_rows(ThreadTeam* team, std::int64_t n, std::int64_t k, Pack pack) {
  // The number of elements of the weight in one piece (range of rows): so few that the rows stay in the cache until
  // they are packed.
  constexpr std::int64_t kPieceElements = 1 << 15;
  const std::int64_t count =
      std::max<std::int64_t>(1, kPieceElements / std::max<std::int64_t>(1, k) / kColumnBlock) * kColumnBlock;
  const std::int64_t pieces = (n + count - 1) / count;
  const auto piece = [&](int i) { pack(i * count, std::min(n, (i + 1) * count)); };
  if (team && pieces > 1)
    team->run(static_cast<int>(pieces), piece);
  else
    for (int i = 0; i < pieces; ++i) piece(i);
}

}  // namespace

template <class T>
PackedWeight<T> PackedWeight<T>::pack(const CpuContext& device, const PackedParameters<T>* parameters, Tensor<T> weight,
                                      Tensor<T> bias, std::span<const std::int32_t> selected, Arena& arena) {
  const PackedForm form = form_of<T>(device);
  const std::int64_t n = std::ssize(selected), k = weight.columns();
  const UnpackedWeight<T> from = parameters ? parameters->unpacked(weight) : UnpackedWeight<T>(weight);
  T* const memory = arena.tensor<T>({packed_size<T>(form, n, k)}).data();
  for_rows(device.team, n, k, [&](std::int64_t begin, std::int64_t end) {
    thread_local std::vector<T> rows, scratch;
    rows.resize(static_cast<std::size_t>((end - begin) * k));
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = selected[static_cast<std::size_t>(i)];
      std::copy_n(from.get(row, row + 1, scratch), k, rows.data() + (i - begin) * k);
    }
    pack_rows(form, n, k, begin, end, static_cast<const T*>(rows.data()), memory);
  });
  PackedWeight<T> out{memory, {}, n, k};
  if (!bias) return out;
  out.bias = arena.tensor<T>({n});
  for (std::int64_t i = 0; i < n; ++i) out.bias[i] = bias[selected[static_cast<std::size_t>(i)]];
  return out;
}

template <class T>
LinearInput<T>::LinearInput(CpuContext& device, PackedParameters<T>* packed, Tensor<T> x)
    : device_(device), packed_(packed), form_(form_of<T>(device)), x_(x) {
  if constexpr (std::is_same_v<T, float>) {
    if (form_ == PackedForm::int8)
      int8_ = quantize_activations(device.arena, x.rows(), x.columns(), x.data(), x.columns());
    if (form_ == PackedForm::bfloat16)
      bfloat16_ = bfloat16_left_operand(device.arena, x.rows(), x.columns(), {x.data(), x.columns()});
  }
  if (form_ == PackedForm::rounded) {
    x_ = device.arena.template tensor<T>(x.shape());
    round_all(static_cast<const T*>(x.data()), x.size(), x_.data());
  }
}

template <class T>
PackedWeight<T> LinearInput<T>::packed_weight(Tensor<T> weight, Tensor<T> bias) const {
  const std::int64_t n = weight.dim(0), k = weight.dim(1), size = packed_size<T>(form_, n, k);
  const auto pack = [&](const UnpackedWeight<T>& rows, T* memory) {
    for_rows(device_.team, n, k, [&](std::int64_t begin, std::int64_t end) {
      thread_local std::vector<T> scratch;
      pack_rows(form_, n, k, begin, end, rows.get(begin, end, scratch), memory);
    });
  };
  if (packed_) return {packed_->get(weight, form_, size, pack), bias, n, k};
  T* memory = device_.arena.template tensor<T>({size}).data();
  pack(UnpackedWeight<T>(weight), memory);
  return {memory, bias, n, k};
}

template <class T>
template <class Product>
void LinearInput<T>::for_columns(std::int64_t n, std::int64_t k, Product product) const {
  ThreadTeam* const team = device_.team;
  if (!team) return product(0, n);
  // A piece is a range of columns of y that one thread computes. A thread takes several pieces of a large product, so
  // that no thread waits long for the last piece of another. Reading the weight's elements for a piece of the least
  // size takes about a microsecond; with smaller pieces, handing the work to another thread would cost more than the
  // thread saves.
  constexpr std::int64_t kLeastElements = 1 << 14, kPiecesOfThread = 8;
  const std::int64_t least = kLeastElements / std::max<std::int64_t>(1, k),
                     share = n / (kPiecesOfThread * team->size());
  const std::int64_t columns =
      (std::max<std::int64_t>({1, least, share}) + kColumnBlock - 1) / kColumnBlock * kColumnBlock;
  const std::int64_t pieces = (n + columns - 1) / columns;
  team->run(static_cast<int>(pieces), [&](int i) { product(i * columns, std::min(n, (i + 1) * columns)); });
}

template <class T>
void LinearInput<T>::multiply(const PackedWeight<T>& weight, std::int64_t begin, std::int64_t end, Tensor<T> y) const {
  const std::int64_t n = end - begin, k = weight.k;
  if constexpr (std::is_same_v<T, float>) {
    if (form_ == PackedForm::bfloat16) {
      const auto* tiles = reinterpret_cast<const std::uint32_t*>(weight.packed) + bfloat16_tile_words(k, begin);
      gemm_bfloat16(1, bfloat16_, {tiles, k, n}, 0, y.data(), n);
      return add_bias_activate(y, weight.bias ? Tensor<T>(weight.bias.data() + begin, {n}) : Tensor<T>(),
                               Activation::none);
    }
  }
  for_columns(n, k, [&](std::int64_t from, std::int64_t to) {
    const std::int64_t first = begin + from;
    if constexpr (std::is_same_v<T, float>)
      if (form_ == PackedForm::int8)
        return gemm_int8(int8_, weight.n, first, begin + to, {reinterpret_cast<const std::byte*>(weight.packed)},
                         weight.bias.data(), y.data() + from, n);
    gemm_rows(x_.rows(), to - from, k, x_.data(), k, Panels<T>{weight.packed + first * k},
              weight.bias ? weight.bias.data() + first : nullptr, y.data() + from, n);
  });
}

template <class T>
void LinearInput<T>::multiply(Tensor<T> weight, Tensor<T> bias, Activation activation, Tensor<T> y) const {
  const ArenaScope scope(device_.arena);
  multiply(packed_weight(weight, bias), y);
  add_bias_activate(y, Tensor<T>(), activation);
}

template <class T>
void linear_inference(CpuContext& device, PackedParameters<T>* packed, MaybeRounded<T> x, Tensor<T> weight,
                      Tensor<T> bias, Activation activation, MaybeRounded<T> y) {
  const ArenaScope scope(device.arena);
  LinearInput<T>(device, packed, x.full).multiply(weight, bias, activation, y.full);
}

template void linear_inference(CpuContext&, PackedParameters<float>*, MaybeRounded<float>, Tensor<float>, Tensor<float>,
                               Activation, MaybeRounded<float>);
template void linear_inference(CpuContext&, PackedParameters<double>*, MaybeRounded<double>, Tensor<double>,
                               Tensor<double>, Activation, MaybeRounded<double>);
template struct PackedWeight<float>;
template struct PackedWeight<double>;
template class LinearInput<float>;
template class LinearInput<double>;

}  // namespace heed
