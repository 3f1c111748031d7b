// Runs the tools on a GPU: the same files, the same options, and the same results within rounding.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <sstream>

#ifdef HEED_EMULATED_GPU
#include "cuda_emulation.h"
#endif
#include "../run/lessons.h"
#include "heed/run/inspect_attention.h"
#include "heed/run/translate.h"
#include "heed/tensor/memory.h"

namespace heed {
namespace {

// The emulation is for one thread. On a GPU, several threads translate batches of their own.
#ifdef HEED_EMULATED_GPU
const std::string kThreads = "1";
#else
const std::string kThreads = "3";
#endif

/// 40 sentence pairs, and a model that learns from them: 5 updates per epoch.
struct SmallLessons : Lessons {
  explicit SmallLessons(const std::string& name) : Lessons("heed_gpu_tools_" + name, 40) {}

  /// Trains the model until `after`, and returns its parameters.
  std::vector<float> train(const std::string& device, const std::string& after) const {
    Lessons::train({"--lr-warmup", "5", "--learn-rate", "0.01", "--device", device, "--after", after});
    return parameters();
  }

  ToolResult translate(const std::string& device, const Words& more) const {
    Words words = {"-m",       model,  "--mini-batch",        "7", "-j", kThreads,
                   "--device", device, "--max-output-length", "6", "-i", source};
    words.insert(words.end(), more.begin(), more.end());
    return run_tool<TranslateOptions>(translate_tool_info(), words, run_translate);
  }

  ToolResult inspect(const std::string& device) const {
    const Words words = {"-m",     model, "-i",      source, "--lines", "1-3", "-f",       "tsv",
                         "--kind", "all", "--layer", "all",  "--head",  "all", "--device", device};
    return run_tool<InspectAttentionOptions>(
        inspect_attention_tool_info(), words,
        [](const auto& options, auto&... streams) { return run_inspect_attention(options, {}, 80, streams...); });
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

TEST_CASE("a training continues on another device from the same file, and on the same device with the same bits") {
  constexpr double kNear = 3e-4;
  const SmallLessons on_cpu("cpu"), on_gpu("gpu"), early("early"), both("both"), back("back"), again("again");
  const std::vector<float> cpu = on_cpu.train("cpu", "3e"), gpu = on_gpu.train("cuda:0", "3e");
  CHECK(difference(cpu, gpu) > 0);
  CHECK(difference(cpu, early.train("cpu", "2e")) > 20 * kNear);
  CHECK(difference(cpu, gpu) < kNear);
  both.train("cpu", "2e");
  CHECK(difference(both.train("cuda:0", "3e"), cpu) < kNear);
  back.train("cuda:0", "1e");
  CHECK(difference(back.train("cpu", "3e"), cpu) < kNear);
  again.train("cuda:0", "2e");
  CHECK(again.train("cuda:0", "3e") == gpu);
}

TEST_CASE("train on a GPU predicts the GPU's speed, from whole updates") {
  const SmallLessons lessons("plan");
  const auto plan = [&](const std::string& device, const Words& more) {
    Words words = {"--dry-run", "--device", device};
    words.insert(words.end(), more.begin(), more.end());
    return lessons.Lessons::train(words).out;
  };
  const std::string on_cpu = plan("cpu", {}), on_gpu = plan("cuda:0", {});
  CHECK(on_cpu.find("products of the layers") != std::string::npos);
  CHECK(on_cpu.find("measured updates") == std::string::npos);
  CHECK(on_gpu.find("target tokens/s, of which:\n    measured updates") != std::string::npos);
  CHECK(on_gpu.find("products of the layers") == std::string::npos);
  const auto updates_of_an_hour = [&](const std::string& device) {
    const std::string said = plan(device, {"--after", "1h"}), before = "1h, about ";
    REQUIRE(said.find(before) != std::string::npos);
    std::string number = said.substr(said.find(before) + before.size(), 30);
    std::erase(number, ',');
    return std::stod(number);
  };
  CHECK(updates_of_an_hour("cuda:0") > 0);
#ifdef HEED_EMULATED_GPU
  // The emulation is slow, and so the GPU's speed is not that of the CPU.
  CHECK(updates_of_an_hour("cuda:0") < 0.2 * updates_of_an_hour("cpu"));
#endif
  try {
    plan("cuda:0", {"--cluster", "nodes=2,bandwidth=1G,latency=50us"});
    FAIL("several machines with GPUs were predicted");
  } catch (const UsageError& error) {
    CHECK(std::string(error.what())
              .starts_with("--cluster: the speed of a training on a GPU is measured, not predicted"));
  }
}

TEST_CASE("translate on a GPU writes what it writes on the CPU, and says where it was") {
  const SmallLessons lessons("m");
  lessons.train("cpu", "3e");
  for (const Words& more :
       {Words{}, Words{"-b", "1"}, Words{"--n-best", "2", "--alignment"}, Words{"--search", "sample"},
        Words{"--score", lessons.target}, Words{"--precision", "int8"}}) {
    CAPTURE(more.empty() ? "" : more.front());
    const auto without_numbers = [](const ToolResult& result) {
      std::string text = result.out + result.log;
      std::erase_if(text, [](char c) { return (c >= '0' && c <= '9') || c == '.' || c == '-'; });
      return text;
    };
    CHECK(without_numbers(lessons.translate("cuda:0", more)) == without_numbers(lessons.translate("cpu", more)));
  }
  const std::string said = lessons.translate("cuda:0", {"--stats"}).log;
  CHECK(said.find("pieces/s, cuda:0\n") != std::string::npos);
  CHECK(said.find("expected: no prediction for a GPU\n") != std::string::npos);
}

#ifdef HEED_EMULATED_GPU
TEST_CASE("translate divides batches for which a GPU has not enough memory, and writes the same") {
  const SmallLessons lessons("m");
  lessons.train("cpu", "3e");
  const Words words = {"--mini-batch", "40", "-b", "4"};
  const ToolResult whole = lessons.translate("cuda:0", words);
  CHECK(whole.log.find("divided") == std::string::npos);
  // Searches for the least memory with which the lines can be translated at all.
  std::size_t too_little = 0, enough = std::size_t{1} << 30;
  std::string said;
  while (enough - too_little > 256) {
    const std::size_t limit = (too_little + enough) / 2;
    emulation::limit_gpu_memory(limit);
    try {
      const ToolResult result = lessons.translate("cuda:0", words);
      CHECK(result.out == whole.out);
      said = result.log;
      enough = limit;
    } catch (const OutOfGpuMemory& error) {
      CHECK(std::string(error.what()).starts_with("the emulated GPU has no "));
      too_little = limit;
    }
  }
  emulation::limit_gpu_memory(std::numeric_limits<std::size_t>::max());
  CHECK(said.find("the GPU has not enough memory for batches of 40 lines, which are divided (--mini-batch-words N or "
                  "--mini-batch N makes smaller ones)\n") != std::string::npos);
  CHECK(said.find("divided") == said.rfind("divided"));
}
#endif

TEST_CASE("inspect-attention on a GPU writes the weights that it writes on the CPU") {
  const SmallLessons lessons("m");
  lessons.train("cpu", "3e");
  std::istringstream gpu(lessons.inspect("cuda:0").out), cpu(lessons.inspect("cpu").out);
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
