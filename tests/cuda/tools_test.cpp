// Runs the tools on a GPU: the same files, the same options, and the same results within rounding.

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "../train/small_run.h"
#include "heed/run/inspect_attention.h"
#include "heed/run/train.h"
#include "heed/run/translate.h"

namespace heed {
namespace {

using Words = std::vector<std::string>;

// The emulation is for one thread. On a GPU, several threads translate batches of their own.
#ifdef HEED_EMULATED_GPU
const std::string kThreads = "1";
#else
const std::string kThreads = "3";
#endif

/// A folder with a vocabulary and 40 sentence pairs. Batches of eight pairs make 5 updates per epoch.
struct Lessons {
  TemporaryFolder folder{"heed_gpu_tools"};
  std::string source = folder / "source", target = folder / "target", vocabulary = folder / "vocab";

  Lessons() {
    std::ofstream in(source), out(target);
    for (int i = 0; i < 40; ++i) {
      const std::string first(1, static_cast<char>('a' + i % 8)), second(1, static_cast<char>('a' + i / 8 % 8));
      in << first << ' ' << second << '\n';
      out << second << ' ' << first << '\n';
    }
    std::ofstream words(vocabulary);
    letters().write(words);
  }

  /// Trains the model `name` until `after`, and returns its parameters.
  std::vector<float> train(const std::string& name, const std::string& device, const std::string& after) const {
    const std::string model = folder / name;
    const Words words = {"-t",
                         source,
                         target,
                         "-v",
                         vocabulary,
                         "-m",
                         model,
                         "-j",
                         "1",
                         "--task",
                         "transformer-tiny",
                         "--enc-depth",
                         "1",
                         "--dec-depth",
                         "1",
                         "--dim-emb",
                         "16",
                         "--transformer-dim-ffn",
                         "16",
                         "--mini-batch",
                         "8",
                         "--precision",
                         "float32",
                         "--lr-warmup",
                         "5",
                         "--learn-rate",
                         "0.01",
                         "--device",
                         device,
                         "--after",
                         after};
    TrainOptions options;
    std::istringstream in;
    std::ostringstream out, messages;
    parse_command_line(train_tool_info(), FieldList::of(options), words, out);
    Log log(messages, "train");
    CHECK(run_train(options, in, out, log) == 0);
    const ResumableCheckpoint saved = load_resumable_checkpoint(model).value();
    return {saved.checkpoint.parameters.flat().begin(), saved.checkpoint.parameters.flat().end()};
  }

  std::string translate(const std::string& name, const std::string& device, const Words& more) const {
    Words words = {"-m",       folder / name, "--mini-batch",        "7", "-j", kThreads,
                   "--device", device,        "--max-output-length", "6", "-i", source};
    words.insert(words.end(), more.begin(), more.end());
    TranslateOptions options;
    std::istringstream in;
    std::ostringstream out, messages;
    parse_command_line(translate_tool_info(), FieldList::of(options), words, out);
    Log log(messages, "translate");
    CHECK(run_translate(options, in, out, log) == 0);
    return out.str() + messages.str();
  }

  std::string inspect(const std::string& name, const std::string& device) const {
    const Words words = {"-m",     folder / name, "-i",      source, "--lines", "1-3", "-f",       "tsv",
                         "--kind", "all",         "--layer", "all",  "--head",  "all", "--device", device};
    InspectAttentionOptions options;
    std::istringstream in;
    std::ostringstream out, messages;
    parse_command_line(inspect_attention_tool_info(), FieldList::of(options), words, out);
    Log log(messages, "inspect-attention");
    CHECK(run_inspect_attention(options, {}, 80, in, out, log) == 0);
    return out.str();
  }
};

/// Returns the mean difference of the parameters of two models. A parameter without a gradient, such as the bias of
/// keys, follows the rounding of its gradient to any place, so that the largest difference says nothing.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
  return sum / static_cast<double>(a.size());
}

TEST_CASE("a training goes on on another device with the same file, and on the same with the same bits") {
  constexpr double kNear = 3e-4;
  const Lessons lessons;
  const std::vector<float> cpu = lessons.train("cpu.h5", "cpu", "3e"), gpu = lessons.train("gpu.h5", "cuda:0", "3e");
  CHECK(difference(cpu, gpu) > 0);
  CHECK(difference(cpu, lessons.train("early.h5", "cpu", "2e")) > 20 * kNear);
  CHECK(difference(cpu, gpu) < kNear);
  lessons.train("both.h5", "cpu", "2e");
  CHECK(difference(lessons.train("both.h5", "cuda:0", "3e"), cpu) < kNear);
  lessons.train("back.h5", "cuda:0", "1e");
  CHECK(difference(lessons.train("back.h5", "cpu", "3e"), cpu) < kNear);
  lessons.train("again.h5", "cuda:0", "2e");
  CHECK(lessons.train("again.h5", "cuda:0", "3e") == gpu);
}

TEST_CASE("translate on a GPU writes what it writes on the CPU, and says where it was") {
  const Lessons lessons;
  lessons.train("m.h5", "cpu", "3e");
  for (const Words& more :
       {Words{}, Words{"-b", "1"}, Words{"--n-best", "2", "--alignment"}, Words{"--search", "sample"},
        Words{"--score", lessons.target}, Words{"--precision", "int8"}}) {
    CAPTURE(more.empty() ? "" : more.front());
    const auto without_numbers = [](std::string text) {
      std::erase_if(text, [](char c) { return (c >= '0' && c <= '9') || c == '.' || c == '-'; });
      return text;
    };
    CHECK(without_numbers(lessons.translate("m.h5", "cuda:0", more)) ==
          without_numbers(lessons.translate("m.h5", "cpu", more)));
  }
  const std::string said = lessons.translate("m.h5", "cuda:0", {"--stats"});
  CHECK(said.find("pieces/s, cuda:0\n") != std::string::npos);
  CHECK(said.find("expected: no prediction for a GPU\n") != std::string::npos);
}

TEST_CASE("inspect-attention on a GPU writes the weights that it writes on the CPU") {
  const Lessons lessons;
  lessons.train("m.h5", "cpu", "3e");
  std::istringstream gpu(lessons.inspect("m.h5", "cuda:0")), cpu(lessons.inspect("m.h5", "cpu"));
  int lines = 0;
  for (std::string found, expected; std::getline(cpu, expected); ++lines) {
    REQUIRE(std::getline(gpu, found));
    const auto at = expected.rfind('\t');
    CHECK(found.substr(0, at) == expected.substr(0, at));
    if (lines > 0) CHECK(std::stod(found.substr(at)) == doctest::Approx(std::stod(expected.substr(at))).epsilon(1e-3));
  }
  CHECK(lines > 50);
  std::string more;
  CHECK(!std::getline(gpu, more));
}

}  // namespace
}  // namespace heed
