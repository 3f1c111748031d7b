#include "heed/run/partial_output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>

#include "heed/base/error.h"
#include "heed/base/put_in_place.h"
#include "heed/base/temporary_name.h"

namespace heed {
namespace {

/// Returns the number with which a line of an n-best list begins; -1 for another line.
std::int64_t group_of(const std::string& line) {
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  return error == std::errc() && std::string_view(end).starts_with(" ||| ") ? number : -1;
}

}  // namespace

std::string partial_file(const std::string& path) {
  return target_of_output(path) + ".partial";
}

bool is_complete(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

PartialOutput::PartialOutput(const std::string& path, bool n_best)
    : path_(path), target_(target_of_output(path)), name_(partial_file(path)) {
  const int fd = ::open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) throw Error(Position{name_}, "cannot open for writing: " + errno_text());
  buffer_.emplace(fd, name_, true);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0)
    throw Error(Position{name_}, "another translate --resume is writing it (wait for it, or end it)");
  measure(n_best);
}

/// Reads the file and finds the end of the complete output.
void PartialOutput::measure(bool n_best) {
  std::istream in(&*buffer_);
  in.exceptions(std::ios::badbit);
  std::string line, group;
  // The lines before the last group are complete; `group` is the last group, whose first byte is at size_.
  const auto complete_group = [&] {
    if (group.empty()) return;
    if (done_++ == 0) first_ = group;
    size_ += std::ssize(group);
    last_ = std::move(group);
    group.clear();
  };
  for (std::int64_t number = 1; std::getline(in, line) && !in.eof(); ++number) {
    if (n_best) {
      const std::int64_t id = group_of(line);
      if (id != done_ && id != done_ + 1)
        throw Error(Position{name_, number},
                    "is no line of the n-best list that another part of this file begins (remove " + name_ +
                        " to translate from the beginning)");
      if (id == done_ + 1) complete_group();
    }
    group += line + "\n";
    if (!n_best) complete_group();
  }
}

void PartialOutput::cut() {
  if (::ftruncate(buffer_->fd(), size_) != 0 || ::lseek(buffer_->fd(), size_, SEEK_SET) < 0)
    throw Error(Position{name_}, "cannot go on after what is complete: " + errno_text());
  stream_.rdbuf(&*buffer_);
  stream_.exceptions(std::ios::badbit);
}

void PartialOutput::commit() {
  stream_.flush();
  if (!same_file(buffer_->fd(), name_))
    throw Error(Position{name_}, "was removed or replaced by another file while this job wrote it (begin again)");
  put_in_place(name_, target_, path_);
}

}  // namespace heed
