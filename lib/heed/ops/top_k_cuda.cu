// The idea: a block finds the k largest numbers of a row, nearly always with one pass over the row. Each thread keeps
// the best of its numbers, and each of 32 groups of threads the best of its threads. If k numbers are wanted, the
// number that is number k among the 32 best ones, the threshold, is not above number k of the row. The numbers that do
// not come after the threshold are thus enough. They are few, about 14 for k = 11, and only the threads whose best
// number does not come after the threshold have some. These threads' numbers are read again and collected in a list, in
// any order, and the place of each in the result is the count of those that come before. If many numbers are wanted,
// the next numbers are found in another round. What a block computes depends on its own row alone.
//
// An example, with 3 groups of 2 numbers (5 4) (1 0) (3 2) and k = 2: the best of the groups are 5, 1 and 3; the
// threshold is 3; the list gets 5, 4 and 3, of which 5 and 4 have the places 0 and 1.
#include "heed/ops/top_k.h"

#include <cmath>
#include <limits>

#include "heed/tensor/cuda_language.h"
#include "heed/tensor/cuda_packs.h"

namespace heed {
namespace {

constexpr unsigned kMostThreads = 512;  // of a block
constexpr int kGroups = 32;             // the most numbers that a round can find
constexpr int kListed = 256;            // the most numbers that the list can hold
constexpr unsigned kAtOnce = 4;         // the packs that a thread reads at once

/// The numbers that a thread reads by one instruction.
template <class T>
constexpr int kPackSize = 16 / static_cast<int>(sizeof(T));
template <class T>
using RowPack = Pack<T, kPackSize<T>>;

/// Returns whether the number a is above b. NaN is below all other numbers.
template <class T>
__device__ bool above(T a, T b) {
  return a > b || (b != b && a == a);
}

/// A number of a row, and its index.
template <class T>
struct Candidate {
  T value;
  std::int32_t index;
};

/// The index of a candidate that does not exist: above that of every number.
constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();

template <class T>
__device__ Candidate<T> no_candidate() {
  return {static_cast<T>(NAN), kNone};
}

/// Returns whether a comes before b in the order of top_k(). A candidate that does not exist comes last.
template <class T>
__device__ bool comes_before(Candidate<T> a, Candidate<T> b) {
  return above(a.value, b.value) || (!above(b.value, a.value) && a.index < b.index);
}

template <class T>
__device__ Candidate<T> better(Candidate<T> a, Candidate<T> b) {
  return comes_before(b, a) ? b : a;
}

/// What the threads of a block share.
template <class T>
struct SharedByBlock {
  Candidate<T> groups[kGroups];  ///< the best candidate of each group
  Candidate<T> list[kListed];    ///< the candidates that do not come after the threshold
  Candidate<T> threshold, last;
  T scratch[kMostThreads / 32];
  int wanted, listed;
};

/// Returns a pack of the row from number `begin` on; past the end of the row, minus infinity. With `by_packs`, the row
/// begins where a pack may begin.
template <class T>
__device__ __forceinline__ RowPack<T> pack_of_row(const T* row, unsigned columns, unsigned begin, bool by_packs) {
  constexpr unsigned kSize = kPackSize<T>;
  if (by_packs && begin + kSize <= columns) return load_pack<kSize>(row + begin);
  RowPack<T> out;
  HEED_UNROLL
  for (unsigned i = 0; i < kSize; ++i) out[i] = begin + i < columns ? row[begin + i] : static_cast<T>(-INFINITY);
  return out;
}

/// A sum of exponentials, sum exp(x - largest), of which no term overflows. At first it has no terms.
template <class T>
struct ExponentialSum {
  T largest = static_cast<T>(-INFINITY), sum = 0;

  /// Adds the exponentials of the numbers of some packs.
  __device__ void add(const RowPack<T> (&x)[kAtOnce]) {
    T now = largest;
    HEED_UNROLL
    for (unsigned j = 0; j < kAtOnce; ++j) HEED_UNROLL
    for (int i = 0; i < kPackSize<T>; ++i) now = x[j][i] > now ? x[j][i] : now;
    const T subtracted = now > static_cast<T>(-INFINITY) ? now : T(0);
    sum *= std::exp(largest - subtracted);
    HEED_UNROLL
    for (unsigned j = 0; j < kAtOnce; ++j) HEED_UNROLL
    for (int i = 0; i < kPackSize<T>; ++i) sum += std::exp(x[j][i] - subtracted);
    largest = now;
  }
};

/// Returns the best of this thread's candidates that come after `last`, or of all where `last` does not exist. With
/// `sum`, adds the exponentials of this thread's numbers to it. Thread number t has the packs t, t + threads, ... of
/// the row, whatever the row's address is.
template <class T>
__device__ Candidate<T> best_of_thread(const T* row, unsigned columns, bool by_packs, const Candidate<T>* last,
                                       ExponentialSum<T>* sum) {
  constexpr unsigned kSize = kPackSize<T>;
  const unsigned step = blockDim.x * kSize;
  Candidate<T> best = no_candidate<T>();
  for (unsigned first = threadIdx.x * kSize; first < columns; first += kAtOnce * step) {
    RowPack<T> x[kAtOnce];
    HEED_UNROLL
    for (unsigned j = 0; j < kAtOnce; ++j) x[j] = pack_of_row(row, columns, first + j * step, by_packs);
    HEED_UNROLL
    for (unsigned j = 0; j < kAtOnce; ++j) {
      const unsigned begin = first + j * step;
      HEED_UNROLL
      for (unsigned i = 0; i < kSize; ++i) {
        // A later number that equals the best one comes after it.
        const Candidate<T> candidate{x[j][i], static_cast<std::int32_t>(begin + i)};
        if (begin + i < columns && (best.index == kNone || above(candidate.value, best.value)) &&
            (!last || comes_before(*last, candidate)))
          best = candidate;
      }
    }
    if (sum) sum->add(x);
  }
  return best;
}

/// Sets `wanted`, the number of candidates that this round finds, at most `most`, and `threshold`.
template <class T>
__device__ void choose_threshold(SharedByBlock<T>& shared, Candidate<T> mine, int most) {
  const int lanes = static_cast<int>(blockDim.x) / kGroups;  // of a group
  Candidate<T> of_group = mine;
  for (int bits = lanes / 2; bits > 0; bits /= 2)
    of_group = better(of_group, {__shfl_xor_sync(0xFFFFFFFF, of_group.value, bits),
                                 __shfl_xor_sync(0xFFFFFFFF, of_group.index, bits)});
  if (static_cast<int>(threadIdx.x) % lanes == 0) shared.groups[static_cast<int>(threadIdx.x) / lanes] = of_group;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  const Candidate<T> own = shared.groups[lane_of_warp()];
  int before = 0, exist = 0;
  for (const Candidate<T>& other : shared.groups) {
    before += comes_before(other, own);
    exist += other.index != kNone;
  }
  const int wanted = most < exist ? most : exist;
  if (own.index == kNone || before != wanted - 1) return;
  shared.threshold = own;
  shared.wanted = wanted;
}

/// Lists the candidates that come after `last` but not after the threshold. A list that is too short loses some, and
/// SharedByBlock::listed counts them all. All lanes of a warp read the numbers of each of its threads that has some.
template <class T>
__device__ void list_candidates(SharedByBlock<T>& shared, const T* row, unsigned columns, const Candidate<T>* last,
                                Candidate<T> mine) {
  constexpr unsigned kSize = kPackSize<T>;
  const unsigned lane = threadIdx.x % 32;
  const Candidate<T> threshold = shared.threshold;
  unsigned left = __ballot_sync(0xFFFFFFFF, mine.index != kNone && !comes_before(threshold, mine));
  for (unsigned thread = threadIdx.x - lane; left != 0; ++thread, left >>= 1) {
    if ((left & 1) == 0) continue;
    for (unsigned i = lane;; i += 32) {
      const unsigned index = (thread + i / kSize * blockDim.x) * kSize + i % kSize;
      if (index - i % kSize >= columns) break;
      if (index >= columns) continue;
      const Candidate<T> candidate{row[index], static_cast<std::int32_t>(index)};
      if (comes_before(threshold, candidate) || (last && !comes_before(*last, candidate))) continue;
      const int place = atomicAdd(&shared.listed, 1);
      if (place < kListed) shared.list[place] = candidate;
    }
  }
}

/// Finds the k largest numbers of the row of this block. With `log_softmax`, the logarithm of the sum of the row's
/// exponentials is subtracted from the values.
template <class T>
__global__ void __launch_bounds__(kMostThreads, sizeof(T) == 4 ? 3 : 1)
    top_k_kernel(const T* x, unsigned columns, bool by_packs, std::int64_t k, bool log_softmax, T* values,
                 std::int32_t* indices) {
  SharedByBlock<T>& shared = *shared_memory<SharedByBlock<T>>();
  const T* const row = x + std::int64_t{blockIdx.x} * columns;
  values += blockIdx.x * k;
  indices += blockIdx.x * k;
  ExponentialSum<T> exponentials;
  Candidate<T> mine = no_candidate<T>();
  T normaliser = 0;
  int most = kGroups;
  for (std::int64_t found = 0; found < k;) {
    const Candidate<T> after = shared.last, *const last = found > 0 ? &after : nullptr;
    if (most == kGroups)
      mine = best_of_thread(row, columns, by_packs, last, log_softmax && found == 0 ? &exponentials : nullptr);
    if (threadIdx.x == 0) shared.listed = 0;
    choose_threshold(shared, mine, k - found < most ? static_cast<int>(k - found) : most);
    __syncthreads();
    list_candidates(shared, row, columns, last, mine);
    __syncthreads();
    const int wanted = shared.wanted, listed = shared.listed;
    if (listed > kListed) {  // With one number wanted, the threshold is that number.
      most = wanted / 2;
      __syncthreads();
      continue;
    }
    for (int i = static_cast<int>(threadIdx.x); i < listed; i += static_cast<int>(blockDim.x)) {
      const Candidate<T> candidate = shared.list[i];
      int place = 0;
      for (int j = 0; j < listed; ++j) place += comes_before(shared.list[j], candidate);
      if (place >= wanted) continue;
      values[found + place] = candidate.value;
      indices[found + place] = candidate.index;
      if (place == wanted - 1) shared.last = candidate;
      if (found + place == 0) shared.scratch[0] = candidate.value;
    }
    __syncthreads();
    if (log_softmax && found == 0) {
      const T largest = shared.scratch[0];
      __syncthreads();
      normaliser =
          largest + std::log(block_sum(exponentials.sum * std::exp(exponentials.largest - largest), shared.scratch));
    }
    found += wanted;
    most = kGroups;
  }
  if (log_softmax)
    for (std::int64_t i = threadIdx.x; i < k; i += blockDim.x) values[i] -= normaliser;
}

template <class T>
__global__ void mask_columns_kernel(T* x, std::int64_t columns, ColumnSets sets, const std::int32_t* set_of_row) {
  const std::uint32_t* const bits = sets.bits + set_of_row[blockIdx.x] * sets.stride;
  T* const row = x + blockIdx.x * columns;
  for (std::int64_t c = threadIdx.x; c < columns; c += blockDim.x)
    if ((bits[c / 32] >> (c % 32) & 1) == 0) row[c] = static_cast<T>(-INFINITY);
}

template <class T>
void find_largest(CudaContext& device, Tensor<T> x, std::int64_t k, bool log_softmax, T* values,
                  std::int32_t* indices) {
  const unsigned threads = x.columns() <= 256 ? 32 : x.columns() <= 4096 ? 256 : kMostThreads;
  launch(device, {static_cast<unsigned>(x.rows()), threads, sizeof(SharedByBlock<T>)}, top_k_kernel<T>, x.data(),
         static_cast<unsigned>(x.columns()), takes_packs<kPackSize<T>>(x.columns(), x.data()), k, log_softmax, values,
         indices);
}

}  // namespace

template <class T>
void top_k(CudaContext& device, Tensor<T> scores, std::int64_t k, T* values, std::int32_t* indices) {
  find_largest(device, scores, k, false, values, indices);
}

template <class T>
void log_softmax_top_k(CudaContext& device, Tensor<T> logits, std::int64_t k, T* values, std::int32_t* indices) {
  find_largest(device, logits, k, true, values, indices);
}

template <class T>
void mask_columns(CudaContext& device, Tensor<T> x, const ColumnSets& sets, std::span<const std::int32_t> set_of_row) {
  launch(device, shape_for_rows<T>(x.rows(), x.columns()), mask_columns_kernel<T>, x.data(), x.columns(), sets,
         set_of_row.data());
}

#define HEED_INSTANTIATE(T)                                                                              \
  template void mask_columns(CudaContext&, Tensor<T>, const ColumnSets&, std::span<const std::int32_t>); \
  template void top_k(CudaContext&, Tensor<T>, std::int64_t, T*, std::int32_t*);                         \
  template void log_softmax_top_k(CudaContext&, Tensor<T>, std::int64_t, T*, std::int32_t*);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
