#include "heed/ops/recurrent_cell.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/recurrent_cell_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/gates-inl.h"
#include "heed/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Returns x[i] where the array of indices x is not null, otherwise i.
inline std::int64_t index_of(const std::int32_t* x, std::int64_t i) {
  return x ? x[i] : i;
}

/// Computes a step of a cell (see cell_forward()). C is the cell. The loops over rows and columns are the same for both
/// cells; only the formulas differ.
template <RecurrentCell C, class T>
void forward_rows(T* output, const CellForward<T>& s) {
  const std::int64_t n = s.width;
  for (std::int64_t r = 0; r < s.rows; ++r) {
    const std::int64_t token = index_of(s.tokens, r);
    const T* const input = s.input + token * s.gates_stride;
    const T* const context = s.context ? s.context + index_of(s.sequences, r) * s.gates_stride : nullptr;
    const T* const product = s.product + r * s.product_stride;
    const T* const hidden = s.hidden + r * n;
    T* const saved = s.saved ? s.saved + r * kSavedGates * n : nullptr;
    T* const out = output + token * s.output_stride;
    T* const next = r < s.next_rows ? s.next + r * n : nullptr;
    for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
      const auto from_input = [&](std::int64_t gate) HWY_ATTR {
        const auto u = load(d, input + gate * n + i);
        return context ? hn::Add(u, load(d, context + gate * n + i)) : u;
      };
      const auto from_hidden = [&](std::int64_t gate) HWY_ATTR {
        const auto w = load(d, product + gate * n + i);
        return s.bias ? hn::Add(w, load(d, s.bias + gate * n + i)) : w;
      };
      const auto both = [&](std::int64_t gate) HWY_ATTR { return hn::Add(from_input(gate), from_hidden(gate)); };
      const auto save = [&](std::int64_t block, auto v) HWY_ATTR {
        if (saved) store(v, d, saved + block * n + i);
      };
      auto h = hn::Zero(d);
      if constexpr (C == RecurrentCell::gru) {
        const auto reset = sigmoid(d, both(0)), update = sigmoid(d, both(1)), from = from_hidden(2);
        const auto candidate = tanh_of(d, hn::MulAdd(reset, from, from_input(2)));
        h = hn::MulAdd(update, hn::Sub(load(d, hidden + i), candidate), candidate);
        save(0, reset);
        save(1, update);
        save(2, from);
        save(3, candidate);
      } else {
        const auto in = sigmoid(d, both(0)), forget = sigmoid(d, both(1));
        const auto candidate = tanh_of(d, both(2)), exit = sigmoid(d, both(3));
        const auto c = hn::MulAdd(forget, load(d, s.cell_before + r * n + i), hn::Mul(in, candidate));
        h = hn::Mul(exit, tanh_of(d, c));
        store(c, d, s.cell_after + r * n + i);
        save(0, in);
        save(1, forget);
        save(2, candidate);
        save(3, exit);
      }
      store(h, d, out + i);
      if (next) store(h, d, next + i);
    });
  }
}

/// Computes the gradients of a step of a cell (see cell_backward()). C is the cell.
template <RecurrentCell C, class T>
void backward_rows(T* product_gradient, const CellBackward<T>& s) {
  const std::int64_t n = s.width;
  for (std::int64_t r = 0; r < s.rows; ++r) {
    const std::int64_t token = index_of(s.tokens, r);
    const T* const dout = s.output_gradient ? s.output_gradient + token * s.output_stride : nullptr;
    const T* const dnext = r < s.next_rows ? s.next_gradient + r * n : nullptr;
    T* const dinput = s.input_gradient ? s.input_gradient + token * s.gates_stride : nullptr;
    T* const dcontext = s.context_gradient ? s.context_gradient + index_of(s.sequences, r) * s.gates_stride : nullptr;
    const T* const saved = s.saved + r * kSavedGates * n;
    T* const dproduct = product_gradient + r * s.product_stride;
    T* const dhidden = s.hidden_gradient + r * n;
    for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
      const auto one = hn::Set(d, T(1));
      const auto gate = [&](std::int64_t block) HWY_ATTR { return load(d, saved + block * n + i); };
      // Stores the gradients of column i of a gate: du in the gradients of input and context, dw in those of the hidden
      // gates and of the bias.
      const auto emit = [&](std::int64_t block, auto du, auto dw) HWY_ATTR {
        const std::int64_t at = block * n + i;
        if (dinput) store(s.adds_to_input ? hn::Add(load(d, dinput + at), du) : du, d, dinput + at);
        if (dcontext) store(hn::Add(load(d, dcontext + at), du), d, dcontext + at);
        if (s.bias_gradient) store(hn::Add(load(d, s.bias_gradient + at), dw), d, s.bias_gradient + at);
        store(s.adds_to_product ? hn::Add(load(d, dproduct + at), dw) : dw, d, dproduct + at);
      };
      // Returns v g (1 - g), the gradient before a sigmoid with the result g.
      const auto through_sigmoid = [&](auto v, auto g) HWY_ATTR { return hn::Mul(v, hn::NegMulAdd(g, g, g)); };
      // Returns v (1 - g^2), the gradient before a tanh with the result g.
      const auto through_tanh = [&](auto v, auto g) HWY_ATTR { return hn::Mul(v, hn::NegMulAdd(g, g, one)); };
      auto dh = load(d, dhidden + i);
      if (dout) dh = hn::Add(dh, load(d, dout + i));
      if (dnext) dh = hn::Add(dh, load(d, dnext + i));
      if constexpr (C == RecurrentCell::gru) {
        const auto reset = gate(0), update = gate(1), from = gate(2), candidate = gate(3);
        const auto dn = through_tanh(hn::Mul(dh, hn::Sub(one, update)), candidate);
        const auto dz = through_sigmoid(hn::Mul(dh, hn::Sub(load(d, s.hidden + r * n + i), candidate)), update);
        const auto dr = through_sigmoid(hn::Mul(dn, from), reset);
        emit(0, dr, dr);
        emit(1, dz, dz);
        emit(2, dn, hn::Mul(dn, reset));
        store(hn::Mul(dh, update), d, dhidden + i);
      } else {
        const auto in = gate(0), forget = gate(1), candidate = gate(2), exit = gate(3);
        const auto squashed = tanh_of(d, load(d, s.cell_after + r * n + i));
        const auto dc = hn::Add(load(d, s.cell_gradient + r * n + i), through_tanh(hn::Mul(dh, exit), squashed));
        const auto di = through_sigmoid(hn::Mul(dc, candidate), in);
        const auto df = through_sigmoid(hn::Mul(dc, load(d, s.cell_before + r * n + i)), forget);
        const auto dg = through_tanh(hn::Mul(dc, in), candidate);
        const auto dexit = through_sigmoid(hn::Mul(dh, squashed), exit);
        emit(0, di, di);
        emit(1, df, df);
        emit(2, dg, dg);
        emit(3, dexit, dexit);
        store(hn::Mul(dc, forget), d, s.cell_gradient + r * n + i);
      }
    });
  }
}

/// Computes a step of either cell.
template <class T>
void cell_forward_kernel(T* output, const CellForward<T>& s) {
  s.cell == RecurrentCell::gru ? forward_rows<RecurrentCell::gru>(output, s)
                               : forward_rows<RecurrentCell::lstm>(output, s);
}
/// Computes the gradients of a step of either cell.
template <class T>
void cell_backward_kernel(T* product_gradient, const CellBackward<T>& s) {
  s.cell == RecurrentCell::gru ? backward_rows<RecurrentCell::gru>(product_gradient, s)
                               : backward_rows<RecurrentCell::lstm>(product_gradient, s);
}

HEED_INSTANTIATE_SIMD(cell_forward_kernel, (float* y, const CellForward<float>& s),
                      (double* y, const CellForward<double>& s), (y, s))
HEED_INSTANTIATE_SIMD(cell_backward_kernel, (float* y, const CellBackward<float>& s),
                      (double* y, const CellBackward<double>& s), (y, s))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(cell_forward_kernel)
HEED_EXPORT_SIMD(cell_backward_kernel)

template <class T>
void cell_forward(CpuContext&, const CellForward<T>& step) {
  simd::cell_forward_kernel(step.output, step);
}

template <class T>
void cell_backward(CpuContext&, const CellBackward<T>& step) {
  simd::cell_backward_kernel(step.product_gradient, step);
}

template void cell_forward(CpuContext&, const CellForward<float>&);
template void cell_forward(CpuContext&, const CellForward<double>&);
template void cell_backward(CpuContext&, const CellBackward<float>&);
template void cell_backward(CpuContext&, const CellBackward<double>&);

}  // namespace heed
#endif  // HWY_ONCE
