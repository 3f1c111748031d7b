#include "heed/model/swin_config.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/base/error.h"

namespace heed {
namespace {

/// The sizes of a Swin Transformer. All but tiny_2 are those of the paper.
///
/// tiny_2 is for images of 32 x 32 pixels, such as those of CIFAR-10. Patches of 2 x 2 pixels give stages of 16 x 16, 8
/// x 8 and 4 x 4 tokens; with windows of 4 x 4 tokens, the first two stages have several windows, and the layers of the
/// last stage see the whole image. As in the paper, a head has 32 columns and the stage before the last one is the
/// deepest. The ten layers cost 26 million operations each, the whole model 0.26 GFLOP for an image (a multiplication
/// and an addition count as two operations), and it has 3 million parameters: less than half the work of vit-tiny/4,
/// since most tokens of an image that is so small should be seen at a small width.
struct SwinSizes {
  SwinSize size;
  int image, patch;
  std::int64_t dim_emb;
  std::vector<int> depths, heads;
  int window;
};

std::vector<SwinSizes> swin_sizes() {
  return {{SwinSize::tiny_2, 32, 2, 64, {2, 6, 2}, {2, 4, 8}, 4},
          {SwinSize::tiny, 224, 4, 96, {2, 2, 6, 2}, {3, 6, 12, 24}, 7},
          {SwinSize::small, 224, 4, 96, {2, 2, 18, 2}, {3, 6, 12, 24}, 7},
          {SwinSize::base, 224, 4, 128, {2, 2, 18, 2}, {4, 8, 16, 32}, 7}};
}

/// The greatest size of images that an error message proposes.
constexpr int kMostImageSize = 4096;

std::string square(int size) {
  return std::to_string(size) + " x " + std::to_string(size);
}

/// Returns the numbers with `separator` between them.
std::string joined(const std::vector<int>& numbers, const char* separator) {
  std::string out;
  for (const int number : numbers) out += (out.empty() ? "" : separator) + std::to_string(number);
  return out;
}

/// Returns whether the patches of images of this size can be merged from stage to stage, and each stage has whole
/// windows only.
bool fits(const SwinConfig& config, int size) {
  if (size < 1 || size % config.patch != 0) return false;
  int side = size / config.patch;
  for (int s = 0; s < config.stages(); ++s) {
    if (side < 1 || (side > config.window && side % config.window != 0)) return false;
    if (s + 1 < config.stages() && side % 2 != 0) return false;
    side /= 2;
  }
  return true;
}

/// Names the next smaller and the next larger size of images that fit.
std::string fitting_sizes(const SwinConfig& config) {
  std::vector<int> found;
  for (int size = std::min(config.image.size, kMostImageSize) - 1; size > 0 && found.empty(); --size)
    if (fits(config, size)) found.push_back(size);
  for (int size = config.image.size + 1; size <= kMostImageSize; ++size)
    if (fits(config, size)) {
      found.push_back(size);
      break;
    }
  if (found.empty()) return "no size of images fits them";
  return joined(found, " and ") + (found.size() == 1 ? " fits" : " fit");
}

/// Throws UsageError where the lists of the stages do not fit each other, or the heads do not fit the widths.
void check_stages(const SwinConfig& c) {
  const std::size_t stages = c.depths.size();
  if (stages < 1) throw UsageError("--swin-depths: needs a number for each stage");
  if (c.heads.size() != stages)
    throw UsageError("--swin-heads: has " + std::to_string(c.heads.size()) +
                     (c.heads.size() == 1 ? " number" : " numbers") + ", but --swin-depths has " +
                     std::to_string(stages) + " (each has a number for each stage)");
  constexpr std::size_t kMostStages = 16;
  if (stages > kMostStages || c.width(c.stages() - 1) > kMostWidth)
    throw UsageError("--swin-depths: " + std::to_string(stages) + " stages are too many with --dim-emb " +
                     std::to_string(c.dim_emb) + " (each stage doubles the width)");
  for (int s = 0; s < c.stages(); ++s) {
    const int heads = c.heads[static_cast<std::size_t>(s)];
    if (c.width(s) % heads != 0)
      throw UsageError("--swin-heads: stage " + std::to_string(s + 1) + " has a width of " +
                       std::to_string(c.width(s)) + ", which is not divisible by " + std::to_string(heads) + " heads");
  }
}

}  // namespace

SwinConfig::SwinConfig(SwinSize size) {
  norm_epsilon = 1e-5;
  for (const SwinSizes& each : swin_sizes())
    if (each.size == size) {
      image.size = each.image;
      patch = each.patch;
      dim_emb = each.dim_emb;
      depths = each.depths;
      heads = each.heads;
      window = each.window;
    }
}

int SwinConfig::layers() const {
  return std::accumulate(depths.begin(), depths.end(), 0);
}

GridSize SwinConfig::grid(int stage) const {
  const int side = image.size / patch >> stage;
  return {side, side};
}

int SwinConfig::mean_tokens() const {
  // A layer of stage s has 4^s times as many weights as a layer of stage 0, and 4^s times fewer tokens.
  double weights = 0;
  for (int s = 0; s < stages(); ++s) weights += std::ldexp(depths[static_cast<std::size_t>(s)], 2 * s);
  return std::max(1, static_cast<int>(std::lround(static_cast<double>(tokens()) * layers() / weights)));
}

std::int64_t SwinConfig::dim_ffn(int stage) const {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(width(stage)) * mlp_ratio));
}

double SwinConfig::left_out(int layer) const {
  return layers() > 1 ? stochastic_depth * layer / (layers() - 1) : stochastic_depth;
}

void SwinConfig::validate() const {
  validate_images();
  check_stages(*this);
  if (!fits(*this, image.size))
    throw UsageError("--image-size " + std::to_string(image.size) + " does not fit --patch-size " +
                     std::to_string(patch) + ", --window-size " + std::to_string(window) + " and " +
                     std::to_string(stages()) + (stages() == 1 ? " stage (" : " stages (") + fitting_sizes(*this) +
                     ")");
}

std::string SwinConfig::describe() const {
  return image.describe() + ", patches of " + square(patch) + ", windows of " + square(window) + ", " +
         joined(depths, " + ") + " layers, width " + std::to_string(width(0)) +
         (stages() > 1 ? " to " + std::to_string(width(stages() - 1)) : "") + ", " + joined(heads, " + ") + " heads, " +
         describe_classes();
}

}  // namespace heed
