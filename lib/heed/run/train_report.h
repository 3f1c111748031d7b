#pragma once

#include <ostream>
#include <string>

#include "heed/run/train_session.h"

namespace heed {

/// Describes the model: "Transformer with 12,345,678 parameters (3 + 3 layers, width 128, ...".
std::string describe_model(TrainSession& session);

/// Writes the report of `train --dry-run`: model, data, batches, learning rate, files and predicted speed.
void print_plan(TrainSession& session, std::ostream& out);

/// Writes the report of `train --check`: data, vocabulary, model, memory, speed over 20 updates, time until the end.
void print_check(TrainSession& session, Log& log, std::ostream& out);

}  // namespace heed
