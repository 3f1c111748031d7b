#include "heed/ops/alignment_loss.h"

#include <cmath>

#include "heed/base/error.h"
#include "heed/ops/attention.h"
#include "op_test.h"
#include "training.h"

using namespace heed;

namespace {

using Offsets = std::vector<std::int32_t>;

// Two sequences with sources of three and two tokens and targets of two tokens each, a sequence without targets between
// them. In the first, query 0 has two links and query 1 none.
const Offsets kQueries{0, 2, 2, 4}, kKeys{0, 3, 4, 6};
const std::vector<AttentionLink> kLinks{{0, 0, 2, 0.5F}, {0, 0, 0, 0.5F}, {2, 0, 1, 1}, {2, 1, 1, 1}};

}  // namespace

TEST_CASE("alignment_loss: gradients through an attention") {
  require_gradients({{4, 6}, {6, 6}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
    const auto weights = attention_weights<double>(graph, {kQueries}, {kKeys}, 2);
    attention<double>(graph, {in[0]}, {in[1]}, {in[1]}, 6, {kQueries}, {kKeys}, {2}, weights);
    return alignment_loss<double>(graph, weights, 2, {kQueries}, {kKeys}, kLinks, 0.7);
  });
}

TEST_CASE("alignment_loss: the cross-entropy of the mean over the heads, divided among the links of a query") {
  Training<double> t;
  const auto weights = attention_weights<double>(t.graph, {kQueries}, {kKeys}, 2);
  const double numbers[20] = {0.1, 0.2, 0.7,  1,    0, 0, 0.3, 0.4, 0.3, 0, 0, 1,  // the first sequence, by head
                              0.5, 0.5, 0.25, 0.75, 1, 0, 0,   1};                 // the third
  std::copy_n(numbers, 20, weights.value.data());
  AlignmentSums sums;
  const auto loss = alignment_loss<double>(t.graph, weights, 2, {kQueries}, {kKeys}, kLinks, 0.25, &sums);
  const double expected = -(0.5 * std::log(0.5) + 0.5 * std::log(0.2) + std::log(0.25) + std::log(0.875));
  CHECK(sums.loss == doctest::Approx(expected).epsilon(1e-5));  // the formula adds 1e-6 to each mean
  CHECK(sums.queries == doctest::Approx(3));
  CHECK(loss.value[0] == doctest::Approx(0.25 * sums.loss));
}

TEST_CASE("alignment_loss: a weight of 0 has a finite loss and gradient; a link outside its sequence is an error") {
  Training<float> t;
  const auto weights = attention_weights<float>(t.graph, {kQueries}, {kKeys}, 1);
  std::fill_n(weights.value.data(), weights.value.size(), 0.0F);
  const auto loss = alignment_loss<float>(t.graph, weights, 1, {kQueries}, {kKeys}, kLinks, 1);
  CHECK(loss.value[0] == doctest::Approx(-3 * std::log(1e-6)));
  const auto complaint = [&](AttentionLink link) {
    try {
      alignment_loss<float>(t.graph, weights, 1, {kQueries}, {kKeys}, std::span(&link, 1), 1);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK(complaint({0, 0, 3, 1}) == "internal: alignment_loss: link 0 -> 3 of sequence 0 is not within the sequences");
  CHECK(complaint({1, 0, 0, 1}) == "internal: alignment_loss: link 0 -> 0 of sequence 1 is not within the sequences");
}
