#include "heed/train/model_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "small_run.h"

using namespace heed;

namespace {

std::string message(const std::string& model) {
  std::ostringstream messages;
  Log log(messages, "train");
  try {
    const ModelLock lock(model, "-m", log);
  } catch (const Error& error) {
    return error.what();
  }
  return messages.str();
}

}  // namespace

TEST_CASE("a model is written by one training at a time, and the lock leaves no file") {
  const TemporaryFolder folder("heed_lock");
  const std::string model = folder / "m.h5";
  std::ostringstream messages;
  Log log(messages, "train");
  std::optional<ModelLock> lock;
  lock.emplace(model, "-m", log);
  CHECK(folder.files() == std::vector<std::string>{".m.h5.lock"});
  const std::string taken = model + ": another training (process " + std::to_string(::getpid()) +
                            ") is writing it (wait for it, stop it, or name another model with -m)";
  CHECK(message(model) == taken);
  std::filesystem::create_symlink("m.h5", folder / "link.h5");  // another name for the same model
  CHECK(message(folder / "link.h5") == (folder / "link.h5") + taken.substr(model.size()));
  CHECK(message(folder / "other.h5").empty());
  lock.reset();
  CHECK(folder.files() == std::vector<std::string>{"link.h5"});
  CHECK(message(model).empty());
  CHECK(messages.str().empty());
}

TEST_CASE("a lock's file that a killed training left locks nothing") {
  const TemporaryFolder folder("heed_lock_left");
  std::ofstream(folder / ".m.h5.lock") << "999999999";
  CHECK(message(folder / "m.h5").empty());
  CHECK(folder.files().empty());
}

TEST_CASE("a lock that was removed while it was waited for is not taken for the lock") {
  const TemporaryFolder folder("heed_lock_race");
  const std::string model = folder / "m.h5";
  // Many processes lock the model in turn. The file "inside" exists while a process has the lock; two processes must
  // never have the lock at once.
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      std::ostringstream messages;
      Log log(messages, "train");
      int rounds = 0;
      while (rounds < 300) {
        try {
          const ModelLock lock(model, "-m", log);
          const int inside = ::open((folder / "inside").c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
          if (inside < 0) ::_exit(1);
          ::close(inside);
          ::unlink((folder / "inside").c_str());
          ++rounds;
        } catch (const Error&) {
        }
      }
      ::_exit(0);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  CHECK(folder.files().empty());
}

TEST_CASE("temporary files of killed trainings are removed, and no others") {
  const TemporaryFolder folder("heed_lock_sweep");
  const std::vector<std::string> left = {".m.h5.12.tmp",
                                         ".m.h5.4194304.tmp",
                                         ".m.best-bleu.h5.7.tmp",
                                         ".m.best-perplexity.h5.12.tmp",
                                         ".m.best-ce-mean-words.h5.1.tmp",
                                         ".m.update-1500.h5.12.tmp"};
  std::vector<std::string> others = {".m.h5.tmp",
                                     ".m.h5.x.tmp",
                                     ".m.h5.12.tmp.gz",
                                     ".m.h5.1x2.tmp",
                                     ".mm.h5.12.tmp",
                                     "m.h5.12.tmp",
                                     ".m.h5.12",
                                     ".m.h5.lock",
                                     ".m.best.h5.1.tmp",
                                     ".m.best-ter.h5.1.tmp",
                                     ".m.update-.h5.1.tmp",
                                     ".n.h5.12.tmp",
                                     ".m.update-5.h5.tmp",
                                     "m.h5",
                                     "m.best-bleu.h5"};
  for (const auto& names : {left, others})
    for (const std::string& name : names) std::ofstream(folder / name) << "x";
  std::filesystem::create_directory(folder / "sub");
  std::ofstream(folder / "sub/.m.h5.12.tmp") << "x";
  CHECK(remove_left_temporary_files(folder / "m.h5") == static_cast<int>(left.size()));
  others.emplace_back("sub");
  std::sort(others.begin(), others.end());
  CHECK(folder.files() == others);
  CHECK(std::filesystem::exists(folder / "sub/.m.h5.12.tmp"));
}

TEST_CASE("temporary files of a model in the present folder are found, too") {
  const TemporaryFolder folder("heed_lock_here");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path);
  std::ofstream(".m.h5.12.tmp") << "x";
  std::ofstream(".m.update-5.h5.12.tmp") << "x";
  const int removed = remove_left_temporary_files("m.h5");
  std::filesystem::current_path(before);
  CHECK(removed == 2);
  CHECK(folder.files().empty());
}
