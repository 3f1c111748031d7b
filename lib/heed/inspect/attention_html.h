#pragma once

#include <span>
#include <string>

#include "heed/inspect/attention_picture.h"

namespace heed {

/// Returns a page of HTML that shows the attention maps of sentences and needs no other files and no network: for each
/// sentence a grid of small maps, a row for each kind and layer and a column for each head, and one of them large, with
/// its tokens. The pointer on a cell shows the two tokens and the weight; the pointer on a token shows what the token
/// attends to, or what attends to it. A map, a sentence and the scale of the colours are chosen with the mouse or the
/// keyboard.
std::string attention_html(std::span<const AttentionSection> sections);

}  // namespace heed
