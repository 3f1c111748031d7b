#include "heed/run/train_session.h"

#include <unistd.h>

#include <cstdio>

#include "heed/base/line_io.h"
#include "heed/ops/gemm/gemm.h"
#include "heed/train/translate_corpus.h"

namespace heed {
namespace {

constexpr int kNoLengthLimit = 1 << 30;

Precision resolve(PrecisionChoice choice) {
  const bool fast =
      has_fast_bfloat16();  // asked for every choice, so that a wrong HEED_ISA is said before text is read
  switch (choice) {
    case PrecisionChoice::float32:
      return Precision::float32;
    case PrecisionChoice::bfloat16:
      return Precision::bfloat16;
    case PrecisionChoice::automatic:
      return fast ? Precision::bfloat16 : Precision::float32;
  }
  throw Error("internal: unknown precision");
}

PairReader open_pairs(const std::vector<std::string>& files, std::istream& in, InvalidUtf8 policy) {
  return files.size() == 2 ? PairReader(files[0], files[1], policy) : PairReader(files.at(0), in, policy);
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out.empty() ? "not set" : out;
}

}  // namespace

TrainSession::TrainSession(const TrainOptions& options, std::istream& in, Log& log)
    : options_(options),
      log_(log),
      pool_(thread_count(options.threads)),
      source_(TextModel::read(options.vocabularies.front()).source()),
      target_(TextModel::read(options.vocabularies.back()).target()),
      config_(options.model_options.resolve(source_.size(), target_.size())),
      optimizer_(options.optimizer.resolve(config_.dim_emb)),
      precision_(resolve(options.batch.precision)) {
  tell_of_byte_order_mark(options.vocabularies.front(), log);
  if (options.vocabularies.back() != options.vocabularies.front())
    tell_of_byte_order_mark(options.vocabularies.back(), log);
  const bool learned = config_.positions == PositionEncoding::learned;
  if (learned && options.batch.max_length > config_.max_positions)
    throw UsageError("--max-length " + std::to_string(options.batch.max_length) + " is more than --max-positions " +
                     std::to_string(config_.max_positions));
  const EncodeOptions encode{options.batch.max_length, options.batch.on_long, options.pretokenized};
  PairReader reader =
      open_pairs(options.tsv.empty() ? options.train_sets : std::vector{options.tsv}, in, options.utf8.on_invalid_utf8);
  corpus_ = encode_corpus(reader, source_, target_, encode, pool_, log, report_);
  report_.tell(log, encode);
  if (!options.valid_sets.empty()) read_validation(in);
}

void TrainSession::read_validation(std::istream& in) {
  // Held-out text is taken as it is, as far as the model can.
  const bool learned = config_.positions == PositionEncoding::learned;
  const EncodeOptions encode{learned ? config_.max_positions : kNoLengthLimit, OnLong::crop, options_.pretokenized};
  PairReader reader = open_pairs(options_.valid_sets, in, options_.utf8.on_invalid_utf8);
  CorpusReport report;
  valid_corpus_ = encode_corpus(reader, source_, target_, encode, pool_, log_, report, &valid_lines_);
  report.tell(log_, encode);
}

Checkpoint TrainSession::new_checkpoint() const {
  auto model = std::make_shared<const Transformer<float>>(config_);
  ParameterValues<float> parameters(model->layout());
  return {std::move(model), std::move(parameters), source_, target_};
}

/// Every option that decides the result, and what it was learnt from.
std::vector<RunSetting> TrainSession::settings() const {
  char hash[32];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(corpus_.fingerprint()));
  std::vector<RunSetting> out = {
      {"the training text's fingerprint", hash, true},
      {"--threads", std::to_string(pool_.size())},
      {"the precision", precision_ == Precision::float32 ? "float32" : "bfloat16"},
  };
  TrainOptions copy = options_;
  const auto add = [&](const FieldList& fields) {
    for (const Field& field : fields.all())
      if (field.info.name != "precision")
        out.push_back({"--" + std::string(field.info.name), joined(field.get_text()), field.info.name == "optimizer"});
  };
  add(FieldList::of(copy.batch));
  add(FieldList::of(copy.optimizer));
  if (optimizer_.schedule.needs_end()) out.push_back({"--after", options_.run.after});
  return out;
}

void TrainSession::start() {
  run_.emplace(ResumableCheckpoint{new_checkpoint(), {}, {}});
  run_->state.seed = static_cast<std::uint64_t>(options_.batch.seed);
  run_->checkpoint.parameters.initialise(run_->state.seed);
  for (const RunSetting& setting : settings()) run_->state.settings.emplace_back(setting.name, setting.value);
  restore_training_form(*run_, options_.batch.exponential_smoothing > 0);
}

void TrainSession::resume_or_start() {
  if (::access(options_.model.c_str(), F_OK) != 0) {
    start();
    return;
  }
  run_ = load_resumable_checkpoint(options_.model);
  if (!run_)
    throw Error(Position{options_.model},
                "is a model without training state, and would be overwritten (name another "
                "one with -m, or remove it)");
  check_resumable(options_.model, *run_, new_checkpoint(), settings(), log_);
  run_->state.seed = static_cast<std::uint64_t>(options_.batch.seed);
  restore_training_form(*run_, options_.batch.exponential_smoothing > 0);
}

Trainer TrainSession::make_trainer(Reporter& reporter) {
  const auto& transformer = run_->checkpoint.model;
  const BatchLoss loss = [transformer](Graph<float>& graph, const Batch& batch, const CrossEntropyOptions& loss_options,
                                       CrossEntropySums* sums) {
    return transformer->loss(graph, batch, loss_options, sums);
  };
  workers_ = std::make_unique<GradientWorkers>(transformer->layout(), loss, precision_, pool_);
  if (valid_corpus_.size() > 0) {
    const auto translate = [this, transformer](ParameterValues<float>& parameters, const ParallelCorpus& corpus) {
      return translate_corpus(*transformer, parameters, precision_, corpus, target_, options_.pretokenized, pool_);
    };
    // A model that speaks in small letters is compared in small letters.
    BleuOptions bleu;
    bleu.lowercase = target_.steps().lowercase;
    if (options_.pretokenized) bleu.tokenize = MtevalMode::none;
    validator_.emplace(valid_corpus_, valid_lines_, options_.run.valid_metrics, *workers_, translate, bleu);
  }
  return Trainer({options_.model, *run_, corpus_, *workers_, validator(), pool_, reporter, log_}, options_.batch,
                 options_.run, optimizer_);
}

std::int64_t TrainSession::memory() const {
  const auto bytes = static_cast<std::int64_t>(run_->checkpoint.parameters.flat().size_bytes());
  return bytes * (1 + static_cast<std::int64_t>(run_->arrays.size())) + (workers_ ? workers_->memory() : 0) +
         corpus_.memory() + valid_corpus_.memory();
}

}  // namespace heed
