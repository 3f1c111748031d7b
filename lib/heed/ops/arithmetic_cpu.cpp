#include "heed/ops/arithmetic.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/arithmetic_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

// A product and a sum are one operation, MulAdd(), where both are needed: if the compiler fused them in whole vectors
// alone, an element would have other bits at the end of an array.

template <class T>
void multiply_arrays(const T* a, const T* b, T beta, T* to, std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    const auto x = load(d, a + i), y = load(d, b + i);
    store(beta != 0 ? hn::MulAdd(x, y, load(d, to + i)) : hn::Mul(x, y), d, to + i);
  });
}

template <class T>
void scale_arrays(const T* x, T factor, T beta, T* to, std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    const auto v = load(d, x + i), f = hn::Set(d, factor);
    store(beta != 0 ? hn::MulAdd(v, f, load(d, to + i)) : hn::Mul(v, f), d, to + i);
  });
}

template <class T>
void sum_array(const T* x, std::int64_t n, T* result) {
  *result = sum_over<T>(n, [&](auto d, std::int64_t i) HWY_ATTR { return hn::LoadU(d, x + i); });
}

template <class T>
void add_number(T* x, T number, std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store)
                            HWY_ATTR { store(hn::Add(load(d, x + i), hn::Set(d, number)), d, x + i); });
}

HEED_INSTANTIATE_SIMD(multiply_arrays, (const float* a, const float* b, float beta, float* to, std::int64_t n),
                      (const double* a, const double* b, double beta, double* to, std::int64_t n), (a, b, beta, to, n))
HEED_INSTANTIATE_SIMD(scale_arrays, (const float* x, float f, float beta, float* to, std::int64_t n),
                      (const double* x, double f, double beta, double* to, std::int64_t n), (x, f, beta, to, n))
HEED_INSTANTIATE_SIMD(sum_array, (const float* x, std::int64_t n, float* r),
                      (const double* x, std::int64_t n, double* r), (x, n, r))
HEED_INSTANTIATE_SIMD(add_number, (float* x, float a, std::int64_t n), (double* x, double a, std::int64_t n), (x, a, n))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(multiply_arrays)
HEED_EXPORT_SIMD(scale_arrays)
HEED_EXPORT_SIMD(sum_array)
HEED_EXPORT_SIMD(add_number)

template <class T>
void multiply_into(CpuContext&, Tensor<T> a, Tensor<T> b, T beta, Tensor<T> to) {
  simd::multiply_arrays(a.data(), b.data(), beta, to.data(), a.size());
}

template <class T>
void scale_into(CpuContext&, Tensor<T> x, T factor, T beta, Tensor<T> to) {
  simd::scale_arrays(x.data(), factor, beta, to.data(), x.size());
}

template <class T>
void scale_by_element(CpuContext& device, Tensor<T> x, const T* factor, std::type_identity_t<T> beta, Tensor<T> to) {
  scale_into(device, x, *factor, beta, to);
}

template <class T>
void sum_into(CpuContext&, Tensor<T> x, std::type_identity_t<T> beta, T* to) {
  T sum = 0;
  simd::sum_array(x.data(), x.size(), &sum);
  *to = beta != 0 ? *to + sum : sum;
}

template <class T>
void sum_backward(CpuContext&, const T* dy, Tensor<T> dx) {
  simd::add_number(dx.data(), *dy, dx.size());
}

template void multiply_into(CpuContext&, Tensor<float>, Tensor<float>, float, Tensor<float>);
template void multiply_into(CpuContext&, Tensor<double>, Tensor<double>, double, Tensor<double>);
template void scale_into(CpuContext&, Tensor<float>, float, float, Tensor<float>);
template void scale_into(CpuContext&, Tensor<double>, double, double, Tensor<double>);
template void scale_by_element(CpuContext&, Tensor<float>, const float*, float, Tensor<float>);
template void scale_by_element(CpuContext&, Tensor<double>, const double*, double, Tensor<double>);
template void sum_into(CpuContext&, Tensor<float>, float, float*);
template void sum_into(CpuContext&, Tensor<double>, double, double*);
template void sum_backward(CpuContext&, const float*, Tensor<float>);
template void sum_backward(CpuContext&, const double*, Tensor<double>);

}  // namespace heed
#endif  // HWY_ONCE
