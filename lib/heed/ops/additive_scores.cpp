#include "heed/ops/additive_scores.h"

#include "heed/ops/check.h"

namespace heed {

template <class T>
Variable<T> additive_scores(Graph<T>& graph, const Variable<T>& query, const Variable<T>& key,
                            const Variable<T>& scorer) {
  const Shape &q = query.shape(), &k = key.shape();
  if (q.rank() != 3) throw Error("internal: additive_scores: query has shape " + q.text() + ", expected [B, T, D]");
  check_shape("additive_scores", "key", k, {q[0], k.rank() == 3 ? k[1] : q[1], q[2]});
  check_shape("additive_scores", "scorer", scorer.shape(), {q[2]});
  const Variable<T> y = graph.result({q[0], q[1], k[1]});
  graph.run([&](auto& device) { additive_scores_forward(device, query.value, key.value, scorer.value, y.value); });
  graph.record([query, key, scorer, y](auto& device) {
    additive_scores_backward(device, query.value, key.value, scorer.value, y.gradient.sum(), query.gradient.sum(),
                             key.gradient.sum(), scorer.gradient.sum());
  });
  return y;
}

template Variable<float> additive_scores(Graph<float>&, const Variable<float>&, const Variable<float>&,
                                         const Variable<float>&);
template Variable<double> additive_scores(Graph<double>&, const Variable<double>&, const Variable<double>&,
                                          const Variable<double>&);

}  // namespace heed
