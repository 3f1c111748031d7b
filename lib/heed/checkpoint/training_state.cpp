#include "heed/checkpoint/training_state.h"

#include <algorithm>
#include <boost/archive/archive_exception.hpp>
#include <boost/archive/impl/archive_serializer_map.ipp>
#include <boost/archive/impl/basic_text_iarchive.ipp>
#include <boost/archive/impl/text_iarchive_impl.ipp>
#include <boost/archive/text_iarchive.hpp>
#include <boost/archive/text_oarchive.hpp>
#include <boost/serialization/utility.hpp>
#include <boost/serialization/vector.hpp>
#include <boost/serialization/version.hpp>
#include <cmath>
#include <sstream>

#include "heed/base/error.h"

BOOST_CLASS_VERSION(heed::TrainingState, 3)

namespace heed {
namespace {

using boost::archive::archive_exception;

/// A text archive of Boost.Serialization for bytes from an untrusted source. No vector and no string may be longer than
/// the archive, so that a forged length does not allocate much memory.
class BoundedTextArchive : public boost::archive::text_iarchive_impl<BoundedTextArchive> {
  using Base = boost::archive::text_iarchive_impl<BoundedTextArchive>;
  friend class boost::archive::detail::interface_iarchive<BoundedTextArchive>;
  friend class boost::archive::load_access;

 public:
  /// Prepares to read an archive of `size` bytes from the stream `in`.
  BoundedTextArchive(std::istream& in, std::size_t size) : Base(in, 0), size_(size) { init(); }

 protected:
  template <class Value>
  void load(Value& value) {
    Base::load(value);
  }
  void load(boost::serialization::collection_size_type& count) {
    std::size_t value = 0;
    Base::load(value);
    if (value > size_) throw archive_exception(archive_exception::input_stream_error);
    count = boost::serialization::collection_size_type(value);
  }
  void load(std::string& text) {
    std::size_t length = 0;
    Base::load(length);
    if (length > size_) throw archive_exception(archive_exception::input_stream_error);
    is.get();  // skips the blank that separates the length of the text from the text
    text.resize(length);
    is.read(text.data(), static_cast<std::streamsize>(length));
    if (!is) throw archive_exception(archive_exception::input_stream_error);
  }

 private:
  std::size_t size_;
};

/// The largest count, 2^53, that is valid in a TrainingState: the trainer also computes with counts in double, which is
/// exact up to 2^53.
constexpr std::int64_t kMostCount = std::int64_t{1} << 53;

/// Checks fields of a TrainingState and keeps a description of the first invalid field.
class Flaw {
 public:
  /// Checks one condition: if `good` is false and no field was invalid before, keeps the description `what`.
  void require(bool good, const std::string& what) {
    if (!good && text_.empty()) text_ = what;
  }
  /// Checks that the integer field `name` is in the range least ... most.
  void require_count(const std::string& name, std::int64_t count, std::int64_t least = 0,
                     std::int64_t most = kMostCount) {
    if (count < least || count > most)
      require(false,
              name + " is " + std::to_string(count) + ", not " + std::to_string(least) + " to " + std::to_string(most));
  }
  void require_finite(const std::string& name, double value) {
    require(std::isfinite(value), name + " is not a finite number");
  }
  /// Checks that the field `name` is finite and not negative, as seconds, epochs and the scores of all metrics must be.
  void require_amount(const std::string& name, double value) {
    require_finite(name, value);
    require(value >= 0, name + " is negative");
  }
  /// Returns the description of the first invalid field; empty if all fields are valid.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Checks the fields of a point of the learning curve.
void check_point(Flaw& flaw, const std::string& name, const LossPoint& point, std::int64_t updates,
                 std::int64_t least_tokens) {
  flaw.require_count(name + ": update", point.update, 0, updates);
  flaw.require_amount(name + ": epoch", point.epoch);
  flaw.require_finite(name + ": loss", point.loss);
  flaw.require_count(name + ": tokens", point.tokens, least_tokens);
}

/// Returns the name of element i of a list for error messages, counted from 1: element 0 of "history" is "history 1".
std::string numbered(const char* name, std::size_t i) {
  return std::string(name) + " " + std::to_string(i + 1);
}

/// Returns a description of the first invalid field of a TrainingState, or an empty string if all fields are valid.
std::string find_flaw(const TrainingState& state) {
  Flaw flaw;
  flaw.require_count("updates", state.updates);
  flaw.require_count("optimizer_step", state.optimizer_step, 0, state.updates);
  flaw.require_count("epoch", state.epoch);
  flaw.require_count("window", state.window);
  flaw.require_count("window_batches", state.window_batches);
  flaw.require_count("batch", state.batch, 0, state.window_batches > 0 ? state.window_batches : kMostCount);
  flaw.require_count("target_tokens", state.target_tokens);
  flaw.require_count("sentences", state.sentences);
  flaw.require_amount("seconds", state.seconds);
  flaw.require_count("skipped_updates", state.skipped_updates);
  flaw.require_count("consecutive_skips", state.consecutive_skips, 0, state.skipped_updates);
  flaw.require_count("rollbacks", state.rollbacks);

  flaw.require_count("history_stride", state.history_stride, 1);
  for (std::size_t i = 0; i < state.history.size(); ++i)
    check_point(flaw, numbered("history", i), state.history[i], state.updates, 1);
  check_point(flaw, "open_point", state.open_point, state.updates, 0);

  const auto metrics = static_cast<std::int64_t>(state.metrics.size());
  const auto require_size = [&](const std::string& name, std::size_t size) {
    flaw.require(static_cast<std::int64_t>(size) == metrics,
                 name + " has " + std::to_string(size) + " scores for " + std::to_string(metrics) + " metrics");
  };
  for (std::size_t i = 0; i < state.validations.size(); ++i) {
    const ValidationPoint& point = state.validations[i];
    const std::string name = numbered("validation", i);
    flaw.require_count(name + ": update", point.update, 0, state.updates);
    flaw.require_amount(name + ": epoch", point.epoch);
    require_size(name, point.scores.size());
    for (const double score : point.scores) flaw.require_amount(name + ": score", score);
  }
  require_size("best", state.best.size());
  for (std::size_t i = 0; i < state.best.size(); ++i) {
    const BestScore& best = state.best[i];
    const std::string name = numbered("best", i);
    flaw.require_amount(name + ": score", best.score);
    // The update with the best score may have a greater number than state.updates: a rollback returns to an earlier
    // state of training but keeps the best score.
    flaw.require_count(name + ": update", best.update, -1);
    flaw.require_count(name + ": stalled", best.stalled);
  }

  std::int64_t least = 0;
  for (std::size_t i = 0; i < state.kept_updates.size(); ++i) {
    flaw.require_count(numbered("kept_updates", i), state.kept_updates[i], least, state.updates);
    least = state.kept_updates[i] + 1;
  }
  least = 0;
  for (std::size_t i = 0; i < state.requested_updates.size(); ++i) {
    const std::int64_t update = state.requested_updates[i];
    const std::string name = numbered("requested_updates", i);
    flaw.require_count(name, update, least, state.updates);
    flaw.require(std::ranges::binary_search(state.kept_updates, update),
                 name + " is " + std::to_string(update) + ", which is not among kept_updates");
    least = update + 1;
  }
  flaw.require_count("averaged_models", state.averaged_models);
  return flaw.text();
}

}  // namespace

template <class Archive>
void serialize(Archive& archive, LossPoint& point, unsigned) {
  archive& point.update& point.epoch& point.loss& point.tokens;
}

template <class Archive>
void serialize(Archive& archive, ValidationPoint& point, unsigned) {
  archive& point.update& point.epoch& point.scores;
}

template <class Archive>
void serialize(Archive& archive, BestScore& best, unsigned) {
  archive& best.score& best.update& best.stalled;
}

template <class Archive>
void serialize(Archive& archive, TrainingState& state, unsigned version) {
  archive& state.seed& state.updates& state.optimizer_step& state.epoch& state.batch& state.target_tokens& state
      .sentences& state.seconds& state.finished& state.finish_reason& state.skipped_updates& state
      .consecutive_skips& state.rollbacks& state.history& state.history_stride& state.open_point& state.metrics& state
      .validations& state.best& state.kept_updates& state.settings;
  if (version >= 1) archive& state.window_batches;
  if (version >= 2) archive& state.window;
  if (version >= 3)
    archive& state.requested_updates& state.averaged_models& state.validation_due;
  else
    state.requested_updates = state.kept_updates;
}

std::string write_training_state(const TrainingState& state) {
  const std::string flaw = find_flaw(state);
  if (!flaw.empty()) throw Error("internal: the state of training cannot be saved: " + flaw);
  std::ostringstream bytes;
  boost::archive::text_oarchive(bytes) << state;
  return bytes.str();
}

TrainingState read_training_state(const std::string& bytes, const std::string& path) {
  const auto fail = [&](const std::string& what) {
    throw Error(Position{path}, "/training/state: " + what +
                                    " (the file is damaged or forged; take a copy of it from before, or begin again "
                                    "under another name with -m)");
  };
  TrainingState state;
  try {
    std::istringstream in(bytes);
    BoundedTextArchive(in, bytes.size()) >> state;
  } catch (const archive_exception& error) {
    // A later version of heed or Boost wrote this archive. The archive is not damaged, but this program cannot read it.
    if (error.code == archive_exception::unsupported_version ||
        error.code == archive_exception::unsupported_class_version)
      throw Error(Position{path},
                  "/training/state: was written by a later heed, or with a later Boost library (go on with that one)");
    fail(std::string("cannot be read: ") + error.what());
  }
  const std::string flaw = find_flaw(state);
  if (!flaw.empty()) fail(flaw);
  return state;
}

}  // namespace heed
