#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "../train/small_run.h"
#include "heed/run/train.h"

namespace heed {

using Words = std::vector<std::string>;

/// What a tool has written to standard output, and what it has said.
struct ToolResult {
  std::string out, log;
};

/// Runs a tool with these words of its command line, and checks that it succeeds: run(options, in, out, log) is the
/// tool.
template <class Options, class Run>
ToolResult run_tool(const ToolInfo& tool, const Words& words, const Run& run) {
  Options options;
  std::istringstream in;
  std::ostringstream out, messages;
  parse_command_line(tool, FieldList::of(options), words, out);
  Log log(messages, std::string(tool.name));
  const int code = run(options, in, out, log);
  CHECK(code == 0);
  return {out.str(), messages.str()};
}

/// A folder with a vocabulary and sentence pairs, of which eight make a batch: 120 pairs make 15 updates per epoch.
struct Lessons {
  TemporaryFolder folder;
  std::string model = folder / "m.h5", source = folder / "source", target = folder / "target",
              vocabulary = folder / "vocab";

  explicit Lessons(const std::string& name = "heed_train", int pairs = 120) : folder(name) {
    std::ofstream in(source), out(target);
    for (int i = 0; i < pairs; ++i) {
      const std::string first(1, static_cast<char>('a' + i % 8)), second(1, static_cast<char>('a' + i / 8 % 8));
      in << first << ' ' << second << '\n';
      out << second << ' ' << first << '\n';
    }
    std::ofstream words(vocabulary);
    letters().write(words);
  }

  ToolResult train(const Words& more) const {
    Words words = {"-t",
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
                   "float32"};
    words.insert(words.end(), more.begin(), more.end());
    return run_tool<TrainOptions>(train_tool_info(), words, run_train);
  }
  ResumableCheckpoint state() const { return load_resumable_checkpoint(model).value(); }
  std::vector<float> parameters() const {
    const auto saved = state();
    return {saved.checkpoint.parameters.flat().begin(), saved.checkpoint.parameters.flat().end()};
  }
};

}  // namespace heed
