#include "heed/run/ranks.h"

#include <unistd.h>

#include <algorithm>

#include "heed/base/error.h"

namespace heed {

std::vector<std::string> hosts_of(Communicator& ranks) {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return ranks.gather(name);
}

void check_same(Communicator& ranks, std::string_view does, const std::function<std::string()>& describe) {
  if (ranks.size() == 1) return;
  const std::vector<std::string> all = ranks.gather(describe()), hosts = hosts_of(ranks);
  run_on_first(ranks, [&] {
    for (std::size_t r = 1; r < all.size(); ++r) {
      const auto [ours, theirs] = std::ranges::mismatch(all[0], all[r]);
      if (ours == all[0].end() && theirs == all[r].end()) continue;
      const auto line = [&](const std::string& text, std::string::const_iterator at) {
        const auto index = static_cast<std::size_t>(at - text.begin());
        const std::size_t begin = index == 0 ? 0 : text.rfind('\n', index - 1) + 1;
        return text.substr(begin, text.find('\n', begin) - begin);
      };
      throw Error("rank " + std::to_string(r) + " on " + hosts[r] + " " + std::string(does) +
                  " something else: there, " + line(all[r], theirs) + "; on rank 0, " + line(all[0], ours) +
                  " (all ranks need the same program, options and files)");
    }
  });
}

std::string describe_options(const FieldList& all, const FieldList& common) {
  std::string out = "heed's version is " HEED_VERSION "\n";
  for (const Field& field : all.all()) {
    if (field.info.name == "threads" || common.find(field.info.name)) continue;
    out += "--" + std::string(field.info.name) + " is " + text_of(field) + "\n";
  }
  return out;
}

SharedInput::int_type SharedInput::underflow() {
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  // The first letter says whether text follows, or the message of an error.
  constexpr char kText = 't', kError = 'e';
  if (ranks_.rank() == 0) try {
      block_.resize(1 + kBlock);
      const std::streamsize read = in_.rdbuf()->sgetn(block_.data() + 1, kBlock);
      block_.resize(1 + static_cast<std::size_t>(read));
      block_[0] = kText;
    } catch (const Error& error) {
      block_ = kError + std::string(error.what());
    }
  ranks_.broadcast_text(block_);
  if (block_[0] == kError) throw Error(block_.substr(1));
  setg(block_.data(), block_.data() + 1, block_.data() + block_.size());
  return gptr() == egptr() ? traits_type::eof() : traits_type::to_int_type(*gptr());
}

void warn_of_different_processors(Communicator& ranks, const std::string& own, Log& log) {
  const std::vector<std::string> all = ranks.gather(own);
  const auto other = std::ranges::find_if(all, [&](const std::string& set) { return set != own; });
  if (other != all.end())
    log.warn("the ranks have different processors (" + own + ", " + *other +
             "): the bits of the result depend on which rank computes what");
}

}  // namespace heed
