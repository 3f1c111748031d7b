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

/// The element types of HDF5 datasets that heed distinguishes; uint16 also stores bfloat16 numbers.
enum class Type { float32, uint16, uint8, other };

class File;

/// An open dataset of an HDF5 file. The members describe the dataset; read() reads the elements. A Dataset must not be
/// used after its File is closed.
class Dataset {
 public:
  Type type = Type::other;
  std::vector<std::int64_t> shape;
  /// The number of bytes that the file stores for the elements of the dataset, at most the size of the file. `shape`
  /// may claim more elements if the file is forged.
  std::int64_t stored_bytes = 0;

  Dataset(Dataset&& other) noexcept;
  Dataset& operator=(Dataset&&) = delete;
  ~Dataset();

  /// Returns the offset in the file, in bytes, of the dataset's first element, if the file contains the elements as
  /// consecutive float32 numbers, as an array in memory would. Returns -1 otherwise: data in chunks, other types.
  std::int64_t offset_of_floats() const;
  /// Reads all elements of the dataset, converted to float32. The size of `out` must be the product of the dimensions
  /// in `shape`.
  void read(std::span<float> out) const;
  /// Reads all elements of the dataset as 16-bit integers. The size of `out` must be the product of the dimensions in
  /// `shape`.
  void read(std::span<std::uint16_t> out) const;
  /// Reads all elements of the dataset as bytes. The size of `out` must be the product of the dimensions in `shape`.
  void read(std::span<char> out) const;

 private:
  friend class File;
  Dataset(std::int64_t id, const File& file, std::string path);
  void read(std::int64_t type, void* out) const;

  std::int64_t id_, file_size_;
  std::string file_, path_;
  std::shared_ptr<const CrashReport> crashes_;
};

/// An HDF5 file that is open for reading, or that is being written. Member functions throw Error with the name of the
/// file, the path of the HDF5 object, and HDF5's reason. If the HDF5 library crashes because the file is damaged, the
/// process ends with a message that names the file. Sizes that a file claims are compared with the size of the file
/// before memory is allocated. After a failed write the caller may only destroy the File object; other files can still
/// be written.
class File {
 public:
  /// Creates a file at `path` for writing; replaces an existing file. Error messages call the file `name`.
  static File create(const std::string& path, std::string name);
  /// Opens a file for reading.
  static File open(const std::string& path);
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  ~File();

  /// Flushes all data to the file and closes the file. If a file that is being written is destroyed without close(),
  /// the file is incomplete.
  void close();
  const std::string& path() const { return path_; }
  /// Returns the size of a file that is open for reading, in bytes; the largest int64 for a file that is being written.
  std::int64_t size() const { return size_; }

  /// Tells whether a file descriptor refers to the same file on the disk as this object, and not to a newer file that
  /// has taken the name.
  bool is_same_as(int descriptor) const;
  /// Tells whether the file has an object (group or dataset) with this path.
  bool exists(const std::string& object) const;
  /// Returns the names of the members (datasets and subgroups) of a group, sorted.
  std::vector<std::string> members(const std::string& group) const;
  /// Returns the paths, relative to `group`, of all datasets in the group and in its subgroups, sorted. Returns an
  /// empty list if the group does not exist.
  std::vector<std::string> datasets(const std::string& group) const;

  /// Creates a group and the missing groups on the path to the group. Does nothing if the group exists.
  void make_group(const std::string& group);
  /// Writes an attribute of a group or dataset; the value's type decides the attribute's type.
  void write_attribute(const std::string& object, const std::string& name, const FieldValue& value);
  /// Reads an attribute of a group or dataset. Returns nothing if the attribute does not exist.
  std::optional<FieldValue> read_attribute(const std::string& object, const std::string& name) const;
  /// Returns the names of all attributes of a group or dataset, sorted.
  std::vector<std::string> attribute_names(const std::string& object) const;

  /// Writes a float32 dataset of this shape. Creates missing groups on the path to the dataset.
  void write_floats(const std::string& dataset, std::span<const float> data, std::span<const std::int64_t> shape);
  /// Writes a dataset of bytes. Creates missing groups on the path to the dataset.
  void write_bytes(const std::string& dataset, std::span<const char> data);
  /// Writes a dataset of UTF-8 texts of variable length. Creates missing groups on the path to the dataset.
  void write_strings(const std::string& dataset, const std::vector<std::string>& strings);
  /// Adds `name` as a second name (a hard link) of the existing group or dataset `object`.
  void link(const std::string& object, const std::string& name);
  /// Tells whether two paths in the file are names (hard links) of the same group or dataset.
  bool same_object(const std::string& a, const std::string& b) const;

  /// Opens a dataset. This and the next two functions throw Error for a dataset that is compressed or has another
  /// filter.
  Dataset dataset(const std::string& path) const;
  /// Reads a one-dimensional dataset of bytes.
  std::string read_bytes(const std::string& dataset) const;
  /// Reads a one-dimensional dataset of texts of variable length.
  std::vector<std::string> read_strings(const std::string& dataset) const;

 private:
  friend class Dataset;
  File() = default;
  void write(const std::string& dataset, std::int64_t type, const void* data, std::span<const std::int64_t> shape);
  /// Throws Error if a dataset, whose HDF5 id and path are given, has a filter, such as compression. The sizes of
  /// filtered elements in the file do not tell how much memory the elements need.
  void check_unfiltered(std::int64_t dataset, const std::string& path) const;
  /// Returns the operating system's description of the open file.
  struct stat status() const;
  /// Throws Error with the path of an object, the failed action `what`, and HDF5's reason.
  [[noreturn]] void fail(const std::string& object, const std::string& what) const;

  std::int64_t id_ = -1;
  std::string path_;
  std::int64_t size_ = std::numeric_limits<std::int64_t>::max();
  // Reports a crash of the HDF5 library while a damaged file is read. Null if the file is being written.
  std::shared_ptr<const CrashReport> crashes_;
};

}  // namespace heed::h5
