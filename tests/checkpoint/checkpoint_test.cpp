#include "heed/checkpoint/checkpoint.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iomanip>
#include <limits>
#include <sstream>
#include <utility>
#include <vector>

#include <hdf5.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "heed/base/error.h"
#include "heed/checkpoint/checkpoint_file.h"
#include "heed/checkpoint/h5.h"
#include "heed/checkpoint/integrity.h"
#include "heed/model/transformer.h"
#include "heed/text/bpe/bpe.h"
#include "scratch_folder.h"

using namespace heed;
namespace fs = std::filesystem;

namespace {

Checkpoint make_checkpoint(int dim_ffn = 12) {
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = 7;
  config.dim_emb = 8;
  config.heads = 2;
  config.dim_ffn = dim_ffn;
  config.enc_depth = config.dec_depth = 1;
  config.norm = NormPlacement::pre;
  config.tied_embeddings = TiedEmbeddings::all;
  config.dropout = 0.25;
  TextSteps steps;
  steps.mode = TokenMode::words;
  steps.lowercase = true;
  const std::vector<std::string> pieces = {"<pad>", "<unk>", "<s>", "</s>", "a", "b", "caf\xC3\xA9"};
  const TextModel text(steps, Subwords(SubwordType::words), std::make_shared<const Vocabulary>(pieces));
  auto model = std::make_shared<const Transformer<float>>(config);
  ParameterValues<float> parameters(model->layout());
  parameters.initialise(3);
  return {model, std::move(parameters), text, text};
}

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void spit(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::ptrdiff_t entries(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

template <class Load>
std::string message(const std::string& path, Load load) {
  try {
    load(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string message(const std::string& path) {
  return message(path, load_checkpoint);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("checkpoint: what is saved is loaded, to the last bit") {
  const ScratchFolder folder;
  const std::string path = folder / "m.h5";
  Checkpoint saved = make_checkpoint();
  save_checkpoint(path, saved);
  Checkpoint loaded = load_checkpoint(path);
  CHECK(std::ranges::equal(saved.parameters.flat(), loaded.parameters.flat()));
  CHECK(std::get<TransformerConfig>(loaded.model->config()).norm == NormPlacement::pre);
  CHECK(std::get<TransformerConfig>(loaded.model->config()).dropout == 0.25);
  CHECK(loaded.source.vocabulary().pieces() == saved.source.vocabulary().pieces());
  CHECK(loaded.target.steps() == saved.target.steps());
  CHECK(!load_resumable_checkpoint(path));
  CHECK(load_text_models(path).second.vocabulary().piece(6) == "caf\xC3\xA9");
  CHECK(entries(folder.path()) == 1);  // no temporary file is left beside the checkpoint
}

TEST_CASE("checkpoint: what both sides share is stored once, under both names") {
  const ScratchFolder folder;
  Checkpoint saved = make_checkpoint();
  const auto merges = BpeMerges::parse("#version: 0.2\na b</w>\n", "codes");
  const auto model = [&](const std::string& language, const std::string& last) {
    TextSteps steps;
    steps.language = language;
    const std::vector<std::string> pieces = {"<pad>", "<unk>", "<s>", "</s>", "ab", "b", last};
    return TextModel(steps, Subwords(std::make_shared<const BpeEncoder>(merges)),
                     std::make_shared<const Vocabulary>(pieces));
  };
  saved.source = model("en", "a");
  for (const std::string last : {"a", "c"}) {
    saved.target = model("fr", last);
    save_checkpoint(folder / "m.h5", saved);
    const auto [source, target] = load_text_models(folder / "m.h5");
    const h5::File file = h5::File::open(folder / "m.h5");
    CHECK(file.same_object("/text/source/vocabulary", "/text/target/vocabulary") == (last == "a"));
    CHECK(file.same_object("/text/source/subword_model", "/text/target/subword_model"));
    CHECK(target.vocabulary().piece(6) == last);
    CHECK(target.subwords().split("ab") == std::vector<std::string>{"ab"});
    CHECK(source.steps().language == "en");
    CHECK(target.steps().language == "fr");
  }
}

TEST_CASE("checkpoint: training state and optimiser arrays come back") {
  const ScratchFolder folder;
  const std::string path = folder / "m.h5";
  const Checkpoint saved = make_checkpoint();
  TrainingState state;
  state.updates = 1234;
  state.history.push_back({10, 0.5, 1.0 / 3, 77});
  state.settings = {{"seed", "1"}};
  TrainingArrays arrays;
  arrays.emplace("first_moment", saved.parameters);
  save_checkpoint(path, saved, state, arrays);
  const auto loaded = load_resumable_checkpoint(path);
  REQUIRE(loaded);
  CHECK(loaded->state.updates == 1234);
  CHECK(loaded->state.history.at(0).loss == 1.0 / 3);
  CHECK(loaded->state.settings == state.settings);
  CHECK(std::ranges::equal(loaded->arrays.at("first_moment").flat(), saved.parameters.flat()));
}

TEST_CASE("checkpoint: parameters that are not finite are not saved, and the old file stays") {
  const ScratchFolder folder;
  const std::string path = folder / "m.h5";
  Checkpoint checkpoint = make_checkpoint();
  save_checkpoint(path, checkpoint);
  const std::string before = slurp(path);
  checkpoint.parameters.flat()[5] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_WITH_AS(save_checkpoint(path, checkpoint),
                       "the parameter embeddings/shared/weight is not finite; not saved", Error);
  CHECK(slurp(path) == before);
}

TEST_CASE("checkpoint: files that are none are named as what they are") {
  const ScratchFolder folder;
  CHECK(contains(message(folder / "none.h5"), "none.h5: cannot open: No such file or directory"));
  spit(folder / "text.h5", "hello\n");
  CHECK(contains(message(folder / "text.h5"), "is not a heed checkpoint: not an HDF5 file"));
  spit(folder / "vocab", "heed-vocabulary 1\n");
  CHECK(contains(message(folder / "vocab"), "is a vocabulary, not a checkpoint (train -v "));
  h5::File::create(folder / "foreign.h5", "foreign").close();
  CHECK(contains(message(folder / "foreign.h5"), "is an HDF5 file but not a heed checkpoint"));
  h5::File other = h5::File::create(folder / "other.h5", "other");
  other.write_attribute("/", "format", std::string("heed-checkpoint"));
  other.write_attribute("/", "format_version", std::int64_t{1});
  other.write_attribute("/", "task", std::string("bird"));
  other.close();
  CHECK(contains(message(folder / "other.h5"),
                 "holds a model of the architecture 'bird'; this heed reads 'transformer', 'rnn', 'rnn-attention'"));
  h5::File later = h5::File::create(folder / "later.h5", "later");
  later.write_attribute("/", "format", std::string("heed-checkpoint"));
  later.write_attribute("/", "format_version", std::int64_t{2});
  later.close();
  CHECK(contains(message(folder / "later.h5"), "has checkpoint format version 2; this heed reads version 1"));
  h5::File no_version = h5::File::create(folder / "no_version.h5", "no_version");
  no_version.write_attribute("/", "format", std::string("heed-checkpoint"));
  no_version.write_attribute("/", "format_version", std::vector<std::string>{});
  no_version.close();
  CHECK(
      contains(message(folder / "no_version.h5"), "has checkpoint format version nothing; this heed reads version 1"));
  h5::File no_task = h5::File::create(folder / "no_task.h5", "no_task");
  no_task.write_attribute("/", "format", std::string("heed-checkpoint"));
  no_task.write_attribute("/", "format_version", std::int64_t{1});
  no_task.write_attribute("/", "task", std::vector<std::string>{});
  no_task.close();
  CHECK(contains(message(folder / "no_task.h5"), "holds a model of the architecture 'nothing'; this heed reads "));
}

TEST_CASE("checkpoint: an attribute that refers to one long text many times is not read") {
  const ScratchFolder folder;
  const std::string path = folder / "texts.h5";
  // The attribute is so large that HDF5 stores the references to the texts without a checksum.
  constexpr std::size_t kTexts = 5000, kReference = 16;
  std::vector<std::string> texts(kTexts, "x");
  texts.front().assign(20001, 'y');
  h5::File out = h5::File::create(path, path);
  out.write_attribute("/", "texts", texts);
  out.close();
  CHECK(h5::File::open(path).read_attribute("/", "texts") == FieldValue(texts));
  std::string bytes = slurp(path);
  const std::string long_text("\x21\x4e\0\0", 4), short_text("\1\0\0\0", 4);  // the lengths begin the references
  std::size_t first = bytes.find(long_text);
  while (first != std::string::npos && bytes.compare(first + kReference, short_text.size(), short_text) != 0)
    first = bytes.find(long_text, first + 1);
  REQUIRE(first != std::string::npos);
  for (std::size_t i = 1; i < kTexts; ++i) bytes.replace(first + i * kReference, kReference, bytes, first, kReference);
  spit(path, bytes);
  CHECK(message(path, [](const std::string& file) { h5::File::open(file).read_attribute("/", "texts"); }) ==
        path + ": /@texts: claims more text than the file holds");
}

TEST_CASE("checkpoint: no truncated file loads, and every error names it") {
  const ScratchFolder folder;
  const std::string path = folder / "m.h5", cut = folder / "cut.h5";
  save_checkpoint(path, make_checkpoint());
  const std::string bytes = slurp(path);
  for (std::size_t size = 0; size + 20 < bytes.size(); size += bytes.size() / 23) {
    spit(cut, bytes.substr(0, size));
    INFO("size ", size);
    CHECK(contains(message(cut), cut + ": "));
  }
}

TEST_CASE("checkpoint: any flipped byte is found; without the checksum nothing crashes") {
  const ScratchFolder folder;
  const std::string path = folder / "m.h5", flipped = folder / "flipped.h5";
  save_checkpoint(path, make_checkpoint());
  const std::string bytes = slurp(path);
  for (std::size_t at = 8; at < bytes.size(); at += 397) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    spit(flipped, damaged);
    INFO("byte ", at);
    CHECK(contains(message(flipped), "is damaged: its checksum does not match its contents"));
    damaged.resize(damaged.size() - 20);
    spit(flipped, damaged);
    message(flipped);
  }
}

TEST_CASE("checkpoint: where training can go on, damage to its arrays is no matter to the model alone") {
  const ScratchFolder folder;
  const std::string path = folder / "m.h5", flipped = folder / "flipped.h5";
  Checkpoint checkpoint = make_checkpoint(1024);
  TrainingArrays arrays;
  arrays.emplace("moment", checkpoint.parameters).first->second.initialise(4);
  save_checkpoint(path, checkpoint, {}, arrays);
  const std::string bytes = slurp(path);
  const auto line = bytes.rfind("heed-crc32-outline=");
  REQUIRE(line == bytes.size() - 57);
  // The model has four arrays of 1024 x 8, the two feed-forward weights of encoder and of decoder. These weights, and
  // the four arrays "moment" of the same size, have data ranges. `ranges` are the data ranges of "moment",
  // which load_checkpoint() does not read.
  std::vector<std::pair<std::size_t, std::size_t>> ranges, weights;
  std::istringstream lines(bytes.substr(line - std::stoul(bytes.substr(line + 28, 8), nullptr, 16)));
  for (std::string text; std::getline(lines, text) && !text.starts_with("heed-");) {
    std::istringstream words(text);
    std::size_t begin = 0, end = 0;
    words >> begin >> end;
    CHECK(end - begin == 1024 * 8 * sizeof(float));
    (std::count(text.begin(), text.end(), ' ') == 2 ? weights : ranges).emplace_back(begin, end);
  }
  REQUIRE(ranges.size() == 4);
  REQUIRE(weights.size() == 4);
  const std::string damage = "is damaged: its checksum does not match its contents";
  int spared = 0, found = 0;
  for (std::size_t at = 8; at + 20 < bytes.size(); at += 977) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    spit(flipped, damaged);
    INFO("byte ", at);
    const bool in_training =
        std::ranges::any_of(ranges, [&](const auto& range) { return at >= range.first && at < range.second; });
    (in_training ? spared : found)++;
    CHECK(contains(message(flipped), in_training ? "no error" : damage));
    CHECK(contains(message(flipped, load_resumable_checkpoint), damage));
  }
  CHECK(spared > 10);
  CHECK(found > 10);
  for (std::size_t at = line - 70; at + 20 < bytes.size(); ++at) {  // each byte of the checksum lines
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x01);
    spit(flipped, damaged);
    INFO("byte ", at);
    CHECK(contains(message(flipped), damage));
  }
}

TEST_CASE("checkpoint: weights are checked as they are read, in any order, and the rest at the end") {
  const ScratchFolder folder;
  const std::string path = folder / "m.h5", flipped = folder / "flipped.h5";
  const Checkpoint checkpoint = make_checkpoint(1024);
  save_checkpoint(path, checkpoint);
  const std::string bytes = slurp(path), damage = ": is damaged: its checksum does not match its contents";
  const std::vector<ParameterInfo>& all = checkpoint.model->layout().all();
  const ParameterInfo layer = *std::ranges::find(all, "encoder/layers/0/feed_forward/in/weight", &ParameterInfo::name);
  REQUIRE(layer.shape.size() == 1024 * 8);
  const auto values = checkpoint.parameters.flat().subspan(static_cast<std::size_t>(layer.offset), 1024 * 8);
  const auto at = bytes.find(std::string(reinterpret_cast<const char*>(values.data()), 64));
  REQUIRE(at != std::string::npos);
  std::string damaged = bytes;
  damaged[at + 4 * 5000] = static_cast<char>(damaged[at + 4 * 5000] ^ 1);
  spit(flipped, damaged);
  std::vector<float> part(1024);
  const auto read = [&](const UnreadCheckpoint& unread, std::int64_t piece) {
    unread.reader->read(layer.offset + 1024 * piece, part);
    return std::ranges::equal(part, values.subspan(static_cast<std::size_t>(1024 * piece), 1024));
  };
  const UnreadCheckpoint good = open_unread_checkpoint(path);
  for (const std::int64_t piece : {3, 0, 1, 1, 7, 6, 2, 5, 4, 4}) CHECK(read(good, piece));
  good.reader->finish();

  const UnreadCheckpoint bad = open_unread_checkpoint(flipped);
  for (const std::int64_t piece : {3, 0, 1, 1, 7, 6, 2}) CHECK(read(bad, piece));
  CHECK_FALSE(read(bad, 4));
  CHECK_THROWS_WITH_AS(read(bad, 5), doctest::Contains(damage.c_str()),
                       Error);  // piece 5 is the last one: the CRC is compared

  const UnreadCheckpoint unread = open_unread_checkpoint(flipped);
  CHECK(read(unread, 3));
  CHECK_THROWS_WITH_AS(unread.reader->finish(), doctest::Contains(damage.c_str()), Error);
}

TEST_CASE("checkpoint: lines of ranges that are none, or none of a dataset, are damage, whatever their checksum") {
  const ScratchFolder folder;
  const std::string path = folder / "m.h5", other = folder / "other.h5";
  save_checkpoint(path, make_checkpoint(1024));
  const std::string bytes = slurp(path), damage = "is damaged: its checksum does not match its contents";
  const auto line = bytes.rfind("heed-crc32-outline=");
  const auto first = line - std::stoul(bytes.substr(line + 28, 8), nullptr, 16);
  const std::string lines = bytes.substr(first, line - first);
  const auto hexadecimal = [](std::size_t number) {
    std::ostringstream out;
    out << std::hex << std::setw(8) << std::setfill('0') << number;
    return out.str();
  };
  /// Writes the checkpoint with the lines `text` about data ranges and with correct checksums, and returns the message
  /// of reading the file. `left_out` are the data ranges, which the outline's checksum does not cover.
  const auto with = [&](const std::string& text, const std::vector<std::pair<std::size_t, std::size_t>>& left_out) {
    std::string outline;
    std::size_t at = 0;
    for (const auto& [from, to] : left_out) outline += bytes.substr(at, from - at), at = to;
    outline += bytes.substr(at, first - at) + text;
    std::string all = bytes.substr(0, first) + text + "heed-crc32-outline=" + hexadecimal(Checksum::of(outline).crc) +
                      " " + hexadecimal(text.size()) + "\n";
    spit(other, all + "heed-crc32=" + hexadecimal(Checksum::of(all).crc) + "\n");
    return message(other);
  };
  const auto range = [](std::size_t from, std::size_t to) { return std::to_string(from) + " " + std::to_string(to); };
  CHECK(with("", {}) == "no error");
  std::vector<std::pair<std::size_t, std::size_t>> apart;
  std::istringstream all_lines(lines);
  for (std::string text; std::getline(all_lines, text);) {
    std::istringstream words(text);
    words >> apart.emplace_back().first >> apart.back().second;
  }
  REQUIRE(apart.size() == 4);
  CHECK(with(lines, apart) == "no error");
  const auto [begin, end] = apart.front();
  const std::string good = hexadecimal(Checksum::of(std::span(bytes).subspan(begin, end - begin)).crc);
  CHECK(with(range(begin, end) + " " + good + "\n", {{begin, end}}) == "no error");
  CHECK(contains(with(range(begin, end) + " 00000000\n", {{begin, end}}), damage));
  CHECK(contains(with(range(begin + 4, end) + " " + good + "\n", {{begin + 4, end}}), damage));
  CHECK(contains(with(range(begin, end - 4) + " " + good + "\n", {{begin, end - 4}}), damage));
  CHECK(contains(with(range(begin - 4, end) + " " + good + "\n", {{begin - 4, end}}), damage));
  for (const std::string wrong :
       {"x", "1", "1 ", "1 2", "2 1\n", "-1 2\n", "1 2 3\n", "1 2 0000000g\n", "1 2 000000000\n", "1 2\n1 3\n",
        "99999999999999999999 99999999999999999999\n", "1 999999999999\n", "\n"}) {
    CAPTURE(wrong);
    CHECK(contains(with(wrong, {}), damage));
  }
}

TEST_CASE("checksums of parts of a range, in any order") {
  std::string bytes(1000, ' ');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i % 251);
  const std::uint32_t all = Checksum::of(bytes).crc;
  const std::vector<std::pair<std::size_t, std::size_t>> parts = {
      {0, 10}, {10, 400}, {400, 401}, {401, 900}, {900, 1000}};
  std::vector<std::size_t> order = {0, 1, 2, 3, 4};
  do {
    RangeChecksum sum({5000, 6000});
    for (const std::size_t i : order) {
      CHECK_FALSE(sum.whole());
      const auto [begin, end] = parts[i];
      sum.add(static_cast<std::int64_t>(5000 + begin), Checksum::of(std::span(bytes).subspan(begin, end - begin)));
      // The first byte of the part has already been added: the range ignores or replaces it.
      sum.add(static_cast<std::int64_t>(5000 + begin), Checksum::of(std::span(bytes).subspan(begin, 1)));
    }
    CHECK(sum.whole());
    CHECK(sum.missing().empty());
    CHECK(sum.crc() == all);
  } while (std::next_permutation(order.begin(), order.end()));

  RangeChecksum sum({0, 1000});
  sum.add(100, Checksum::of(std::span(bytes).subspan(100, 50)));
  sum.add(140, Checksum::of(std::span(bytes).subspan(140, 50)));  // ignored: overlaps the part before
  sum.add(90, Checksum::of(std::span(bytes).subspan(90, 20)));
  sum.add(600, Checksum::of(std::span(bytes).subspan(600, 10)));
  sum.add(620, Checksum::of(std::span(bytes).subspan(620, 80)));
  sum.add(590, Checksum::of(std::span(bytes).subspan(590, 110)));  // replaces the two parts before
  sum.add(150, Checksum::of(std::span(bytes).subspan(150, 440)));
  sum.add(700, Checksum::of(std::span(bytes).subspan(700, 300)));
  const std::vector<ByteRange> missing = sum.missing();
  REQUIRE(missing.size() == 1);
  CHECK(missing[0].begin == 0);
  CHECK(missing[0].end == 100);
  sum.add(0, Checksum::of(std::span(bytes).first(100)));
  CHECK(sum.whole());
  CHECK(sum.crc() == all);
}

TEST_CASE("checkpoint: a file whose weights are not numbers is none") {
  const ScratchFolder folder;
  const std::string path = folder / "m.h5";
  Checkpoint checkpoint = make_checkpoint();
  const float marked = 12345.678F, wrong = std::numeric_limits<float>::quiet_NaN();
  checkpoint.parameters.flat()[5] = marked;
  save_checkpoint(path, checkpoint);
  std::string bytes = slurp(path);
  bytes.resize(bytes.size() - 20);  // removes the checksum line
  const auto as_bytes = [](const float& x) { return std::string(reinterpret_cast<const char*>(&x), sizeof x); };
  const auto at = bytes.find(as_bytes(marked));
  REQUIRE(at != std::string::npos);
  spit(path, bytes.replace(at, sizeof marked, as_bytes(wrong)));
  CHECK(message(path) == path + ": /parameters/embeddings/shared/weight holds numbers that are not finite");
}

/// Creates a checkpoint file with all attributes and text models, but without parameters. `change` may change the
/// config before.
h5::File without_parameters(
    const std::string& path, const Checkpoint& checkpoint,
    const std::function<void(TransformerConfig&)>& change = [](TransformerConfig&) {}) {
  h5::File file = h5::File::create(path, path);
  file.write_attribute("/", "format", std::string("heed-checkpoint"));
  file.write_attribute("/", "format_version", std::int64_t{1});
  file.write_attribute("/", "task", std::string("transformer"));
  file.make_group("/config");
  TransformerConfig config = std::get<TransformerConfig>(checkpoint.model->config());
  change(config);
  const FieldList fields = FieldList::of(config);
  for (const Field& field : fields.all()) file.write_attribute("/config", attribute_name(field.info.name), field.get());
  write_text_models(file, checkpoint.source, checkpoint.target);
  return file;
}

TEST_CASE("checkpoint: missing, extra and wrongly shaped datasets are listed in one message") {
  const ScratchFolder folder;
  const std::string path = folder / "m.h5";
  h5::File file = without_parameters(path, make_checkpoint());
  const std::vector<float> data(12);
  const std::int64_t shape[] = {4, 3};
  file.write_floats("/parameters/embeddings/shared/weight", data, shape);
  file.write_floats("/parameters/bonus/weight", data, shape);
  file.close();
  const std::string said = message(path);
  CHECK(contains(said, "/parameters does not fit the model in /config:"));
  CHECK(contains(said, "\n  wrong shape: embeddings/shared/weight is [4, 3], the config says [7, 8]"));
  CHECK(contains(said, "\n  missing: encoder/layers/0/self_attention/query/weight"));
  CHECK(contains(said, "\n  not part of the model: bonus/weight"));
}

TEST_CASE("checkpoint: a config that contradicts itself is an error that names the file") {
  const ScratchFolder folder;
  const std::string path = folder / "m.h5";
  without_parameters(path, make_checkpoint(), [](TransformerConfig& config) { config.heads = 3; }).close();
  CHECK(message(path).starts_with(path + ": /config: --dim-emb 8 is not a multiple of --transformer-heads 3"));
  without_parameters(path, make_checkpoint(), [](TransformerConfig& config) {
    config.next_word = true;
    config.source_word_ends = config.target_word_ends = "f";
  }).close();
  CHECK(message(path) == path + ": /config: a set of pieces has 1 digits, but the vocabulary has 7 pieces");
}

TEST_CASE("checkpoint: a file that claims more than it holds is an error before memory is taken") {
  const ScratchFolder folder;
  const std::string path = folder / "m.h5";
  const Checkpoint checkpoint = make_checkpoint();
  {
    h5::File file = without_parameters(path, checkpoint);
    for (const std::string group : {"/parameters/", "/training/moment/"}) {
      for (const ParameterInfo& info : checkpoint.model->layout().all()) {
        std::vector<std::int64_t> shape;
        for (int axis = 0; axis < info.shape.rank(); ++axis) shape.push_back(info.shape[axis]);
        file.write_floats(group + info.name, std::vector<float>(static_cast<std::size_t>(info.shape.size())), shape);
      }
    }
    for (int i = 0; i < 30; ++i) file.link("/training/moment", "/training/again" + std::to_string(i));
    file.write_bytes("/training/state", std::string("x"));
    file.close();
  }
  CHECK(message(path) == "no error");
  CHECK(contains(message(path, load_resumable_checkpoint), ": the arrays claim more bytes than the file holds"));

  // A forged file may refer to one long text 200 times, and so claim more text than the file holds.
  std::vector<std::string> texts(200, "x");
  texts.front() = std::string(60000, 'y');
  h5::File file = h5::File::create(path, path);
  file.write_strings("/texts", texts);
  file.close();
  CHECK(h5::File::open(path).read_strings("/texts") == texts);
  std::string bytes = slurp(path);
  const auto first = bytes.find(std::string("\x60\xea\0\0", 4));  // 60,000, the length in the text's reference
  REQUIRE(first != std::string::npos);
  for (std::size_t i = 1; i < texts.size(); ++i) bytes.replace(first + 16 * i, 16, bytes, first, 16);
  spit(path, bytes);
  CHECK(contains(message(path, [](const std::string& from) { return h5::File::open(from).read_strings("/texts"); }),
                 "/texts: cannot read (the file is damaged): "));
}

TEST_CASE("checkpoint: an attribute that is no single value says what it is") {
  const ScratchFolder folder;
  const std::string path = folder / "m.h5";
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t sizes[] = {0, 2};
  const auto add = [&](const char* name, hid_t type, hid_t space) {
    H5Aclose(H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
  };
  add("none", H5T_NATIVE_INT64, H5Screate_simple(1, &sizes[0], nullptr));
  add("two", H5T_NATIVE_DOUBLE, H5Screate_simple(1, &sizes[1], nullptr));
  add("texts", H5T_C_S1, H5Screate_simple(1, &sizes[1], nullptr));
  add("null", H5T_NATIVE_INT64, H5Screate(H5S_NULL));
  H5Fclose(file);
  const h5::File opened = h5::File::open(path);
  for (const std::string name : {"none", "two", "texts"})
    CHECK_THROWS_WITH_AS(
        opened.read_attribute("/", name),
        (path + ": /@" + name + ": is an array, but only texts of variable length may be in an array (write one value)")
            .c_str(),
        Error);
  CHECK_THROWS_WITH_AS(opened.read_attribute("/", "null"), (path + ": /@null: holds no value").c_str(), Error);
}

TEST_CASE("checkpoint: compressed datasets are refused, with the command that unpacks them") {
  const ScratchFolder folder;
  const std::string path = folder / "m.h5";
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t size = 500;
  const hid_t space = H5Screate_simple(1, &size, nullptr), text = H5Tcopy(H5T_C_S1),
              how = H5Pcreate(H5P_DATASET_CREATE);
  H5Tset_size(text, H5T_VARIABLE);
  H5Pset_chunk(how, 1, &size);
  REQUIRE(H5Pset_deflate(how, 5) >= 0);
  const std::vector<float> floats(size);
  const std::vector<const char*> texts(size, "piece");
  const auto write = [&](const char* name, hid_t type, const void* data) {
    const hid_t id = H5Dcreate2(file, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT);
    CHECK(H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    H5Dclose(id);
  };
  write("weight", H5T_NATIVE_FLOAT, floats.data());
  write("texts", text, texts.data());
  H5Pclose(how);
  H5Tclose(text);
  H5Sclose(space);
  H5Fclose(file);
  const auto refused = [&](const std::string& name) {
    return path + ": " + name +
           ": is compressed, or has another filter of HDF5, which heed does not read (h5repack -f NONE " + path +
           " NEW.h5 removes all filters)";
  };
  const h5::File opened = h5::File::open(path);
  CHECK_THROWS_WITH_AS(opened.dataset("/weight"), refused("/weight").c_str(), Error);
  CHECK_THROWS_WITH_AS(opened.read_strings("/texts"), refused("/texts").c_str(), Error);
}

TEST_CASE("checkpoint: after a save that failed at any byte, the old file is whole and others can be saved") {
  const ScratchFolder folder;
  const std::string path = folder / "m.h5";
  const Checkpoint checkpoint = make_checkpoint(1024);
  TrainingArrays arrays;
  arrays.emplace("moment", checkpoint.parameters);
  save_checkpoint(path, checkpoint, {}, arrays);
  const std::string before = slurp(path);
  const auto save_with_limit = [&](std::size_t most) {
    rlimit limit{}, lower{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    lower = limit;
    lower.rlim_cur = most;
    ::setrlimit(RLIMIT_FSIZE, &lower);
    const std::string said = message(path, [&](const std::string& to) { save_checkpoint(to, checkpoint, {}, arrays); });
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return said;
  };
  // A child process runs this test: the limit of file sizes is for the whole process, and HDF5 leaks memory when a
  // write fails.
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const std::ptrdiff_t open_files = entries("/proc/self/fd");
    for (std::size_t most = 0; most < before.size(); most += before.size() / 37) {
      const std::string said = save_with_limit(most);
      if (!said.starts_with(path + ": ") || !said.ends_with(": File too large")) ::_exit(1);
      if (slurp(path) != before || entries(folder.path()) != 1) ::_exit(2);
      if (entries("/proc/self/fd") != open_files) ::_exit(3);
    }
    save_checkpoint(folder / "other.h5", checkpoint);
    ::_exit(message(folder / "other.h5") == "no error" ? 0 : 4);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("checkpoint: a full disk is an error, and another one is not") {
  const ScratchFolder folder;
  const std::string disk = folder / "disk";
  fs::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=256k") != 0) {
    MESSAGE("skipped: only root can mount a small disk");
    return;
  }
  const Checkpoint checkpoint = make_checkpoint(8192);
  for (int i = 0; i < 3; ++i) {
    const std::string said = message(disk + "/m.h5", [&](const std::string& to) { save_checkpoint(to, checkpoint); });
    CHECK(said.starts_with(disk + "/m.h5: /parameters/"));
    CHECK(said.ends_with(": cannot write: No space left on device"));
    CHECK(fs::is_empty(disk));
    save_checkpoint(folder / "other.h5", checkpoint);
    CHECK(message(folder / "other.h5") == "no error");
  }
  ::umount(disk.c_str());
}

TEST_CASE("checkpoint: a device is not replaced by a file") {
  CHECK_THROWS_WITH_AS(save_checkpoint("/dev/null", make_checkpoint()),
                       "/dev/null: is not a regular file (name a file that may be replaced)", Error);
}
