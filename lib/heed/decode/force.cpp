#include "heed/decode/force.h"

#include "heed/text/strings/vocabulary.h"

namespace heed {

std::vector<std::vector<float>> force_decode(const Model<float>& model, ParameterValues<float>& parameters,
                                             Precision precision, const Batch& batch, Trace* trace,
                                             PackedParameters<float>* packed) {
  Arena arena;
  CpuContext device{arena, precision};
  Graph<float> graph(device, parameters, packed);
  const Variable<float> hidden = model.hidden(graph, batch, trace);
  std::vector<float> flat(batch.target_out.size());
  token_log_probabilities(device, hidden.value, model.output_weight(graph).value, model.output_bias(graph).value,
                          batch.target_out, flat.data());
  std::vector<std::vector<float>> out;
  const PackedOffsets target = batch.target_in.packed();
  for (int b = 0; b < target.sequences(); ++b)
    out.emplace_back(flat.begin() + target.begin(b), flat.begin() + target.begin(b + 1));
  return out;
}

void append_pair(Batch& batch, std::span<const std::int32_t> source, std::span<const std::int32_t> target) {
  std::vector<std::int32_t> ids(source.begin(), source.end());
  ids.push_back(kEndId);
  batch.source.append(ids);
  ids.assign(1, kStartId);
  ids.insert(ids.end(), target.begin(), target.end());
  batch.target_in.append(ids);
  batch.target_out.insert(batch.target_out.end(), target.begin(), target.end());
  batch.target_out.push_back(kEndId);
}

}  // namespace heed
