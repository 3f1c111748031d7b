#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/base/crash_guard.h"
#include "heed/config/fields.h"
#include "heed/tensor/tensor.h"

namespace heed::h5 {

/// The element types heed stores.
enum class Type { float32, uint16, uint8, other };

class File;

/// An open dataset: what is known of it before it is read, and reading. Lives no longer than its file.
class Dataset {
 public:
  Type type = Type::other;
  std::vector<std::int64_t> shape;
  std::int64_t stored_bytes = 0;  ///< that the file can hold, whatever the shape claims

  Dataset(Dataset&& other) noexcept;
  Dataset& operator=(Dataset&&) = delete;
  ~Dataset();

  /// Where in the file its numbers begin, one after the other as they would lie in the memory; -1 where they are stored
  /// in any other way, or are no float32.
  std::int64_t offset_of_floats() const;
  /// `out` has room for all elements of `shape`.
  void read(std::span<float> out) const;
  void read(std::span<std::uint16_t> out) const;
  void read(std::span<char> out) const;

 private:
  friend class File;
  Dataset(std::int64_t id, const File& file, std::string path);
  void read(std::int64_t type, void* out) const;

  std::int64_t id_, file_size_;
  std::string file_, path_;
  std::shared_ptr<const CrashReport> crashes_;
};

/// An HDF5 file, open for reading or being written. All errors throw Error with the file's name, the object's path and
/// what HDF5 says; where HDF5's library crashes on a damaged file that is read, the process ends with a message that
/// names the file. What a file claims is checked against its size before memory is taken. After a failed write the file
/// can only be destroyed; other files can be written.
class File {
 public:
  /// `name`: of the file in messages.
  static File create(const std::string& path, std::string name);
  static File open(const std::string& path);
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  ~File();

  /// Flushes and closes; a written file that is only destroyed is incomplete.
  void close();
  const std::string& path() const { return path_; }
  /// Bytes of a file that is read; of one that is written, more than any.
  std::int64_t size() const { return size_; }

  /// Whether a descriptor is of this very file, and not of another one that took its name.
  bool is_same_as(int descriptor) const;
  bool exists(const std::string& object) const;
  /// Names of a group's members, sorted.
  std::vector<std::string> members(const std::string& group) const;
  /// All datasets in a group and the groups in it, as paths relative to it, sorted; none where there is no such group.
  std::vector<std::string> datasets(const std::string& group) const;

  void make_group(const std::string& group);
  void write_attribute(const std::string& object, const std::string& name, const FieldValue& value);
  /// Absent where there is no such attribute.
  std::optional<FieldValue> read_attribute(const std::string& object, const std::string& name) const;
  std::vector<std::string> attribute_names(const std::string& object) const;

  /// Missing groups on the way are made.
  void write_floats(const std::string& dataset, std::span<const float> data, std::span<const std::int64_t> shape);
  void write_bytes(const std::string& dataset, std::span<const char> data);
  void write_strings(const std::string& dataset, const std::vector<std::string>& strings);
  /// A second name (hard link) for an object that is there.
  void link(const std::string& object, const std::string& name);
  /// Whether two names lead to one object.
  bool same_object(const std::string& a, const std::string& b) const;

  Dataset dataset(const std::string& path) const;
  std::string read_bytes(const std::string& dataset) const;
  std::vector<std::string> read_strings(const std::string& dataset) const;

 private:
  friend class Dataset;
  File() = default;
  void write(const std::string& dataset, std::int64_t type, const void* data, std::span<const std::int64_t> shape);
  struct stat status() const;
  [[noreturn]] void fail(const std::string& object, const std::string& what) const;

  std::int64_t id_ = -1;
  std::string path_;
  std::int64_t size_ = std::numeric_limits<std::int64_t>::max();
  std::shared_ptr<const CrashReport> crashes_;  // of files that are read
};

}  // namespace heed::h5
