#include "heed/base/temporary_name.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

namespace heed {

/// One path in the list of temporary files. A signal handler may walk through the list while another thread adds an
/// entry: so an entry is never freed, and its path never changes.
struct TemporaryName::Entry {
  std::string path;
  std::atomic<bool> used = true;
  Entry* next = nullptr;
};

std::atomic<TemporaryName::Entry*> TemporaryName::first_entry = nullptr;

/// Returns an entry for `path` in the list of temporary files, marked as used: an entry that an earlier TemporaryName
/// for the same path has released, or else a new entry.
TemporaryName::Entry* TemporaryName::entry_of(const std::string& path) {
  for (Entry* entry = first_entry; entry; entry = entry->next)
    if (entry->path == path && !entry->used.exchange(true)) return entry;
  auto* entry = new Entry;
  entry->path = path;
  entry->next = first_entry;
  while (!first_entry.compare_exchange_weak(entry->next, entry)) continue;
  return entry;
}

TemporaryName::TemporaryName(std::string path) : path_(std::move(path)), entry_(entry_of(path_)) {}

TemporaryName::~TemporaryName() {
  if (!entry_) return;
  ::unlink(path_.c_str());
  release();
}

void TemporaryName::release() {
  if (entry_) std::exchange(entry_, nullptr)->used = false;
}

std::string temporary_folder() {
  const char* const set = std::getenv("TMPDIR");
  return set && *set != '\0' ? set : "/var/tmp";
}

void remove_temporary_files() {
  const int error = errno;
  for (TemporaryName::Entry* entry = TemporaryName::first_entry; entry; entry = entry->next)
    if (entry->used) ::unlink(entry->path.c_str());
  errno = error;
}

bool same_file(int fd, const std::string& path) {
  struct stat open = {}, named = {};
  return ::fstat(fd, &open) == 0 && ::stat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

}  // namespace heed
