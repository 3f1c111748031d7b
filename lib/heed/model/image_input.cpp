#include "heed/model/image_input.h"

#include "heed/base/error.h"

namespace heed {

void ImageInput::validate() const {
  if (channels != 1 && channels != 3) throw UsageError("--image-channels: must be 1 (grey) or 3 (red, green and blue)");
  for (const auto& [name, values] : {std::pair("--image-mean", &mean), std::pair("--image-deviation", &deviation)})
    if (!values->empty() && std::ssize(*values) != channels)
      throw UsageError(std::string(name) + ": needs " + std::to_string(channels) +
                       (channels == 1 ? " number" : " numbers") + ", one for each channel");
}

std::string ImageModelFields::unmet_need(std::string_view option) const {
  if (option == "image-crop" && image.fit != ImageFit::crop) return "--image-fit crop";
  return {};
}

void ImageModelFields::validate_images() const {
  image.validate();
  if (image.size % patch != 0)
    throw UsageError("--image-size " + std::to_string(image.size) + " is no multiple of --patch-size " +
                     std::to_string(patch));
}

std::string ImageModelFields::describe_classes() const {
  return std::to_string(target_vocabulary - kReservedIds) + " classes";
}

std::string ImageInput::describe() const {
  return (channels == 1 ? "grey images of " : "images of ") + std::to_string(size) + " x " + std::to_string(size);
}

PixelFormat ImageInput::format() const {
  PixelFormat out{channels, kReservedIds, mean, deviation};
  const bool grey = channels == 1;
  if (out.mean.empty()) out.mean = grey ? std::vector{0.5} : std::vector{0.485, 0.456, 0.406};
  if (out.deviation.empty()) out.deviation = grey ? std::vector{0.5} : std::vector{0.229, 0.224, 0.225};
  return out;
}

}  // namespace heed
