#include "heed/model/config_fields.h"

#include "heed/base/error.h"

namespace heed {

void check_tied_embeddings(TiedEmbeddings tied, const VocabularySizes& sizes) {
  if (tied == TiedEmbeddings::all && sizes.source_vocabulary != sizes.target_vocabulary)
    throw UsageError("--tied-embeddings-all needs one vocabulary for both sides, but the source has " +
                     std::to_string(sizes.source_vocabulary) + " pieces and the target " +
                     std::to_string(sizes.target_vocabulary) + " (give -v one file)");
}

}  // namespace heed
