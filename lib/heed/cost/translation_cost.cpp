#include "heed/cost/translation_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "heed/base/pages.h"
#include "heed/cost/kernel_timer.h"
#include "heed/model/decoder_cache.h"
#include "heed/ops/attention.h"
#include "heed/ops/decode_attention.h"
#include "heed/ops/embedding.h"
#include "heed/ops/gemm/gemm.h"
#include "heed/ops/linear.h"
#include "heed/ops/top_k.h"
#include "heed/text/strings/vocabulary.h"

namespace heed {
namespace {

// The number of bytes that are taken from the operating system to measure the cost of new memory pages.
constexpr std::size_t kPages = std::size_t{16} << 20;
// The greatest number of rows with which a matrix product of the encoder is measured. With more rows, the time grows
// linearly.
constexpr std::int64_t kEncodedRows = 128;

/// Returns the bytes that one element of a weight takes in inference.
double bytes_of_weight(Precision precision) {
  if (precision == Precision::int8) return 1;
  return takes_bfloat16(precision) ? 2 : 4;
}

/// The kinds of work into which the predicted time of one thread is divided.
enum Part { kEncoder, kDecoder, kOutput, kAttention, kNorms, kParts };
using Seconds = std::array<double, kParts>;

/// Measures the kernels of one model and predicts the seconds that the counted work takes.
class ModelCalibration {
 public:
  ModelCalibration(const LoadedModel& model, Precision precision, const DecodingCounts& counts, ThreadPool& pool,
                   ThreadTeam* team)
      : model_(model),
        width_(model.model.width()),
        norms_(*model.model.residual_norms()),
        counts_(counts),
        timer_(pool) {
    for (const AttentionLayers& layers : model.model.attention_layers())
      attention_layers_[static_cast<std::size_t>(layers.kind)] = layers;
    // A decoder without self-attention has no layers of AttentionKind::decoder.
    for (int i = 0; i < pool.size(); ++i)
      threads_.push_back(
          std::make_unique<Thread>(model, layers_of(AttentionKind::cross), !has_self_attention(), precision, team));
    choose_rows();
    const auto rows = as_double(counts.tokens.target);
    rows_ = std::max<std::int64_t>(1, std::llround(rows / as_double(std::max<std::int64_t>(1, steps()))));
    length_ = std::max<std::int64_t>(1, std::llround(as_double(counts.tokens.decoder_pairs) / rows));
    source_ = std::max<std::int64_t>(
        1, std::llround(as_double(counts.tokens.source) / as_double(std::max<std::int64_t>(1, counts.sentences))));
    for (const Product& product : model.model.products()) {
      const auto layer = static_cast<std::size_t>(product.layer);
      auto& layers = product.in_encoder ? encoder_ : product.side == TokenSide::source ? memory_ : decoder_;
      if (layers.size() <= layer) layers.resize(layer + 1);
      layers[layer].push_back(product);
    }
    add_encoder();
    for (const std::int64_t r : row_counts_) add_step(r);
    add_attention(pool);
    timer_.run();
    // Each thread takes the memory pages twice, and only the second time is measured, because a virtual machine may
    // first have to ask its host for memory.
    std::vector<double> seconds(static_cast<std::size_t>(pool.size()));
    pool.run([&](int index) {
      for (int i = 0; i < 2; ++i) {
        const Pages pages(kPages, PageSize::huge);
        seconds[static_cast<std::size_t>(index)] = seconds_of([&] { std::memset(pages.data(), 1, kPages); });
      }
    });
    page_seconds_ = std::accumulate(seconds.begin(), seconds.end(), 0.0) / pool.size();
  }

  /// Returns the predicted seconds of one thread for the work in `counts`.
  Seconds seconds(const DecodingCounts& counts) const {
    Seconds out{};
    const TokenCounts& t = counts.tokens;
    const double source = as_double(t.source) / as_double(encoded_rows());
    const auto size = [](const auto& layers) { return static_cast<double>(layers.size()); };
    out[kEncoder] =
        source * (size(encoder_) * timer_.seconds(encoder_kernel_) + size(memory_) * timer_.seconds(memory_kernel_));
    for (const auto& [rows, steps] : counts.steps) {
      out[kDecoder] += as_double(steps) * size(decoder_) * at_rows(decoder_kernels_, rows);
      out[kOutput] += as_double(steps) * at_rows(output_kernels_, rows);
      out[kNorms] += as_double(steps) * (norms_.target * at_rows(norm_kernels_, rows));
    }
    out[kNorms] += source * norms_.source * timer_.seconds(encoder_norm_kernel_);
    out[kNorms] += size(decoder_) * as_double(t.target) / as_double(rows_) * timer_.seconds(row_kernel_);
    const double self_kernels = has_self_attention() ? as_double(t.decoder_pairs) / as_double(rows_ * length_)
                                                     : as_double(t.target) / as_double(rows_);
    out[kAttention] = layers_of(AttentionKind::encoder).layers * as_double(t.encoder_pairs) /
                          as_double(encoder_pairs_) * timer_.seconds(encoder_attention_kernel_) +
                      decoder_layers() * self_kernels * timer_.seconds(self_kernel_) +
                      layers_of(AttentionKind::cross).layers * as_double(t.cross_pairs) / as_double(rows_ * source_) *
                          timer_.seconds(cross_kernel_);
    return out;
  }

  /// Returns how many bytes a thread takes from the operating system once: for its cache of keys and values, and for
  /// the activations of an encoder sublayer in the largest batch. Growing the cache by moving pages is not counted.
  double memory_taken(const DecodingCounts& counts) const {
    std::int64_t widest = 0;
    for (const auto& layer : encoder_)
      for (const Product& product : layer)
        widest = std::max(widest, product.outputs + (product.gated ? product.outputs / 2 : 0));
    const std::int64_t layer = width_ * 4 + widest;
    const DecoderCache<float>& cache = threads_.front()->cache;
    return sizeof(float) * as_double(counts.most_source * layer) +
           as_double(counts.most_source) * static_cast<double>(cache.bytes_of_source_token()) +
           as_double(counts.most_keys) * static_cast<double>(cache.bytes_of_position());
  }
  double seconds_of_taken_byte() const { return page_seconds_ / kPages; }

  /// Returns the number of weight elements in the decoder's layers. Each decoding step reads all of these weights.
  double step_weights() const {
    double out = 0;
    for (const auto& layer : decoder_)
      for (const Product& product : layer) out += as_double(product.size());
    return out;
  }

 private:
  struct Thread {
    Thread(const LoadedModel& model, const AttentionLayers& decoder, bool of_states, Precision precision,
           ThreadTeam* team)
        : device{arena, precision, team},
          graph(device, model.packed.view(), &model.packed),
          cache(device, decoder.layers, decoder.width, decoder.heads, of_states) {}

    Tensor<float> some(std::int64_t rows, std::int64_t columns) {
      const Tensor<float> x = arena.tensor<float>({rows, columns});
      std::fill_n(x.data(), x.size(), 0.01F);
      return x;
    }

    Arena arena;
    CpuContext device;
    Graph<float> graph;
    std::size_t turn = 0;
    DecoderCache<float> cache;
  };

  const AttentionLayers& layers_of(AttentionKind kind) const {
    return attention_layers_[static_cast<std::size_t>(kind)];
  }
  bool has_self_attention() const { return layers_of(AttentionKind::decoder).layers > 0; }
  int decoder_layers() const { return layers_of(AttentionKind::cross).layers; }
  Thread& thread(int i) { return *threads_[static_cast<std::size_t>(i)]; }
  std::int64_t steps() const {
    std::int64_t sum = 0;
    for (const auto& [rows, steps] : counts_.steps) sum += steps;
    return sum;
  }
  std::int64_t encoded_rows() const {
    return std::clamp<std::int64_t>(counts_.tokens.source / std::max<std::int64_t>(1, counts_.batches), 1,
                                    kEncodedRows);
  }

  /// Sets row_counts_ to at most three numbers of rows (hypotheses) that decoding steps had. Kernels are measured with
  /// these numbers of rows; at_rows() interpolates the time for other numbers.
  void choose_rows() {
    const double all = as_double(counts_.tokens.target);
    std::vector<std::int64_t> chosen;
    double seen = 0;
    std::array<double, 2> marks = {0.1, 0.5};
    for (const auto& [rows, steps] : counts_.steps) {
      seen += as_double(rows * steps);
      if (chosen.size() < marks.size() && seen >= marks[chosen.size()] * all) chosen.push_back(rows);
    }
    if (!counts_.steps.empty()) chosen.push_back(counts_.steps.rbegin()->first);
    for (const std::int64_t rows : chosen)
      if (row_counts_.empty() || rows > row_counts_.back()) row_counts_.push_back(rows);
  }

  /// Returns the seconds of a kernel at `rows` rows by linear interpolation between its measurements at row_counts_.
  double at_rows(const std::vector<std::size_t>& kernels, std::int64_t rows) const {
    if (kernels.size() == 1) return timer_.seconds(kernels[0]) * as_double(rows) / as_double(row_counts_[0]);
    std::size_t i = 1;
    while (i + 1 < kernels.size() && rows > row_counts_[i]) ++i;
    const double low = timer_.seconds(kernels[i - 1]), high = timer_.seconds(kernels[i]);
    const double slope = (high - low) / as_double(row_counts_[i] - row_counts_[i - 1]);
    return std::max(low + slope * as_double(rows - row_counts_[i - 1]),
                    0.5 * low * as_double(rows) / as_double(row_counts_[0]));
  }

  /// Adds a kernel. Each call of the kernel computes the matrix products of one layer, and the next call those of the
  /// next layer, so that weights come from the same level of cache or memory as in a decoding step.
  std::size_t add_products(const std::vector<std::vector<Product>>& layers, std::int64_t rows) {
    return timer_.add([this, &layers, rows](int index) {
      Thread& t = thread(index);
      t.arena.reset();
      double seconds = 0;
      for (const Product& product : layers[t.turn++ % layers.size()]) {
        const Variable<float> x = t.graph.input(t.some(rows, product.inputs));
        seconds += seconds_of([&] { product(t.graph, x); });
      }
      return seconds;
    });
  }

  std::size_t add_norm(std::int64_t rows) {
    return timer_.add([=, this](int index) {
      Thread& t = thread(index);
      t.arena.reset();
      const Variable<float> x = t.graph.input(t.some(rows, width_));
      const Variable<float> y = t.graph.input(t.some(rows, width_));
      return seconds_of([&] { norms_.norm.add(t.graph, x, y, 0); });
    });
  }

  void add_encoder() {
    encoder_kernel_ = add_products(encoder_, encoded_rows());
    memory_kernel_ = add_products(memory_, encoded_rows());
    encoder_norm_kernel_ = add_norm(encoded_rows());
  }

  void add_step(std::int64_t rows) {
    decoder_kernels_.push_back(add_products(decoder_, rows));
    norm_kernels_.push_back(add_norm(rows));
    output_kernels_.push_back(timer_.add([this, rows](int index) {
      Thread& t = thread(index);
      t.arena.reset();
      const Tensor<float> x = t.some(rows, width_), values = t.some(rows, counts_.k);
      const Tensor<std::int32_t> ids = t.arena.template tensor<std::int32_t>({rows, counts_.k});
      const Tensor<float> weight = model_.model.output_weight(t.graph).value;
      const Tensor<float> bias = model_.model.output_bias(t.graph).value;
      return seconds_of(
          [&] { output_top_k(t.graph, x, weight, bias, t.device, counts_.k, values.data(), ids.data()); });
    }));
  }

  /// Fills the key and value cache of `t` as a beam search would: the hypotheses of a sentence are in neighbouring rows
  /// and share their first positions.
  void fill(Thread& t, std::int64_t sentences) {
    const std::int64_t width = width_;
    const int layers = decoder_layers();
    std::vector<std::int32_t> offsets, parents, first_rows;
    for (std::int64_t s = 0; s <= sentences; ++s) offsets.push_back(static_cast<std::int32_t>(s * source_));
    for (std::int64_t r = 0; r < rows_; ++r) parents.push_back(static_cast<std::int32_t>(r * sentences / rows_));
    t.cache.begin({offsets});
    const Tensor<float> kv = t.some(offsets.back(), 2 * width), qkv = t.some(rows_, 3 * width);
    for (int layer = 0; layer < layers; ++layer) t.cache.set_memory(layer, kv);
    t.cache.select(parents);
    for (std::size_t r = 0; r < parents.size(); ++r)
      first_rows.push_back(r > 0 && parents[r] == parents[r - 1] ? first_rows.back() : static_cast<std::int32_t>(r));
    // The number of shared positions is chosen so that a measured step reads as many different keys as the average
    // decoding step did: keys = rows x (own positions) + sentences x (shared positions).
    const double keys =
        as_double(rows_ * length_) * as_double(counts_.decoder_keys) / as_double(counts_.tokens.decoder_pairs);
    const double own = rows_ == sentences ? as_double(length_)
                                          : (keys - as_double(sentences * length_)) / as_double(rows_ - sentences);
    for (std::int64_t i = 0; i < length_; ++i) {
      t.cache.begin_step();
      for (int layer = 0; layer < layers; ++layer) store(t, layer, qkv);
      if (as_double(i + 1) <= as_double(length_) - own) t.cache.select(first_rows);
    }
    t.arena.reset();
  }

  /// Stores, for the last position of each row of the cache, the keys and values in qkv, or states.
  void store(Thread& t, int layer, Tensor<float> qkv) {
    if (has_self_attention()) return t.cache.append(layer, qkv);
    for (const StateStep<float>& step : t.cache.states(layer)) std::fill_n(step.after, width_, 0.01F);
  }

  void add_attention(ThreadPool& pool) {
    const std::int64_t width = width_, batches = std::max<std::int64_t>(1, counts_.batches);
    const std::int64_t sentences = std::clamp<std::int64_t>(counts_.sentences / batches, 1, rows_);
    pool.run([&](int index) { fill(thread(index), sentences); });
    const std::int64_t encoded = std::max<std::int64_t>(1, encoded_rows() / source_);
    encoder_pairs_ = encoded * source_ * source_;
    for (std::int64_t s = 0; s <= encoded; ++s) encoder_offsets_.push_back(static_cast<std::int32_t>(s * source_));
    const auto layer_of = [this](Thread& t) {
      return static_cast<int>(t.turn++ % static_cast<std::size_t>(decoder_layers()));
    };
    self_kernel_ = timer_.add([=, this](int index) {
      Thread& t = thread(index);
      t.arena.reset();
      const Tensor<float> query = t.some(rows_, 3 * width), out = t.some(rows_, width);
      const int layer = layer_of(t);
      return seconds_of([&] {
        // Both kinds of states take about the same time: to read a state, and to write another.
        if (!has_self_attention()) return running_mean_step<float>(t.device, out, t.cache.states(layer), out);
        cached_attention<float>(t.device, {query.data(), 3 * width}, t.cache.keys(layer), t.cache.values(layer),
                                t.cache.slots(), t.cache.capacity(), t.cache.lengths(),
                                layers_of(AttentionKind::decoder).heads, width, out.data());
      });
    });
    // Measures the embedding of the next token of each row (hypothesis), and storing the keys and values of the rows in
    // the cache of one layer.
    row_kernel_ = timer_.add([=, this](int index) {
      Thread& t = thread(index);
      t.arena.reset();
      const Tensor<float> qkv = t.some(rows_, 3 * width), position = t.some(1, width);
      const std::vector<std::int32_t> ids(static_cast<std::size_t>(rows_), kEndId), first(ids.size(), 0);
      return seconds_of([&] {
        embedding(t.graph, ids, first, model_.model.output_weight(t.graph), t.graph.input(position), 1.0F, 0);
        if (has_self_attention()) t.cache.append(layer_of(t), qkv);
      });
    });
    cross_kernel_ = timer_.add([=, this](int index) {
      Thread& t = thread(index);
      t.arena.reset();
      const Tensor<float> query = t.some(rows_, width), out = t.some(rows_, width);
      const int layer = layer_of(t);
      return seconds_of([&] {
        memory_attention<float>(t.device, {query.data(), width}, t.cache.memory_keys(layer),
                                t.cache.memory_values(layer), t.cache.source(), t.cache.sentences(),
                                layers_of(AttentionKind::cross).heads, width, out.data());
      });
    });
    encoder_attention_kernel_ = timer_.add([=, this](int index) {
      Thread& t = thread(index);
      t.arena.reset();
      const Variable<float> qkv = t.graph.input(t.some(encoder_offsets_.back(), 3 * width));
      return seconds_of([&] {
        attention<float>(t.graph, {qkv, 0}, {qkv, width}, {qkv, 2 * width}, width, {encoder_offsets_},
                         {encoder_offsets_}, {.heads = layers_of(AttentionKind::encoder).heads});
      });
    });
  }

  LoadedModel model_;
  const std::int64_t width_;
  const ResidualNorms norms_;
  // The attention layers of each AttentionKind.
  std::array<AttentionLayers, 3> attention_layers_;
  const DecodingCounts& counts_;
  KernelTimer timer_;
  std::vector<std::unique_ptr<Thread>> threads_;
  // The matrix products of each layer: [layer][product]. memory_ holds those decoder products that compute the
  // cross-attention's keys and values.
  std::vector<std::vector<Product>> encoder_, decoder_, memory_;
  std::vector<std::int64_t> row_counts_;
  // The size of a typical decoding step: rows (hypotheses), positions per row, and source tokens per sentence.
  std::int64_t rows_ = 1, length_ = 1, source_ = 1;
  std::int64_t encoder_pairs_ = 1;
  std::vector<std::int32_t> encoder_offsets_;
  std::size_t encoder_kernel_ = 0, memory_kernel_ = 0, encoder_norm_kernel_ = 0;
  double page_seconds_ = 0;
  std::size_t row_kernel_ = 0, encoder_attention_kernel_ = 0, self_kernel_ = 0, cross_kernel_ = 0;
  // The timer's kernels of a decoding step; each vector has one kernel for each number of rows in row_counts_.
  std::vector<std::size_t> decoder_kernels_, output_kernels_, norm_kernels_;
};

}  // namespace

DecodingCounts& DecodingCounts::operator+=(const DecodingCounts& other) {
  batches += other.batches;
  sentences += other.sentences;
  tokens += other.tokens;
  for (const auto& [rows, count] : other.steps) steps[rows] += count;
  k = std::max(k, other.k);
  most_source = std::max(most_source, other.most_source);
  decoder_keys += other.decoder_keys;
  most_keys = std::max(most_keys, other.most_keys);
  return *this;
}

void CountedStepModel::start(const PackedIds& source) {
  model_->start(source);
  ++counts_.batches;
  counts_.sentences += source.sequences();
  sources_.clear();
  positions_.clear();
  last_.assign(static_cast<std::size_t>(source.sequences()), -1);
  length_ = live_ = 0;
  for (int s = 0; s < source.sequences(); ++s) {
    const std::int32_t tokens = source.packed().length(s);
    counts_.tokens.add({tokens, 0});
    sources_.push_back(tokens);
  }
  counts_.most_source = std::max<std::int64_t>(counts_.most_source, source.packed().tokens());
}

void CountedStepModel::count_step() {
  ++length_;
  const std::int64_t rows = std::ssize(sources_);
  ++counts_.steps[rows];
  counts_.tokens.target += rows;
  counts_.tokens.decoder_pairs += rows * length_;
  for (std::int32_t& last : last_) {
    positions_.push_back({last, 1});
    last = static_cast<std::int32_t>(positions_.size()) - 1;
  }
  live_ += rows;
  counts_.decoder_keys += live_;
  counts_.most_keys = std::max(counts_.most_keys, live_);
  counts_.tokens.cross_pairs += std::accumulate(sources_.begin(), sources_.end(), std::int64_t{0});
}

Tensor<float> CountedStepModel::step(std::span<const std::int32_t> tokens) {
  count_step();
  return model_->step(tokens);
}

void CountedStepModel::step(std::span<const std::int32_t> tokens, CpuContext& device, std::int64_t k,
                            float* log_probabilities, std::int32_t* ids) {
  count_step();
  counts_.k = std::max(counts_.k, k);
  model_->step(tokens, device, k, log_probabilities, ids);
}

void CountedStepModel::release(std::int32_t position) {
  while (position >= 0 && --positions_[static_cast<std::size_t>(position)].references == 0) {
    --live_;
    position = positions_[static_cast<std::size_t>(position)].before;
  }
}

void CountedStepModel::reorder(std::span<const std::int32_t> parents) {
  std::vector<std::int64_t> sources;
  std::vector<std::int32_t> last;
  for (const std::int32_t parent : parents) {
    sources.push_back(sources_[static_cast<std::size_t>(parent)]);
    last.push_back(last_[static_cast<std::size_t>(parent)]);
    if (last.back() >= 0) ++positions_[static_cast<std::size_t>(last.back())].references;
  }
  sources_ = std::move(sources);
  last_.swap(last);
  for (const std::int32_t position : last) release(position);
  model_->reorder(parents);
}

TranslationCost translation_cost(Translator& translator, const std::vector<std::vector<DecodingCounts>>& chunks,
                                 ThreadPool& pool, ThreadTeam* team) {
  TranslationCost cost;
  DecodingCounts all;
  for (const auto& chunk : chunks)
    for (const DecodingCounts& thread : chunk) all += thread;
  if (all.tokens.target == 0) return cost;
  for (std::size_t i = 0; i < translator.models(); ++i)
    if (!translator.loaded_model(i).model.residual_norms()) return cost;
  ThreadPool leader(1);
  ThreadPool& threads = team ? leader : pool;
  std::vector<std::unique_ptr<ModelCalibration>> models;
  for (std::size_t i = 0; i < translator.models(); ++i)
    models.push_back(
        std::make_unique<ModelCalibration>(translator.loaded_model(i), translator.precision(), all, threads, team));
  const auto seconds_of_counts = [&](const DecodingCounts& counts) {
    Seconds sum{};
    for (const auto& model : models) {
      const Seconds one = model->seconds(counts);
      for (std::size_t part = 0; part < kParts; ++part) sum[part] += one[part];
    }
    return sum;
  };
  for (const auto& chunk : chunks) {
    double longest = 0;
    for (const DecodingCounts& thread : chunk) {
      const Seconds parts = seconds_of_counts(thread);
      longest = std::max(longest, std::accumulate(parts.begin(), parts.end(), 0.0));
    }
    cost.seconds += longest;
  }
  std::vector<DecodingCounts> of_threads(chunks.front().size());
  for (const auto& chunk : chunks)
    for (std::size_t i = 0; i < chunk.size(); ++i) of_threads[i] += chunk[i];
  double taken = 0, taking = 0, longest_taking = 0;
  for (const DecodingCounts& thread : of_threads) {
    double seconds = 0;
    for (const auto& model : models) {
      taken += model->memory_taken(thread);
      seconds += model->memory_taken(thread) * model->seconds_of_taken_byte();
    }
    taking += seconds;
    longest_taking = std::max(longest_taking, seconds);
  }
  cost.seconds += longest_taking;
  const Seconds parts = seconds_of_counts(all);
  TokenCounts encoded, decoded;
  encoded.source = all.tokens.source;
  decoded.target = all.tokens.target;
  std::int64_t steps = 0;
  for (const auto& [rows, count] : all.steps) steps += count;
  double encoder = 0, decoder = 0, output = 0, attention = 0, weights = 0;
  for (std::size_t i = 0; i < models.size(); ++i) {
    const Model<float>& model = translator.loaded_model(i).model;
    weights += as_double(steps) * models[i]->step_weights() * bytes_of_weight(translator.precision());
    encoder += 2 * as_double(forward_work(model, encoded).layers);
    decoder += 2 * as_double(forward_work(model, decoded).layers);
    output += 2 * as_double(forward_work(model, decoded).output);
    attention += 2 * as_double(forward_work(model, all.tokens).attention);
  }
  cost.parts = {
      {"encoder's products", parts[kEncoder], encoder},    {"decoder's products", parts[kDecoder], decoder, weights},
      {"output layer, likeliest", parts[kOutput], output}, {"attention", parts[kAttention], attention},
      {"norms, embeddings, cache", parts[kNorms]},         {"memory from the system", taking, 0, taken}};
  return cost;
}

}  // namespace heed
