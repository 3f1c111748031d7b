#pragma once

#include <cstdint>
#include <span>

#include "heed/model/batch.h"

namespace heed {

/// The numbers of tokens that a model computes for one example: source tokens with `</s>`, and target tokens with
/// `<s>`, which are as many as the tokens that the model predicts.
struct ExampleSize {
  std::int32_t source = 0, target = 0;
  /// What the example counts for when a batch is cut into shards of about equal work; 0: as many as `target`.
  std::int32_t work = 0;
};

/// The examples that a model learns from, or is validated on, as ids. Training, validation and the cost model need
/// nothing else of their data, whatever the examples are: sentence pairs, or other inputs with a target.
class Examples {
 public:
  virtual ~Examples() = default;

  /// Returns the number of examples. An example is named by its index, from 0.
  virtual std::int64_t size() const = 0;
  virtual ExampleSize size_of(std::int64_t example) const = 0;
  /// Replaces the contents of `batch` by these examples. Many threads may call fill() at once.
  virtual void fill(std::span<const std::int32_t> examples, Batch& batch) const = 0;
  /// Returns the number of the line, counted from 1, from which the example was read, for messages.
  virtual std::int64_t line(std::int64_t example) const = 0;
};

/// All examples of a training, of which a window is in memory at a time. Every epoch has the same number of windows,
/// and each example is in one of them.
class ExampleWindows {
 public:
  virtual ~ExampleWindows() = default;

  /// Returns the number of windows of an epoch, at least 1.
  virtual std::int64_t windows() const = 0;
  /// Returns whether a window may have other examples in another epoch.
  virtual bool varies() const { return windows() > 1; }
  /// Loads a window of an epoch, both counted from 0, and returns its examples. Windows that were loaded before become
  /// invalid. All ranks must call load() alike. Throws Error if this fails.
  virtual const Examples& load(std::int64_t epoch, std::int64_t window) = 0;
};

}  // namespace heed
