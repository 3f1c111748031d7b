#include "heed/run/line_pipeline.h"

#include "heed/base/streams.h"

namespace heed {
namespace {

/// A chunk: consecutive lines that one thread processes together, and the output for these lines.
struct Chunk {
  static constexpr std::size_t kLines = 512;

  // The text of all lines, one after the other, in one block of memory that moves between threads.
  std::string text;
  std::vector<std::size_t> ends;
  // The line number of the chunk's first line, counted from 1.
  std::int64_t first = 1;
  std::string out;
  // The number of lines of the chunk whose output is already in `out`.
  std::size_t worked = 0;

  std::size_t bytes() const { return text.size(); }
  void free() {
    for (std::string* each : {&text, &out}) std::string().swap(*each);
  }
};

}  // namespace

void run_line_pipeline(LineReader& reader, int threads, const LineStages& job) {
  std::string next;
  PipelineStages<Chunk> stages{
      .read =
          [&](Chunk& chunk) {
            chunk.text.clear();
            chunk.ends.clear();
            chunk.first = reader.line_number() + 1;
            do {
              if (!reader.next(next)) break;
              chunk.ends.push_back(chunk.text.append(next).size());
            } while (chunk.ends.size() < Chunk::kLines && chunk.text.size() < kPipelineItemBytes && reader.ready());
            return !chunk.ends.empty();
          },
      .ready = [&] { return reader.ready(); },
      .work =
          [&](Chunk& chunk, int) {
            thread_local std::string line;
            chunk.out.clear();
            std::size_t& i = chunk.worked = 0;
            for (std::size_t begin = 0; i < chunk.ends.size(); begin = chunk.ends[i++]) {
              line.assign(chunk.text, begin, chunk.ends[i] - begin);
              const std::int64_t number = chunk.first + static_cast<std::int64_t>(i);
              try {
                job.work(line, number, chunk.out);
              } catch (const LineError& error) {
                throw error.at(reader.name(), number, line);
              }
            }
          },
      .take = [&](Chunk& chunk) { job.take(chunk.out, static_cast<std::int64_t>(chunk.worked)); },
      .idle = job.idle};
  if (job.take_round)
    stages.take_round = [&](const std::vector<Chunk*>& chunks, const RunOnThreads& run) {
      std::vector<std::string_view> texts;
      for (const Chunk* chunk : chunks) texts.emplace_back(chunk->out);
      job.take_round(texts, run);
    };
  OrderedPipeline<Chunk>(thread_count(threads), std::move(stages)).run();
}

}  // namespace heed
