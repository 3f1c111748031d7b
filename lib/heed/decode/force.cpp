#include "heed/decode/force.h"

namespace heed {

std::vector<std::vector<float>> force_decode(const Model<float>& model, ParameterValues<float>& parameters,
                                             Precision precision, const Batch& batch, PackedParameters<float>* packed) {
  Arena arena;
  CpuContext device{arena, precision};
  Graph<float> graph(device, parameters, packed);
  const Variable<float> hidden = model.hidden(graph, batch);
  std::vector<float> flat(batch.target_out.size());
  token_log_probabilities(device, hidden.value, model.output_weight(graph).value, model.output_bias(graph).value,
                          batch.target_out, flat.data());
  std::vector<std::vector<float>> out;
  const PackedOffsets target = batch.target_in.packed();
  for (int b = 0; b < target.sequences(); ++b)
    out.emplace_back(flat.begin() + target.begin(b), flat.begin() + target.begin(b + 1));
  return out;
}

void trace_attention(const Model<float>& model, ParameterValues<float>& parameters, Precision precision,
                     const Batch& batch, Trace<float>& trace, PackedParameters<float>* packed) {
  Arena arena;
  CpuContext device{arena, precision};
  Graph<float> graph(device, parameters, packed);
  model.hidden(graph, batch, &trace);
}

}  // namespace heed
