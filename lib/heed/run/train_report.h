#pragma once

#include <ostream>
#include <string>

#include "heed/run/train_session.h"

namespace heed {

/// "12,345,678 parameters, 3+3 layers of width 128, ...".
std::string describe_model(TrainSession& session);

/// What would be done: model, data, batches, files.
void print_plan(TrainSession& session, std::ostream& out);

/// The preflight of `train --check`: data, vocabulary, model, memory, speed over 20 updates, time until the end.
void print_check(TrainSession& session, Log& log, std::ostream& out);

}  // namespace heed
