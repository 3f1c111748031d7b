#include "heed/checkpoint/checkpoint.h"

#include <algorithm>
#include <ctime>
#include <set>

#include "heed/base/error.h"
#include "heed/base/streams.h"
#include "heed/checkpoint/checkpoint_file.h"
#include "heed/model/make_model.h"

namespace heed {
namespace {

/// Returns the present time as ISO 8601 text in UTC.
std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

/// Writes one dataset for each parameter to the HDF5 group `group`. Throws Error if an element of a parameter is
/// infinite or NaN.
void write_parameters(h5::File& file, const std::string& group, const ParameterValues<float>& values) {
  const ParameterLayout& layout = values.layout();
  for (const ParameterInfo& info : layout.all()) {
    const std::span<const float> data =
        values.flat().subspan(static_cast<std::size_t>(info.offset), static_cast<std::size_t>(info.shape.size()));
    if (!all_finite(data)) throw Error("the parameter " + info.name + " is not finite; not saved");
    std::vector<std::int64_t> shape;
    for (int axis = 0; axis < info.shape.rank(); ++axis) shape.push_back(info.shape[axis]);
    file.write_floats(group + "/" + info.name, data, shape);
  }
}

/// Appends to `ranges` one range of bytes for each large parameter of an HDF5 group: the bytes of the file that hold
/// the elements of the parameter. The checksum that is compared when the file is opened leaves these bytes out, so that
/// opening does not read the whole file.
void add_ranges(const h5::File& file, const std::string& group, const ParameterLayout& layout,
                std::vector<ByteRange>& ranges) {
  // The smallest size, in bytes, of a large parameter. The bytes of smaller parameters are covered by the checksum that
  // is compared when the file is opened.
  constexpr std::int64_t kLarge = 1 << 14;
  for (const ParameterInfo& info : layout.all()) {
    const std::int64_t bytes = info.shape.size() * 4;
    if (bytes < kLarge) continue;
    const std::int64_t begin = file.dataset(group + "/" + info.name).offset_of_floats();
    if (begin >= 0) ranges.push_back({begin, begin + bytes});
  }
}

/// Writes a checkpoint file. `state` and `arrays` are null for a checkpoint from which training cannot be resumed.
void write_all(const std::string& path, const Checkpoint& checkpoint, const TrainingState* state,
               const TrainingArrays* arrays) {
  AtomicPath atomic(path);
  h5::File file = h5::File::create(atomic.temporary(), path);
  file.write_attribute("/", "format", std::string(kCheckpointFormat));
  file.write_attribute("/", "format_version", kCheckpointVersion);
  file.write_attribute("/", "heed_version", std::string(HEED_VERSION));
  file.write_attribute("/", "task", std::string(architecture(checkpoint.model->config())));
  file.write_attribute("/", "created", utc_now());
  file.make_group("/config");
  ModelConfig config = checkpoint.model->config();
  const FieldList fields = fields_of(config);
  for (const Field& field : fields.all()) file.write_attribute("/config", attribute_name(field.info.name), field.get());
  write_text_models(file, checkpoint.source, checkpoint.target);
  write_parameters(file, "/parameters", checkpoint.parameters);
  std::vector<ByteRange> weights, training;
  add_ranges(file, "/parameters", checkpoint.parameters.layout(), weights);
  if (state) {
    file.make_group("/training");
    for (const auto& [name, values] : *arrays) {
      write_parameters(file, "/training/" + name, values);
      add_ranges(file, "/training/" + name, values.layout(), training);
    }
    file.write_bytes("/training/state", write_training_state(*state));
  }
  file.close();
  append_checksum(atomic.temporary(), path, weights, training);
  atomic.commit();
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string out = "[";
  for (const std::int64_t dim : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(dim);
  return out + "]";
}

/// Opens the datasets of all parameters in an HDF5 group, in the order of the layout. Checks type, shape and size of
/// every dataset before any memory is allocated; the Error lists all problems. Adds the bytes that the datasets store
/// to `claimed`, a sum over all calls for the same file. Throws Error if `claimed` exceeds the size of the file, as in
/// a forged file.
std::vector<h5::Dataset> open_parameters(const h5::File& file, const std::string& group, const ParameterLayout& layout,
                                         std::int64_t& claimed) {
  std::vector<h5::Dataset> datasets;
  std::string wrong;
  const auto add = [&](const std::string& line) { wrong += "\n  " + line; };
  const std::vector<std::string> there = file.datasets(group);
  std::set<std::string_view> extra(there.begin(), there.end());
  for (const ParameterInfo& info : layout.all()) {
    if (extra.erase(info.name) == 0) {
      add("missing: " + info.name);
      continue;
    }
    h5::Dataset found = file.dataset(group + "/" + info.name);
    if (found.shape.size() > Shape::kMaxRank || Shape(found.shape) != info.shape)
      add("wrong shape: " + info.name + " is " + shape_text(found.shape) + ", the config says " + info.shape.text());
    else if (found.type != h5::Type::float32 && found.type != h5::Type::uint16)
      add("wrong type: " + info.name + " is neither float32 nor bfloat16");
    else if (found.stored_bytes < info.shape.size() * (found.type == h5::Type::float32 ? 4 : 2))
      add("incomplete: " + info.name);
    claimed += found.stored_bytes;
    datasets.push_back(std::move(found));
  }
  for (const std::string_view name : extra) add("not part of the model: " + std::string(name));
  if (wrong.empty() && claimed > file.size())
    throw Error(Position{file.path()}, group + ": the arrays claim more bytes than the file holds");
  if (!wrong.empty()) throw Error(Position{file.path()}, group + " does not fit the model in /config:" + wrong);
  return datasets;
}

/// What is read of a checkpoint before the values of the parameters: the model without values, the text models, and the
/// open datasets of the parameters. The parts have been checked to fit together.
struct Outline {
  std::shared_ptr<const Model<float>> model;
  TextModel source, target;
  std::vector<h5::Dataset> parameters;
};

/// Reads the config and the text models of a checkpoint, and opens the datasets of the parameters. Throws Error if the
/// sizes of vocabularies or parameters contradict the config.
Outline read_outline(const h5::File& file) {
  const ModelConfig config = read_config(file);
  auto [source, target] = read_text_models(file);
  const auto check_size = [&](const char* side, std::int64_t expected, const TextModel& text) {
    if (text.size() != expected)
      throw Error(Position{file.path()}, std::string("/text/") + side + "/vocabulary has " +
                                             std::to_string(text.size()) + " pieces, the config says " +
                                             std::to_string(expected));
  };
  check_size("source", vocabulary_sizes(config).source_vocabulary, source);
  check_size("target", vocabulary_sizes(config).target_vocabulary, target);
  std::shared_ptr<const Model<float>> model = make_model<float>(config);
  std::int64_t claimed = 0;
  std::vector<h5::Dataset> parameters = open_parameters(file, "/parameters", model->layout(), claimed);
  return {std::move(model), std::move(source), std::move(target), std::move(parameters)};
}

UnreadCheckpoint read_all_but_parameters(const OpenCheckpoint& open, PageSize pages) {
  Outline outline = read_outline(*open.file);
  const ParameterLayout& layout = outline.model->layout();
  auto reader = std::make_unique<ParameterReader>(open, "/parameters", std::move(outline.parameters), layout);
  ParameterValues<float> parameters(layout, pages);
  return {{std::move(outline.model), std::move(parameters), std::move(outline.source), std::move(outline.target)},
          std::move(reader)};
}

Checkpoint read_checkpoint(const OpenCheckpoint& open) {
  UnreadCheckpoint unread = read_all_but_parameters(open, PageSize::huge);
  unread.reader->read(0, unread.checkpoint.parameters.flat());
  unread.reader->finish();
  return std::move(unread.checkpoint);
}

}  // namespace

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  write_all(path, checkpoint, nullptr, nullptr);
}

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint, const TrainingState& state,
                     const TrainingArrays& arrays) {
  write_all(path, checkpoint, &state, &arrays);
}

Checkpoint load_checkpoint(const std::string& path) {
  return read_checked(path, ChecksumScope::outline, [&](const OpenCheckpoint& open) { return read_checkpoint(open); });
}

UnreadCheckpoint open_unread_checkpoint(const std::string& path) {
  return read_checked(path, ChecksumScope::outline,
                      [&](const OpenCheckpoint& open) { return read_all_but_parameters(open, PageSize::small); });
}

std::optional<ResumableCheckpoint> load_resumable_checkpoint(const std::string& path) {
  return read_checked(path, ChecksumScope::all, [&](const OpenCheckpoint& open) -> std::optional<ResumableCheckpoint> {
    if (!open.file->exists("/training/state")) return std::nullopt;
    ResumableCheckpoint out{read_checkpoint(open), {}, {}};
    const ParameterLayout& layout = out.checkpoint.model->layout();
    std::int64_t claimed = 0;
    for (const std::string& name : open.file->members("/training")) {
      if (name == "state") continue;
      const std::string group = "/training/" + name;
      const ParameterReader reader(open, group, open_parameters(*open.file, group, layout, claimed), layout);
      auto [entry, added] = out.arrays.emplace(name, ParameterValues<float>(layout));
      reader.read(0, entry->second.flat());
    }
    out.state = read_training_state(open.file->read_bytes("/training/state"), path);
    return out;
  });
}

std::optional<TrainingState> load_training_state(const std::string& path) {
  return read_checked(path, ChecksumScope::outline, [&](const OpenCheckpoint& open) -> std::optional<TrainingState> {
    if (!open.file->exists("/training/state")) return std::nullopt;
    return read_training_state(open.file->read_bytes("/training/state"), path);
  });
}

}  // namespace heed
