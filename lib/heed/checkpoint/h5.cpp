#include "heed/checkpoint/h5.h"

#include <fcntl.h>
#include <hdf5.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "heed/base/error.h"

namespace heed::h5 {
namespace {

/// An HDF5 identifier (of a dataset, type or property list) that the HDF5 function `close` closes when the object is
/// destroyed.
class Id {
 public:
  Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Id() {
    if (id_ >= 0) close_(id_);
  }
  Id(const Id&) = delete;
  Id& operator=(const Id&) = delete;
  operator hid_t() const { return id_; }  // NOLINT: converts implicitly, because HDF5's functions take a hid_t
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

/// The number of bytes that a dataset of texts of variable length stores for each text: a reference to the text, which
/// is elsewhere in the file. A file with n such texts therefore has at least n * kReference bytes.
constexpr std::int64_t kReference = 16;

#if H5_VERSION_GE(1, 12, 0)
using ObjectInfo = H5O_info1_t;
#else
using ObjectInfo = H5O_info_t;
#endif

/// Returns the innermost message of HDF5's error stack, such as "No space left on device", and clears the stack.
std::string reason() {
  std::string text;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned depth, const H5E_error2_t* error, void* out) -> herr_t {
        if (depth == 0 && error->desc) *static_cast<std::string*>(out) = error->desc;
        return 0;
      },
      &text);
  H5Eclear2(H5E_DEFAULT);
  const auto quoted = text.find("error message = '");
  if (quoted != std::string::npos) {
    const auto begin = quoted + 17, end = text.find('\'', begin);
    return text.substr(begin, end - begin);
  }
  return text.empty() ? "HDF5 does not say why" : text;
}

/// Creates the HDF5 type of a UTF-8 text of variable length.
Id string_type() {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return {type, H5Tclose};
}

/// Converts texts of variable length to their lengths in bytes, without reading the texts: the reference that a file
/// stores for a text (kReference) begins with the length, 32 bits in little-endian order. HDF5 calls this function when
/// an attribute of texts is read as H5T_NATIVE_UINT32.
herr_t lengths_of_texts(hid_t texts, hid_t, H5T_cdata_t* data, std::size_t count, std::size_t, std::size_t,
                        void* buffer, void*, hid_t) {
  if (data->command == H5T_CONV_INIT) return H5Tis_variable_str(texts) > 0 ? 0 : -1;
  if (data->command != H5T_CONV_CONV) return 0;
  const std::size_t reference = H5Tget_size(texts);
  auto* const bytes = static_cast<unsigned char*>(buffer);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t length = 0;
    for (std::size_t k = 0; k < sizeof length; ++k) length |= std::uint32_t{bytes[i * reference + k]} << 8 * k;
    std::memcpy(bytes + i * sizeof length, &length, sizeof length);
  }
  return 0;
}

/// Prepares the HDF5 library; must be called before a file is created or opened. Switches off HDF5's exit handler: the
/// handler tries again to close files whose closing failed before, and crashes; heed closes all files itself. Switches
/// off the printing of HDF5's error stack, too, and registers lengths_of_texts().
void start_library() {
  static const herr_t once[] = {H5dont_atexit(), H5Tregister(H5T_PERS_SOFT, "lengths of texts", string_type(),
                                                             H5T_NATIVE_UINT32, lengths_of_texts)};
  static_cast<void>(once);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

/// Redirects the output of an open HDF5 file to memory, after writing to the disk has failed. HDF5 closes a file only
/// after writing all buffers of the file, which would fail again on the disk. The data in memory is discarded when the
/// file is closed.
void write_to_memory(hid_t file) {
  void* handle = nullptr;
  if (H5Fget_vfd_handle(file, H5P_DEFAULT, &handle) < 0) return;
  const int memory = ::memfd_create("heed-unwritable", MFD_CLOEXEC);
  if (memory < 0) return;
  ::dup3(memory, *static_cast<const int*>(handle), O_CLOEXEC);
  ::close(memory);
}

/// Creates an HDF5 dataspace of this shape; an empty shape means a scalar.
Id space_of(std::span<const std::int64_t> shape) {
  std::vector<hsize_t> dims(shape.begin(), shape.end());
  return {shape.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
          H5Sclose};
}

/// Converts to int64 a size that a file claims and that may be forged. A size above the range of int64 becomes the
/// largest int64.
std::int64_t as_int64(std::uint64_t claimed) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(claimed, std::numeric_limits<std::int64_t>::max()));
}

/// Returns the shape that an HDF5 dataspace claims. The shape may be damaged or forged: the caller has to check the
/// sizes.
std::vector<std::int64_t> shape_of(hid_t space) {
  const int rank = std::max(0, H5Sget_simple_extent_ndims(space));
  std::vector<hsize_t> dims(static_cast<std::size_t>(rank));
  if (rank > 0) H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  std::vector<std::int64_t> shape;
  for (const hsize_t dim : dims) shape.push_back(as_int64(dim));
  return shape;
}

std::vector<const char*> pointers(const std::vector<std::string>& strings) {
  std::vector<const char*> out;
  for (const auto& text : strings) out.push_back(text.c_str());
  return out;
}

std::vector<std::string> copies(const std::vector<char*>& raw) {
  std::vector<std::string> out;
  out.reserve(raw.size());
  for (const char* text : raw) out.emplace_back(text ? text : "");
  return out;
}

/// Memory into which HDF5 reads the texts of a dataset. The memory is limited to the size of the file: a damaged or
/// forged file may refer to the same long text many times.
class TextMemory {
 public:
  /// Creates the memory for texts of at most `most` bytes together.
  explicit TextMemory(std::int64_t most) : left_(static_cast<std::size_t>(most)) {}

  /// Returns HDF5 transfer properties that make H5Dread allocate texts with take().
  Id transfer() {
    const auto take = [](std::size_t size, void* memory) { return static_cast<TextMemory*>(memory)->take(size); };
    const hid_t properties = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_vlen_mem_manager(
        properties, take, this, [](void*, void*) {}, nullptr);
    return {properties, H5Pclose};
  }

 private:
  /// Returns memory for a text of `size` bytes, or null if the limit is exceeded.
  void* take(std::size_t size) {
    constexpr std::size_t kBlock = 1 << 16;
    if (size > left_) return nullptr;
    left_ -= size;
    if (size > free_.size()) {
      blocks_.push_back(std::make_unique<char[]>(std::max(size, kBlock)));
      free_ = {blocks_.back().get(), std::max(size, kBlock)};
    }
    void* out = free_.data();
    free_ = free_.subspan(size);
    return out;
  }

  std::size_t left_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::span<char> free_;  // the unused part of the last element of blocks_
};

/// Returns the product of the dimensions that a file claims for a dataset, or the maximum of int64 on overflow.
std::int64_t product(std::span<const std::int64_t> shape) {
  std::int64_t size = 1;
  for (const std::int64_t dim : shape)
    if (__builtin_mul_overflow(size, dim, &size)) return std::numeric_limits<std::int64_t>::max();
  return size;
}

}  // namespace

void File::fail(const std::string& object, const std::string& what) const {
  const std::string why = reason();
  if (!crashes_) write_to_memory(id_);
  throw Error(Position{path_}, (object.empty() ? "" : object + ": ") + what + ": " + why);
}

File File::create(const std::string& path, std::string name) {
  start_library();
  const Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  // Selects the file format of HDF5 1.8 to 1.10. Since version 1.8 checksums protect the object headers of the file.
  H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V110);
  const hid_t id = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  if (id < 0) throw Error(Position{name}, "cannot create the file: " + reason());
  File file;
  file.id_ = id;
  file.path_ = std::move(name);
  return file;
}

File File::open(const std::string& path) {
  File file;
  file.path_ = path;
  // The HDF5 library may loop forever on a damaged file, so that each HDF5 call has a time limit: kSeconds + size of
  // the file / kBytesPerSecond. The limit grows with the file, since a large file may take long to decompress.
  constexpr double kSeconds = 3, kBytesPerSecond = 2e7;
  struct stat status {};
  const double bytes = ::stat(path.c_str(), &status) == 0 ? static_cast<double>(status.st_size) : 0;
  file.crashes_ = std::make_shared<const CrashReport>(
      path + ": is damaged: the HDF5 library cannot read it (restore it from a copy)",
      kSeconds + bytes / kBytesPerSecond);
  const CrashGuard guard(file.crashes_.get());
  start_library();
  const Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  // Switches off HDF5's buffer for parts of datasets, since heed reads each dataset as a whole.
  H5Pset_sieve_buf_size(access, 0);
  file.id_ = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access);
  if (file.id_ < 0) throw Error(Position{path}, "cannot read it as HDF5: " + reason());
  file.size_ = file.status().st_size;
  return file;
}

File::File(File&& other) noexcept
    : id_(std::exchange(other.id_, -1)), path_(std::move(other.path_)), size_(other.size_), crashes_(other.crashes_) {}

File::~File() {
  if (id_ < 0) return;
  const CrashGuard guard(crashes_.get());
  if (!crashes_) write_to_memory(id_);
  H5Fclose(id_);
}

void File::close() {
  if (H5Fflush(id_, H5F_SCOPE_GLOBAL) < 0) fail("", "cannot write");
  if (H5Fclose(std::exchange(id_, -1)) < 0) throw Error(Position{path_}, "cannot write: " + reason());
}

bool File::exists(const std::string& object) const {
  const CrashGuard guard(crashes_.get());
  for (std::size_t at = 0; at != std::string::npos;) {
    at = object.find('/', at + 1);
    const std::string path = object.substr(0, at);
    if (path.empty() || path == "/") continue;
    if (H5Lexists(id_, path.c_str(), H5P_DEFAULT) <= 0) return false;
  }
  return true;
}

std::vector<std::string> File::members(const std::string& group) const {
  const CrashGuard guard(crashes_.get());
  std::vector<std::string> names;
  const Id id(H5Gopen2(id_, group.c_str(), H5P_DEFAULT), H5Gclose);
  if (!id.valid()) fail(group, "cannot open the group");
  H5Literate(
      id, H5_INDEX_NAME, H5_ITER_INC, nullptr,
      [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
        static_cast<std::vector<std::string>*>(out)->emplace_back(name);
        return 0;
      },
      &names);
  return names;
}

std::vector<std::string> File::datasets(const std::string& group) const {
  const CrashGuard guard(crashes_.get());
  std::vector<std::string> paths;
  if (!exists(group)) return paths;
  const auto take = [](hid_t, const char* path, const ObjectInfo* info, void* out) -> herr_t {
    if (info->type == H5O_TYPE_DATASET) static_cast<std::vector<std::string>*>(out)->emplace_back(path);
    return 0;
  };
  if (H5Ovisit_by_name2(id_, group.c_str(), H5_INDEX_NAME, H5_ITER_INC, take, &paths, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
    fail(group, "cannot read the group");
  return paths;
}

void File::make_group(const std::string& group) {
  if (exists(group)) return;
  const Id links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links, 1);
  const Id id(H5Gcreate2(id_, group.c_str(), links, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  if (!id.valid()) fail(group, "cannot write");
}

void File::write_attribute(const std::string& object, const std::string& name, const FieldValue& value) {
  const Id owner(H5Oopen(id_, object.c_str(), H5P_DEFAULT), H5Oclose);
  const auto put = [&](hid_t type, std::span<const std::int64_t> shape, const void* data) {
    const Id space = space_of(shape);
    const Id id(H5Acreate2(owner, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    if (!id.valid() || (product(shape) > 0 && H5Awrite(id, type, data) < 0)) fail(object + "@" + name, "cannot write");
  };
  if (const auto* flag = std::get_if<bool>(&value)) {
    const std::int64_t number = *flag;
    put(H5T_NATIVE_INT64, {}, &number);
  } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    put(H5T_NATIVE_INT64, {}, integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    put(H5T_NATIVE_DOUBLE, {}, real);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    const char* pointer = text->c_str();
    put(string_type(), {}, &pointer);
  } else {
    const auto list = pointers(std::get<std::vector<std::string>>(value));
    const std::int64_t size[] = {static_cast<std::int64_t>(list.size())};
    put(string_type(), size, list.data());
  }
}

std::optional<FieldValue> File::read_attribute(const std::string& object, const std::string& name) const {
  const CrashGuard guard(crashes_.get());
  if (H5Aexists_by_name(id_, object.c_str(), name.c_str(), H5P_DEFAULT) <= 0) return std::nullopt;
  const std::string where = object + "@" + name;
  const Id id(H5Aopen_by_name(id_, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!id.valid()) fail(where, "cannot read");
  const Id type(H5Aget_type(id), H5Tclose), space(H5Aget_space(id), H5Sclose);
  const auto shape = shape_of(space);
  if (H5Sget_simple_extent_type(space) == H5S_NULL) throw Error(Position{path_}, where + ": holds no value");
  if (!shape.empty() && !(H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) > 0))
    throw Error(Position{path_},
                where + ": is an array, but only texts of variable length may be in an array (write one value)");
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
    case H5T_ENUM: {  // h5py, the HDF5 package for Python, writes booleans as H5T_ENUM
      std::int64_t value = 0;
      if (H5Aread(id, H5T_NATIVE_INT64, &value) < 0) fail(where, "cannot read");
      return value;
    }
    case H5T_FLOAT: {
      double value = 0;
      if (H5Aread(id, H5T_NATIVE_DOUBLE, &value) < 0) fail(where, "cannot read");
      return value;
    }
    case H5T_STRING:
      break;
    default:
      throw Error(Position{path_}, where + ": holds a type that is not a number or text");
  }
  if (H5Tis_variable_str(type) <= 0) {
    const std::size_t size = H5Tget_size(type);
    if (as_int64(size) > size_) throw Error(Position{path_}, where + ": claims more text than the file holds");
    std::string text(size, '\0');
    if (H5Aread(id, type, text.data()) < 0) fail(where, "cannot read");
    return text.substr(0, text.find('\0'));
  }
  const Id memory = string_type();
  const std::int64_t count = product(shape);
  if (count > std::min(as_int64(H5Aget_storage_size(id)), size_) / kReference)
    throw Error(Position{path_}, where + ": claims " + std::to_string(count) + " texts but does not hold them");
  // H5Aread has no transfer properties, by which a TextMemory could limit the memory.
  std::vector<std::uint32_t> lengths(static_cast<std::size_t>(count));
  if (count > 0 && H5Aread(id, H5T_NATIVE_UINT32, lengths.data()) < 0) fail(where, "cannot read");
  if (std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}) > size_)
    throw Error(Position{path_}, where + ": claims more text than the file holds");
  std::vector<char*> raw(static_cast<std::size_t>(count));
  if (count > 0 && H5Aread(id, memory, raw.data()) < 0) fail(where, "cannot read");
  std::vector<std::string> texts = copies(raw);
  if (count > 0) H5Dvlen_reclaim(memory, space, H5P_DEFAULT, raw.data());
  if (shape.empty()) return texts.at(0);
  return texts;
}

std::vector<std::string> File::attribute_names(const std::string& object) const {
  const CrashGuard guard(crashes_.get());
  std::vector<std::string> names;
  const Id owner(H5Oopen(id_, object.c_str(), H5P_DEFAULT), H5Oclose);
  if (!owner.valid()) fail(object, "cannot open");
  H5Aiterate2(
      owner, H5_INDEX_NAME, H5_ITER_INC, nullptr,
      [](hid_t, const char* name, const H5A_info_t*, void* out) -> herr_t {
        static_cast<std::vector<std::string>*>(out)->emplace_back(name);
        return 0;
      },
      &names);
  return names;
}

void File::write(const std::string& dataset, std::int64_t type, const void* data, std::span<const std::int64_t> shape) {
  const Id links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links, 1);
  const Id space = space_of(shape);
  const Id id(H5Dcreate2(id_, dataset.c_str(), type, space, links, H5P_DEFAULT, H5P_DEFAULT), H5Dclose);
  if (!id.valid()) fail(dataset, "cannot write");
  if (product(shape) > 0 && H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0) fail(dataset, "cannot write");
}

void File::write_floats(const std::string& dataset, std::span<const float> data, std::span<const std::int64_t> shape) {
  write(dataset, H5T_NATIVE_FLOAT, data.data(), shape);
}

void File::write_bytes(const std::string& dataset, std::span<const char> data) {
  const std::int64_t shape[] = {static_cast<std::int64_t>(data.size())};
  write(dataset, H5T_NATIVE_UINT8, data.data(), shape);
}

void File::write_strings(const std::string& dataset, const std::vector<std::string>& strings) {
  const std::int64_t shape[] = {static_cast<std::int64_t>(strings.size())};
  write(dataset, string_type(), pointers(strings).data(), shape);
}

void File::link(const std::string& object, const std::string& name) {
  if (H5Lcreate_hard(id_, object.c_str(), id_, name.c_str(), H5P_DEFAULT, H5P_DEFAULT) < 0) fail(name, "cannot write");
}

bool File::same_object(const std::string& a, const std::string& b) const {
  const CrashGuard guard(crashes_.get());
  const auto address = [&](const std::string& name) {
    ObjectInfo info;
    if (H5Oget_info_by_name2(id_, name.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) fail(name, "cannot read");
    return info.addr;
  };
  return address(a) == address(b);
}

Dataset::Dataset(std::int64_t id, const File& file, std::string path)
    : id_(id), file_size_(file.size_), file_(file.path_), path_(std::move(path)), crashes_(file.crashes_) {
  const Id element(H5Dget_type(id), H5Tclose), space(H5Dget_space(id), H5Sclose);
  if (H5Tget_class(element) == H5T_FLOAT && H5Tget_size(element) == 4) type = Type::float32;
  if (H5Tget_class(element) == H5T_INTEGER && H5Tget_size(element) == 2) type = Type::uint16;
  if (H5Tget_class(element) == H5T_INTEGER && H5Tget_size(element) == 1) type = Type::uint8;
  shape = shape_of(space);
  stored_bytes = std::min(as_int64(H5Dget_storage_size(id)), file.size_);
}

Dataset::Dataset(Dataset&& other) noexcept
    : type(other.type),
      shape(std::move(other.shape)),
      stored_bytes(other.stored_bytes),
      id_(std::exchange(other.id_, -1)),
      file_size_(other.file_size_),
      file_(std::move(other.file_)),
      path_(std::move(other.path_)),
      crashes_(other.crashes_) {}

Dataset::~Dataset() {
  if (id_ < 0) return;
  const CrashGuard guard(crashes_.get());
  H5Dclose(id_);
}

std::int64_t Dataset::offset_of_floats() const {
  const CrashGuard guard(crashes_.get());
  const Id element(H5Dget_type(id_), H5Tclose), creation(H5Dget_create_plist(id_), H5Pclose);
  if (H5Tequal(element, H5T_NATIVE_FLOAT) <= 0 || H5Pget_layout(creation) != H5D_CONTIGUOUS ||
      H5Pget_external_count(creation) != 0)
    return -1;
  // H5Dget_offset() returns the largest uint64 if the elements have no offset in the file; as_int64() makes this the
  // largest int64.
  const std::int64_t offset = as_int64(H5Dget_offset(id_));
  return offset > file_size_ - stored_bytes ? -1 : offset;
}

void Dataset::read(std::int64_t element, void* out) const {
  const CrashGuard guard(crashes_.get());
  const Id creation(H5Dget_create_plist(id_), H5Pclose);
  if (H5Pget_external_count(creation) != 0 || H5Pget_layout(creation) == H5D_VIRTUAL)
    throw Error(Position{file_}, path_ + ": its numbers are in another file (a checkpoint is one file)");
  if (H5Dread(id_, element, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) < 0)
    throw Error(Position{file_}, path_ + ": cannot read (the file is damaged): " + reason());
}

void Dataset::read(std::span<float> out) const {
  read(H5T_NATIVE_FLOAT, out.data());
}

void Dataset::read(std::span<std::uint16_t> out) const {
  read(H5T_NATIVE_UINT16, out.data());
}

void Dataset::read(std::span<char> out) const {
  read(H5T_NATIVE_UINT8, out.data());
}

struct stat File::status() const {
  void* handle = nullptr;
  struct stat out {};
  if (H5Fget_vfd_handle(id_, H5P_DEFAULT, &handle) < 0 || ::fstat(*static_cast<const int*>(handle), &out) != 0)
    fail("", "cannot read");
  return out;
}

bool File::is_same_as(int descriptor) const {
  const struct stat mine = status();
  struct stat other {};
  return ::fstat(descriptor, &other) == 0 && mine.st_dev == other.st_dev && mine.st_ino == other.st_ino;
}

void File::check_unfiltered(std::int64_t dataset, const std::string& path) const {
  const Id creation(H5Dget_create_plist(dataset), H5Pclose);
  if (H5Pget_nfilters(creation) > 0)
    throw Error(Position{path_}, path + ": is compressed, or has another filter of HDF5, which heed does not read (" +
                                     "h5repack -f NONE " + path_ + " NEW.h5 removes all filters)");
}

Dataset File::dataset(const std::string& path) const {
  const CrashGuard guard(crashes_.get());
  const hid_t id = H5Dopen2(id_, path.c_str(), H5P_DEFAULT);
  if (id < 0) fail(path, "cannot read");
  Dataset out(id, *this, path);
  check_unfiltered(id, path);
  return out;
}

std::string File::read_bytes(const std::string& dataset) const {
  const CrashGuard guard(crashes_.get());
  const Dataset found = this->dataset(dataset);
  if (found.type != Type::uint8 || found.shape.size() != 1 || found.shape[0] > found.stored_bytes)
    throw Error(Position{path_}, dataset + ": is not an array of bytes");
  std::string out(static_cast<std::size_t>(found.shape[0]), '\0');
  if (!out.empty()) found.read(std::span(out));
  return out;
}

std::vector<std::string> File::read_strings(const std::string& dataset) const {
  const CrashGuard guard(crashes_.get());
  const Id id(H5Dopen2(id_, dataset.c_str(), H5P_DEFAULT), H5Dclose);
  if (!id.valid()) fail(dataset, "cannot read");
  check_unfiltered(id, dataset);
  const Id type(H5Dget_type(id), H5Tclose), space(H5Dget_space(id), H5Sclose);
  const auto shape = shape_of(space);
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) <= 0 || shape.size() != 1)
    throw Error(Position{path_}, dataset + ": is not a list of texts of variable length");
  if (shape[0] > std::min(as_int64(H5Dget_storage_size(id)), size_) / kReference)
    throw Error(Position{path_}, dataset + ": claims " + std::to_string(shape[0]) + " texts but does not hold them");
  const Id memory = string_type();
  std::vector<char*> raw(static_cast<std::size_t>(shape[0]));
  if (raw.empty()) return {};
  TextMemory texts(size_);
  const Id transfer = texts.transfer();
  if (H5Dread(id, memory, H5S_ALL, H5S_ALL, transfer, raw.data()) < 0)
    fail(dataset, "cannot read (the file is damaged)");
  return copies(raw);
}

}  // namespace heed::h5
