#include "heed/checkpoint/checkpoint_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "heed/base/streams.h"
#include "heed/checkpoint/checkpoint.h"

namespace heed {
namespace {

/// Returns the name of the option that an HDF5 attribute stores: the attribute "dim_emb" stores the option "dim-emb".
std::string option_name(std::string attribute) {
  std::replace(attribute.begin(), attribute.end(), '_', '-');
  return attribute;
}

constexpr const char *kSourceText = "/text/source", *kTargetText = "/text/target";
constexpr const char *kVocabulary = "/vocabulary", *kSubwordModel = "/subword_model",
                     *kTruecaseModel = "/truecase_model";

/// Returns the value of an HDF5 attribute as the words that a user would write for the option on the command line.
std::vector<std::string> as_text(const FieldValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return {*flag ? "true" : "false"};
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return {std::to_string(*integer)};
  if (const auto* real = std::get_if<double>(&value)) return {fields_detail::show_real(*real)};
  if (const auto* text = std::get_if<std::string>(&value)) return {*text};
  return std::get<std::vector<std::string>>(value);
}

/// Returns the first word of as_text(), or "nothing" for an empty list, which a forged file may have.
std::string first_text(const FieldValue& value) {
  const std::vector<std::string> texts = as_text(value);
  return texts.empty() ? "nothing" : texts.front();
}

/// Tells whether the first bytes of a regular file are the bytes `magic`. Other files, such as pipes, may be readable
/// only once, and are not read.
bool starts_with(const std::string& path, std::string_view magic) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::ifstream in(path, std::ios::binary);
  std::string start(magic.size(), '\0');
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  return start == magic;
}

/// Reads the parts of a text model (vocabulary, subword model, truecase model, attributes) from the HDF5 group `group`.
/// `source`, if not null, holds the parts of the source's text model, which have been read before: a vocabulary or
/// subword model that is the same HDF5 object in both groups is copied from `source`, and not read again.
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
  for (const std::string& name : file.attribute_names(group)) {
    auto value = file.read_attribute(group, name);
    if (!value) throw Error(Position{file.path()}, group + "@" + name + ": cannot read (the file is damaged)");
    parts.attributes.emplace_back(option_name(name), std::move(*value));
  }
  return parts;
}

/// Tells whether two text models split words into the same pieces (subwords) with the same ids. Their text steps, such
/// as lower-casing, may differ.
bool same_subwords(const TextModelParts& a, const TextModelParts& b) {
  const auto attribute = [](const TextModelParts& parts, const char* name) {
    for (const auto& [known, value] : parts.attributes)
      if (known == name) return value;
    return FieldValue();
  };
  return a.pieces == b.pieces && a.subword_model == b.subword_model && attribute(a, "type") == attribute(b, "type") &&
         attribute(a, "separator") == attribute(b, "separator") &&
         attribute(a, "byte-fallback") == attribute(b, "byte-fallback") &&
         attribute(a, "user-symbols") == attribute(b, "user-symbols");
}

}  // namespace

std::string attribute_name(std::string_view option) {
  std::string name(option);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

h5::File open_checkpoint(const std::string& path) {
  // open_input() throws the usual Error if the file is missing or unreadable.
  open_input(path);
  if (!looks_like_checkpoint(path)) {
    if (std::error_code ignored; !std::filesystem::is_regular_file(path, ignored))
      throw Error(Position{path}, "is not a regular file, and a checkpoint cannot come from a pipe (name a file)");
    if (starts_with(path, "heed-vocabulary "))
      throw Error(Position{path},
                  "is a vocabulary, not a checkpoint (train -v " + path + " makes a checkpoint with it)");
    if (starts_with(path, "\x1f\x8b"))
      throw Error(Position{path},
                  "looks like gzip data, and a checkpoint must not be compressed (unpack it: gunzip " + path + ")");
    throw Error(Position{path}, "is not a heed checkpoint: not an HDF5 file (checkpoints are made by train)");
  }
  h5::File file = h5::File::open(path);
  const auto format = file.read_attribute("/", "format");
  if (!format || *format != FieldValue(std::string(kCheckpointFormat)))
    throw Error(Position{path}, "is an HDF5 file but not a heed checkpoint (its attribute 'format' is not '" +
                                    std::string(kCheckpointFormat) + "')");
  const auto version = file.read_attribute("/", "format_version");
  if (!version || *version != FieldValue(kCheckpointVersion))
    throw Error(Position{path}, "has checkpoint format version " +
                                    (version ? first_text(*version) : std::string("none")) +
                                    "; this heed reads version " + std::to_string(kCheckpointVersion));
  return file;
}

ModelConfig read_config(const h5::File& file) {
  const auto task = file.read_attribute("/", "task");
  const std::string name = task ? first_text(*task) : "?";
  std::optional<ModelConfig> config = config_of(name);
  if (!config) {
    std::string known;
    for (const std::string_view each : architectures())
      known += (known.empty() ? "'" : ", '") + std::string(each) + "'";
    throw Error(Position{file.path()}, "holds a model of the architecture '" + name + "'; this heed reads " + known);
  }
  const FieldList fields = fields_of(*config);
  std::string missing;
  for (const Field& field : fields.all()) {
    const std::string attribute = attribute_name(field.info.name);
    const auto value = file.read_attribute("/config", attribute);
    if (!value) {
      if (field.info.later) continue;
      missing += (missing.empty() ? "" : ", ") + attribute;
      continue;
    }
    field.set_text(as_text(*value));
  }
  if (!missing.empty()) throw Error(Position{file.path()}, "/config lacks " + missing);
  for (const std::string& attribute : file.attribute_names("/config"))
    if (!fields.find(option_name(attribute)))
      throw Error(Position{file.path()},
                  "/config has an unknown attribute '" + attribute + "' (made by a newer heed?)");
  try {
    validate(*config);
  } catch (const Error& error) {
    throw Error(Position{file.path()}, std::string("/config: ") + error.what());
  }
  return *std::move(config);
}

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

std::pair<TextModel, TextModel> read_text_models(const h5::File& file) {
  const TextModelParts source = read_text_parts(file, kSourceText, nullptr);
  const TextModelParts target = read_text_parts(file, kTargetText, &source);
  TextModel first = TextModel::from_parts(source, file.path() + ": " + kSourceText);
  TextModel second =
      TextModel::from_parts(target, file.path() + ": " + kTargetText, same_subwords(source, target) ? &first : nullptr);
  return {std::move(first), std::move(second)};
}

OpenCheckpoint open_checked(const std::string& path, ChecksumScope scope) {
  if (path == "-") throw Error("-: a checkpoint cannot come from standard input (name a file)");
  constexpr int kMostTries = 10;
  for (int i = 0; i < kMostTries; ++i) {
    OpenCheckpoint out;
    out.bytes = std::make_shared<const CheckedFile>(path, scope);
    out.file = std::make_shared<const h5::File>(open_checkpoint(path));
    // If the two files differ, a running training replaced the checkpoint between the two calls that opened the path.
    // The loop then tries again.
    if (out.file->is_same_as(out.bytes->descriptor())) return out;
  }
  throw Error(Position{path}, "is replaced by another file again and again (read a copy of it)");
}

std::pair<TextModel, TextModel> load_text_models(const std::string& path) {
  return read_checked(path, ChecksumScope::outline,
                      [&](const OpenCheckpoint& open) { return read_text_models(*open.file); });
}

bool looks_like_checkpoint(const std::string& path) {
  return starts_with(path, "\x89HDF\r\n\x1a\n");
}

}  // namespace heed
