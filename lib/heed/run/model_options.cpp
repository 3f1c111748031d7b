#include "heed/run/model_options.h"

namespace heed {

ModelConfig ModelOptions::resolve(std::int64_t source_vocabulary, std::int64_t target_vocabulary) const {
  ModelConfig out = config;
  std::visit(
      [&](auto& chosen) {
        chosen.source_vocabulary = source_vocabulary;
        chosen.target_vocabulary = target_vocabulary;
        if constexpr (requires { chosen.tied_embeddings; })
          if (tied_embeddings_all) chosen.tied_embeddings = TiedEmbeddings::all;
      },
      out);
  validate(out);
  return out;
}

}  // namespace heed
