// A file without a name (memfd) would leave nothing behind, but "/proc/self/fd/4" means a different
// file in each process that the script starts. For this reason the file has a name. Its shepherd
// keeps the directory locked while it runs. A killed shepherd leaves a directory that the next
// shepherd of the user can lock, and removes. systemd-tmpfiles does not touch locked directories.
#include "scored/job/tasks/script_file.hpp"

#include "base/errc.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace score::shepherd {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "scored-script-";
constexpr std::size_t kMaxNameBytes = 255;     // NAME_MAX
constexpr std::size_t kMaxLineBytes = 256;     // the kernel's BINPRM_BUF_SIZE
constexpr std::time_t kYoungest_seconds = 60;  // a younger directory may not be locked yet
constexpr mode_t kFileMode = 0500;

base::Error failed(std::string_view what, const std::string& where) {
  return base::fail(base::errno_code(errno), "cannot {} {}", what, where);
}

std::string file_name(std::string_view name) {
  std::string last(name.substr(name.rfind('/') + 1));
  const bool is_usable =
      !last.empty() && last != "." && last != ".." && last.size() <= kMaxNameBytes;
  return is_usable ? last : "script";
}

void remove_tree(const std::string& directory) {
  std::error_code ignored;
  fs::remove_all(directory, ignored);
}

// Returns true if the shepherd of this directory was killed.
bool is_left(const std::string& directory) {
  const base::UniqueFd opened(
      open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));

  struct stat info {};

  if (!opened || fstat(opened.get(), &info) != 0 || info.st_uid != geteuid()) return false;
  const bool is_old = std::time(nullptr) - info.st_mtime > kYoungest_seconds;
  return is_old && flock(opened.get(), LOCK_EX | LOCK_NB) == 0;
}

void remove_left(const std::string& parent) {
  std::error_code error;
  for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
    const std::string path = at->path();
    const bool is_ours = at->path().filename().string().starts_with(kPrefix);
    if (is_ours && is_left(path)) remove_tree(path);
  }
}

base::Status write_file(const std::string& path, std::string_view text) {
  const base::UniqueFd file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  if (!file) return failed("create", path);
  return base::write_all(file.get(), text);
}

}  // namespace

base::Result<ScriptFile> ScriptFile::create_in(const std::string& parent, std::uint64_t job,
                                               std::string_view name, std::string_view text) {
  remove_left(parent);
  ScriptFile made;
  std::string directory = fmt::format("{}/{}{}.XXXXXX", parent, kPrefix, job);
  if (mkdtemp(directory.data()) == nullptr) return failed("create a directory in", parent);
  made.directory_ = directory;
  made.lock_ = base::UniqueFd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!made.lock_ || flock(made.lock_.get(), LOCK_SH | LOCK_NB) != 0) {
    return failed("lock", directory);
  }
  made.path_ = directory + "/" + file_name(name);
  if (auto written = write_file(made.path_, text); !written) return written.error();
  return made;
}

base::Result<ScriptFile> ScriptFile::create(std::uint64_t job, std::string_view name,
                                            std::string_view text, std::string_view temporary) {
  auto made = create_in("/tmp", job, name, text);
  if (made) return made;
  for (const std::string_view parent : {std::string_view("/var/tmp"), temporary}) {
    if (!parent.starts_with('/')) continue;
    if (auto other = create_in(std::string(parent), job, name, text)) return other;
  }
  return made.error().with_context("set TMPDIR to a writable directory");
}

base::Result<ScriptFile> ScriptFile::create_again(const std::string& path, std::string_view text) {
  const std::string directory = path.substr(0, path.rfind('/'));
  const std::string name = directory.substr(directory.rfind('/') + 1);
  if (!name.starts_with(kPrefix)) return base::fail(base::Errc::Malformed, "script {}", path);
  if (mkdir(directory.c_str(), S_IRWXU) != 0) {
    if (errno != EEXIST) return failed("create", directory);
    return base::fail(base::Errc::Busy,
                      "{} exists: the saved job still runs here, or was killed; "
                      "if it has ended, remove the directory",
                      directory);
  }
  ScriptFile made;
  made.directory_ = directory;
  made.lock_ = base::UniqueFd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!made.lock_ || flock(made.lock_.get(), LOCK_SH | LOCK_NB) != 0) {
    return failed("lock", directory);
  }
  made.path_ = path;
  if (auto written = write_file(made.path_, text); !written) return written.error();
  return made;
}

ScriptFile::ScriptFile(ScriptFile&& other) noexcept
    : directory_(std::exchange(other.directory_, {})),
      path_(std::move(other.path_)),
      lock_(std::move(other.lock_)) {}

ScriptFile::~ScriptFile() {
  if (!directory_.empty()) remove_tree(directory_);
}

Interpreter interpreter_of(const std::string& file) {
  constexpr std::string_view kBlanks = " \t";
  const base::UniqueFd opened(open(file.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  std::array<char, kMaxLineBytes> buffer{};
  const ssize_t got = opened ? read(opened.get(), buffer.data(), buffer.size()) : -1;
  std::string_view line(buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  line = line.substr(0, line.find('\n'));
  if (!line.starts_with("#!")) return {};
  line.remove_prefix(2);
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
  const auto end = std::min(line.find_first_of(kBlanks), line.size());
  Interpreter found{.path = std::string(line.substr(0, end)), .argument = {}};
  const auto rest = line.find_first_not_of(kBlanks, end);
  if (rest != line.npos) found.argument = line.substr(rest);
  return found;
}

}  // namespace score::shepherd
