#pragma once

namespace heed {

/// What pictures of attention have in common, in pixels: the margin around the picture, and the sizes of the texts.
inline constexpr double kPictureMargin = 20, kPictureHeading = 16, kPictureTitle = 13, kPictureFont = 12;

}  // namespace heed
