#pragma once

#include "heed/model/model_config.h"
#include "heed/text/text_model.h"

namespace heed {

/// The options of `train` that define the model: the task, and the options of the task's architecture, which the task
/// presets.
struct ModelOptions {
  Task task = kDefaultTask;
  ModelConfig config = preset(kDefaultTask);
  /// A spelling of the option --tied-embeddings all: the list of the fields sets that option.
  bool tied_embeddings_all = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Model");
    const Task before = task;
    visit(task, {.name = "task",
                 .help = "kind of model and preset of its sizes; decides which of the options below exist",
                 .selects = true});
    if (task != before) config = preset(task);
    std::visit([&](auto& chosen) { chosen.option_fields(visit); }, config);
    if (!image_input(config))
      visit(tied_embeddings_all, {.name = "tied-embeddings-all",
                                  .help = "the same as --tied-embeddings all",
                                  .spells = "tied-embeddings",
                                  .spelt_value = enum_name(TiedEmbeddings::all)});
  }

  /// Returns the complete config of a model of these texts. Throws UsageError if validate() refuses the config, or the
  /// texts do not suit it.
  ModelConfig resolve(const TextModel& source, const TextModel& target) const;
};

}  // namespace heed
