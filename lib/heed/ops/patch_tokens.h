#pragma once

#include <cstdint>

#include "heed/autograd/graph.h"

namespace heed {

/// Makes the tokens that a vision Transformer reads (Dosovitskiy et al. 2021, formula 1) of the embedded patches of B
/// images with P patches each: a class token before the patches of each image, and a position vector added to each
/// token.
///
/// Shapes: patches [B P, D], class_token [1, D] or absent, positions [L, D] -> [B L, D], where L is P + 1 with a class
/// token and otherwise P. Backward: dpatches, dclass_token and dpositions add up the rows of dy that the element was
/// added to.
template <class T>
Variable<T> patch_tokens(Graph<T>& graph, const Variable<T>& patches, const Variable<T>& class_token,
                         const Variable<T>& positions);

}  // namespace heed
