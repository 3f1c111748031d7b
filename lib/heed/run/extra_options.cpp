#include "heed/run/extra_options.h"

#include <algorithm>

#include "heed/base/error.h"

namespace heed {

ExtraOptions::ExtraOptions(const std::string& list, const SentencePiece& pieces, const std::string& where)
    : pieces_(&pieces) {
  const auto needs = [&](const std::string& name, std::string_view piece, bool found) {
    if (!found || piece.empty() || piece.find_first_of(" \n") != std::string_view::npos)
      throw Error(Position{where}, "has no piece '" + std::string(piece) + "', which --extra-options " + name +
                                       " needs (leave " + name + " out)");
  };
  for (std::size_t at = 0; !list.empty() && at <= list.size();) {
    const std::size_t end = std::min(list.find(':', at), list.size());
    const std::string name = list.substr(at, end - at);
    at = end + 1;
    if (name == "reverse") {
      steps_.push_back(Step::reverse);
    } else if (name == "bos") {
      needs(name, pieces.model().bos_piece, !pieces.is_unknown(pieces.model().bos_piece));
      steps_.push_back(Step::bos);
    } else if (name == "eos") {
      needs(name, pieces.model().eos_piece, !pieces.is_unknown(pieces.model().eos_piece));
      steps_.push_back(Step::eos);
    } else if (name == "unk") {
      needs(name, pieces.unknown_piece(), true);
      steps_.push_back(Step::unk);
    } else {
      throw UsageError("--extra-options '" + list + "': '" + name +
                       "' is none of reverse, bos, eos and unk (put a colon between several)");
    }
  }
}

void ExtraOptions::apply(std::vector<PieceWithId>& list) const {
  for (const Step step : steps_) {
    switch (step) {
      case Step::reverse:
        std::reverse(list.begin(), list.end());
        break;
      case Step::bos:
        list.insert(list.begin(), {pieces_->model().bos_piece, kStartId});
        break;
      case Step::eos:
        list.push_back({pieces_->model().eos_piece, kEndId});
        break;
      case Step::unk:
        for (PieceWithId& entry : list)
          if (pieces_->is_unknown(entry.piece)) entry.piece = pieces_->unknown_piece();
        break;
    }
  }
}

}  // namespace heed
