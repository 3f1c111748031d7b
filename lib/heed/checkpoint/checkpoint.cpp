#include "heed/checkpoint/checkpoint.h"

#include <algorithm>
#include <bit>
#include <boost/archive/archive_exception.hpp>
#include <boost/archive/text_iarchive.hpp>
#include <boost/archive/text_oarchive.hpp>
#include <boost/serialization/utility.hpp>
#include <boost/serialization/vector.hpp>
#include <ctime>
#include <fstream>
#include <set>
#include <sstream>

#include "heed/base/error.h"
#include "heed/base/streams.h"
#include "heed/checkpoint/h5.h"
#include "heed/checkpoint/integrity.h"
#include "heed/ops/gemm/bfloat16.h"

namespace heed {
namespace {

constexpr const char* kFormat = "heed-checkpoint";
constexpr std::int64_t kFormatVersion = 1;
constexpr const char* kTask = "transformer";

std::string attribute_name(std::string_view option) {
  std::string name(option);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string option_name(std::string attribute) {
  std::replace(attribute.begin(), attribute.end(), '_', '-');
  return attribute;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

// ---- writing

constexpr const char *kSourceText = "/text/source", *kTargetText = "/text/target";
constexpr const char *kVocabulary = "/vocabulary", *kSubwordModel = "/subword_model",
                     *kTruecaseModel = "/truecase_model";

/// What both sides share is stored once, under both names.
void write_text_models(h5::File& file, const TextModel& source_model, const TextModel& target_model) {
  const TextModelParts source = source_model.parts(), target = target_model.parts();
  const auto write = [&](const std::string& group, const TextModelParts& parts, const TextModelParts* other) {
    file.make_group(group);
    if (other && parts.pieces == other->pieces)
      file.link(std::string(kSourceText) + kVocabulary, group + kVocabulary);
    else
      file.write_strings(group + kVocabulary, parts.pieces);
    if (other && !parts.subword_model.empty() && parts.subword_model == other->subword_model)
      file.link(std::string(kSourceText) + kSubwordModel, group + kSubwordModel);
    else if (!parts.subword_model.empty())
      file.write_bytes(group + kSubwordModel, parts.subword_model);
    if (!parts.truecase_model.empty()) file.write_bytes(group + kTruecaseModel, parts.truecase_model);
    for (const auto& [name, value] : parts.attributes) file.write_attribute(group, attribute_name(name), value);
  };
  write(kSourceText, source, nullptr);
  write(kTargetText, target, &source);
}

/// Free of branches on the numbers, so that the compiler makes vectors of it.
bool all_finite(std::span<const float> data) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::int32_t wrong = 0;
  for (const float x : data) wrong |= (std::bit_cast<std::uint32_t>(x) & kExponent) == kExponent ? 1 : 0;
  return wrong == 0;
}

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

void write_all(const std::string& path, const Checkpoint& checkpoint, const TrainingState* state,
               const TrainingArrays* arrays) {
  AtomicPath atomic(path);
  h5::File file = h5::File::create(atomic.temporary());
  file.write_attribute("/", "format", std::string(kFormat));
  file.write_attribute("/", "format_version", kFormatVersion);
  file.write_attribute("/", "heed_version", std::string(HEED_VERSION));
  file.write_attribute("/", "task", std::string(kTask));
  file.write_attribute("/", "created", utc_now());
  file.make_group("/config");
  TransformerConfig config = checkpoint.model->config();
  const FieldList fields = FieldList::of(config);
  for (const Field& field : fields.all()) file.write_attribute("/config", attribute_name(field.info.name), field.get());
  write_text_models(file, checkpoint.source, checkpoint.target);
  write_parameters(file, "/parameters", checkpoint.parameters);
  if (state) {
    file.make_group("/training");
    for (const auto& [name, values] : *arrays) write_parameters(file, "/training/" + name, values);
    std::ostringstream bytes;
    boost::archive::text_oarchive(bytes) << *state;
    file.write_bytes("/training/state", bytes.str());
  }
  file.close();
  append_checksum(atomic.temporary());
  atomic.commit();
}

// ---- reading

std::vector<std::string> as_text(const FieldValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return {*flag ? "true" : "false"};
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return {std::to_string(*integer)};
  if (const auto* real = std::get_if<double>(&value)) return {fields_detail::show_real(*real)};
  if (const auto* text = std::get_if<std::string>(&value)) return {*text};
  return std::get<std::vector<std::string>>(value);
}

bool starts_with(const std::string& path, std::string_view magic) {
  std::ifstream in(path, std::ios::binary);
  std::string start(magic.size(), '\0');
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  return start == magic;
}

/// Opens a file and makes sure that it is a checkpoint this version reads.
h5::File open_checkpoint(const std::string& path) {
  open_input(path);  // a missing or unreadable file gets the usual message
  if (!looks_like_checkpoint(path)) {
    if (starts_with(path, "heed-vocabulary "))
      throw Error(Position{path},
                  "is a vocabulary, not a checkpoint (train -v " + path + " makes a checkpoint with it)");
    throw Error(Position{path}, "is not a heed checkpoint: not an HDF5 file (checkpoints are made by train)");
  }
  h5::File file = h5::File::open(path);
  const auto format = file.read_attribute("/", "format");
  if (!format || *format != FieldValue(std::string(kFormat)))
    throw Error(Position{path}, "is an HDF5 file but not a heed checkpoint (its attribute 'format' is not '" +
                                    std::string(kFormat) + "')");
  const auto version = file.read_attribute("/", "format_version");
  if (!version || *version != FieldValue(kFormatVersion))
    throw Error(Position{path}, "has checkpoint format version " +
                                    (version ? as_text(*version).front() : std::string("none")) +
                                    "; this heed reads version " + std::to_string(kFormatVersion));
  return file;
}

TransformerConfig read_config(const h5::File& file) {
  const auto task = file.read_attribute("/", "task");
  if (!task || *task != FieldValue(std::string(kTask)))
    throw Error(Position{file.path()}, "holds a model of the architecture '" +
                                           (task ? as_text(*task).front() : std::string("?")) + "'; this heed reads '" +
                                           kTask + "'");
  TransformerConfig config;
  const FieldList fields = FieldList::of(config);
  std::string missing;
  for (const Field& field : fields.all()) {
    const std::string name = attribute_name(field.info.name);
    const auto value = file.read_attribute("/config", name);
    if (!value) {
      missing += (missing.empty() ? "" : ", ") + name;
      continue;
    }
    field.set_text(as_text(*value));
  }
  if (!missing.empty()) throw Error(Position{file.path()}, "/config lacks " + missing);
  for (const std::string& name : file.attribute_names("/config"))
    if (!fields.find(option_name(name)))
      throw Error(Position{file.path()}, "/config has an unknown attribute '" + name + "' (made by a newer heed?)");
  config.validate();
  return config;
}

TextModelParts read_text_parts(const h5::File& file, const std::string& group, const TextModelParts* source) {
  TextModelParts parts;
  const auto shared = [&](const char* name) {
    return source && file.exists(kSourceText + std::string(name)) &&
           file.same_object(kSourceText + std::string(name), group + name);
  };
  parts.pieces = shared(kVocabulary) ? source->pieces : file.read_strings(group + kVocabulary);
  if (file.exists(group + kSubwordModel))
    parts.subword_model = shared(kSubwordModel) ? source->subword_model : file.read_bytes(group + kSubwordModel);
  if (file.exists(group + kTruecaseModel)) parts.truecase_model = file.read_bytes(group + kTruecaseModel);
  for (const std::string& name : file.attribute_names(group))
    parts.attributes.emplace_back(option_name(name), *file.read_attribute(group, name));
  return parts;
}

/// Whether two sides cut words into the same pieces, whatever their text steps.
bool same_subwords(const TextModelParts& a, const TextModelParts& b) {
  const auto attribute = [](const TextModelParts& parts, const char* name) {
    for (const auto& [known, value] : parts.attributes)
      if (known == name) return value;
    return FieldValue();
  };
  return a.pieces == b.pieces && a.subword_model == b.subword_model && attribute(a, "type") == attribute(b, "type") &&
         attribute(a, "separator") == attribute(b, "separator");
}

std::pair<TextModel, TextModel> read_text_models(const h5::File& file) {
  const TextModelParts source = read_text_parts(file, kSourceText, nullptr);
  const TextModelParts target = read_text_parts(file, kTargetText, &source);
  TextModel first = TextModel::from_parts(source, file.path() + ": " + kSourceText);
  TextModel second =
      TextModel::from_parts(target, file.path() + ": " + kTargetText, same_subwords(source, target) ? &first : nullptr);
  return {std::move(first), std::move(second)};
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string out = "[";
  for (const std::int64_t dim : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(dim);
  return out + "]";
}

/// The datasets of all parameters, in the layout's order. Every one is checked before memory is taken for any; the
/// error lists all that is wrong.
std::vector<h5::Dataset> open_parameters(const h5::File& file, const std::string& group,
                                         const ParameterLayout& layout) {
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
    datasets.push_back(std::move(found));
  }
  for (const std::string_view name : extra) add("not part of the model: " + std::string(name));
  if (!wrong.empty()) throw Error(Position{file.path()}, group + " does not fit the model in /config:" + wrong);
  return datasets;
}

void read_parameters(const h5::File& file, const std::string& group, const std::vector<h5::Dataset>& datasets,
                     ParameterValues<float>& values) {
  std::size_t next = 0;
  for (const ParameterInfo& info : values.layout().all()) {
    const h5::Dataset& dataset = datasets[next++];
    const std::string name = group + "/" + info.name;
    const auto out =
        values.flat().subspan(static_cast<std::size_t>(info.offset), static_cast<std::size_t>(info.shape.size()));
    if (dataset.type == h5::Type::float32) {
      dataset.read(out);
    } else {
      const auto dtype = file.read_attribute(name, "dtype");
      if (!dtype || *dtype != FieldValue(std::string("bfloat16")))
        throw Error(Position{file.path()}, name + ": 16-bit integers without the attribute dtype = 'bfloat16'");
      std::vector<std::uint16_t> half(out.size());
      dataset.read(std::span(half));
      for (std::size_t i = 0; i < half.size(); ++i) out[i] = from_bfloat16(half[i]);
    }
    if (!all_finite(out)) throw Error(Position{file.path()}, name + " holds numbers that are not finite");
  }
}

/// Everything of a checkpoint but the arrays' elements, checked against each other.
struct Outline {
  std::shared_ptr<const Transformer<float>> model;
  TextModel source, target;
  std::vector<h5::Dataset> parameters;
};

Outline read_outline(const h5::File& file) {
  const TransformerConfig config = read_config(file);
  auto [source, target] = read_text_models(file);
  const auto check_size = [&](const char* side, std::int64_t expected, const TextModel& text) {
    if (text.size() != expected)
      throw Error(Position{file.path()}, std::string("/text/") + side + "/vocabulary has " +
                                             std::to_string(text.size()) + " pieces, the config says " +
                                             std::to_string(expected));
  };
  check_size("source", config.source_vocabulary, source);
  check_size("target", config.target_vocabulary, target);
  auto model = std::make_shared<const Transformer<float>>(config);
  std::vector<h5::Dataset> parameters = open_parameters(file, "/parameters", model->layout());
  return {std::move(model), std::move(source), std::move(target), std::move(parameters)};
}

/// Lets HDF5 read all that it reads later but the arrays' elements.
void touch_everything(const h5::File& file) {
  read_config(file);
  const TextModelParts source = read_text_parts(file, kSourceText, nullptr);
  read_text_parts(file, kTargetText, &source);
  for (const std::string& name : file.datasets("/parameters")) file.dataset("/parameters/" + name);
}

Checkpoint read_checkpoint(const h5::File& file) {
  Outline outline = read_outline(file);
  ParameterValues<float> parameters(outline.model->layout());
  read_parameters(file, "/parameters", outline.parameters, parameters);
  return {std::move(outline.model), std::move(parameters), std::move(outline.source), std::move(outline.target)};
}

/// Usage errors in here come from values in the file, not from the command line.
template <class Function>
auto reading(const std::string& path, Function function) {
  try {
    // Bytes that agree with their checksum are as they were written; of others HDF5 may find the damage, or crash.
    if (!verify_checksum(path)) try_in_child(path, [&] { touch_everything(open_checkpoint(path)); });
    return function();
  } catch (const UsageError& error) {
    throw Error(Position{path}, std::string("/config: ") + error.what());
  } catch (const boost::archive::archive_exception& error) {
    throw Error(Position{path}, std::string("/training/state: cannot be read: ") + error.what());
  } catch (const std::length_error&) {
    throw Error(Position{path}, "/training/state: cannot be read: a size in it is impossible");
  }
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
  return reading(path, [&] { return read_checkpoint(open_checkpoint(path)); });
}

std::optional<ResumableCheckpoint> load_resumable_checkpoint(const std::string& path) {
  return reading(path, [&]() -> std::optional<ResumableCheckpoint> {
    const h5::File file = open_checkpoint(path);
    if (!file.exists("/training/state")) return std::nullopt;
    ResumableCheckpoint out{read_checkpoint(file), {}, {}};
    for (const std::string& name : file.members("/training")) {
      if (name == "state") continue;
      const std::string group = "/training/" + name;
      const auto datasets = open_parameters(file, group, out.checkpoint.model->layout());
      auto [entry, added] = out.arrays.emplace(name, ParameterValues<float>(out.checkpoint.model->layout()));
      read_parameters(file, group, datasets, entry->second);
    }
    std::istringstream bytes(file.read_bytes("/training/state"));
    boost::archive::text_iarchive(bytes) >> out.state;
    return out;
  });
}

std::pair<TextModel, TextModel> load_text_models(const std::string& path) {
  return reading(path, [&] {
    const h5::File file = open_checkpoint(path);
    return read_text_models(file);
  });
}

bool looks_like_checkpoint(const std::string& path) {
  return starts_with(path, "\x89HDF\r\n\x1a\n");
}

}  // namespace heed
