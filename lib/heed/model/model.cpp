#include "heed/model/model.h"

namespace heed {

template <class T>
Variable<T> Model<T>::loss(Graph<T>& graph, const Batch& batch, const CrossEntropyOptions& options,
                           CrossEntropySums* sums) const {
  return projection_cross_entropy(graph, hidden(graph, batch), output_weight(graph), output_bias(graph),
                                  batch.target_out, options, sums);
}

template <class T>
std::vector<PositionTable> Model<T>::position_tables(Graph<T>&, std::int64_t) const {
  return {};
}

template class Model<float>;
template class Model<double>;

}  // namespace heed
