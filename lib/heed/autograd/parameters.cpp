#include "heed/autograd/parameters.h"

#include <cmath>
#include <utility>

#include "heed/base/error.h"
#include "heed/base/random.h"

namespace heed {

ParameterId ParameterLayout::add(const std::string& name, const Shape& shape, const Initialiser& initialiser,
                                 bool follows) {
  if (find(name)) throw Error("parameter " + name + " is defined twice (give each layer a name of its own)");
  if (running_ > 0) throw Error("internal: parameter " + name + " is defined after a running average");
  // Alignment of parameters in the flat array, in elements: a float parameter begins at a multiple of 64 bytes.
  constexpr std::int64_t kAlign = 16;
  if (!follows) storage_size_ = (storage_size_ + kAlign - 1) / kAlign * kAlign;
  parameters_.push_back({name, shape, initialiser, storage_size_});
  storage_size_ += shape.size();
  return {static_cast<int>(parameters_.size()) - 1};
}

ParameterId ParameterLayout::add_running(const std::string& name, const Shape& shape, const Initialiser& initialiser) {
  const std::size_t running = std::exchange(running_, 0);
  const ParameterId id = add(name, shape, initialiser);
  running_ = running + 1;
  ++storage_size_;  // for the number of tokens in the array of the gradients
  return id;
}

ParameterId ParameterLayout::find(const std::string& name) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].name == name) return {static_cast<int>(i)};
  return {};
}

std::int64_t ParameterLayout::parameter_count() const {
  std::int64_t sum = 0;
  for (const auto& parameter : std::span(parameters_).first(parameters_.size() - running_))
    sum += parameter.shape.size();
  return sum;
}

namespace {

/// Returns the FNV-1a hash of a parameter's name. The hash selects the stream of random numbers for the parameter's
/// initial values, so that the values do not depend on the other parameters of the model.
std::uint64_t hash_name(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

template <class T>
void ParameterValues<T>::initialise(std::uint64_t seed) {
  fill_zero();
  for (int i = 0; i < static_cast<int>(layout_->all().size()); ++i) {
    const ParameterInfo& info = (*layout_)[{i}];
    const Tensor<T> value = (*this)[{i}];
    const RandomStream stream(seed, RandomUse::initialisation, hash_name(info.name));
    const double range = info.initialiser.scale * std::sqrt(6.0 / static_cast<double>(value.rows() + value.columns()));
    for (std::int64_t j = 0; j < value.size(); ++j) {
      const auto at = static_cast<std::uint64_t>(j);
      switch (info.initialiser.kind) {
        case Initialiser::Kind::zeros:
          break;
        case Initialiser::Kind::ones:
          value[j] = 1;
          break;
        case Initialiser::Kind::xavier_uniform:
          value[j] = static_cast<T>(range * (2 * stream.uniform(at) - 1));
          break;
        case Initialiser::Kind::normal:
          value[j] = static_cast<T>(info.initialiser.scale * stream.normal(at));
          break;
      }
    }
  }
}

template class ParameterValues<float>;
template class ParameterValues<double>;

}  // namespace heed
