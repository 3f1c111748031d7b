#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/config/fields.h"
#include "heed/tensor/tensor.h"

namespace heed::h5 {

/// The element types heed stores.
enum class Type { float32, uint16, uint8, other };

/// What is known of a dataset before it is read.
struct DatasetInfo {
  Type type = Type::other;
  std::vector<std::int64_t> shape;
  std::int64_t stored_bytes = 0;  ///< that the file really holds, whatever the shape claims
};

/// An HDF5 file, open for reading or being written. All errors throw Error with the file's name, the object's path and
/// what HDF5 says.
class File {
 public:
  static File create(const std::string& path);
  static File open(const std::string& path);
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  ~File();

  /// Flushes and closes; a file that is only destroyed may be incomplete.
  void close();
  const std::string& path() const { return path_; }

  bool exists(const std::string& object) const;
  bool is_group(const std::string& object) const;
  /// Names of a group's members, sorted.
  std::vector<std::string> members(const std::string& group) const;

  void make_group(const std::string& group);
  void write_attribute(const std::string& object, const std::string& name, const FieldValue& value);
  /// Absent where there is no such attribute.
  std::optional<FieldValue> read_attribute(const std::string& object, const std::string& name) const;
  std::vector<std::string> attribute_names(const std::string& object) const;

  /// Missing groups on the way are made.
  void write_floats(const std::string& dataset, std::span<const float> data, std::span<const std::int64_t> shape);
  void write_bytes(const std::string& dataset, std::span<const char> data);
  void write_strings(const std::string& dataset, const std::vector<std::string>& strings);

  DatasetInfo info(const std::string& dataset) const;
  void read_floats(const std::string& dataset, std::span<float> out) const;
  void read_uint16(const std::string& dataset, std::span<std::uint16_t> out) const;
  std::string read_bytes(const std::string& dataset) const;
  std::vector<std::string> read_strings(const std::string& dataset) const;

 private:
  File(std::int64_t id, std::string path) : id_(id), path_(std::move(path)) {}
  void write(const std::string& dataset, std::int64_t type, const void* data, std::span<const std::int64_t> shape);
  void read(const std::string& dataset, std::int64_t type, void* out) const;
  [[noreturn]] void fail(const std::string& object, const std::string& what) const;

  std::int64_t id_;
  std::string path_;
};

}  // namespace heed::h5
