#include "heed/model/rnn_config.h"

#include "heed/base/error.h"

namespace heed {

std::string RnnFields::describe() const {
  return std::to_string(enc_depth) + " + " + std::to_string(dec_depth) + " layers, embeddings " +
         std::to_string(dim_emb) + ", " + (encoder == RnnEncoder::bidirectional ? "bidirectional " : "") +
         std::string(enum_name(cell)) + ' ' + std::to_string(dim_rnn);
}

void RnnFields::validate() const {
  if (encoder == RnnEncoder::bidirectional && dim_rnn % 2 != 0)
    throw UsageError(
        "--dim-rnn " + std::to_string(dim_rnn) +
        " is odd: each direction of a bidirectional encoder has half of the width (--rnn-encoder forward reads "
        "one direction)");
  check_tied_embeddings(tied_embeddings, *this);
}

}  // namespace heed
