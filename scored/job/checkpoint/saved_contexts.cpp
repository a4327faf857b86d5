// This module is tested by tests/integration/mpi/test_mpi_checkpoint.py.
#include "scored/job/checkpoint/saved_contexts.hpp"

#include "base/text.hpp"
#include "pmlib/core/segment.hpp"

#include <fcntl.h>
#include <filesystem>
#include <set>
#include <string>
#include <sys/stat.h>
#include <system_error>
#include <utility>

namespace score::shepherd {

namespace {

namespace fs = std::filesystem;

// Links of /proc/PID/fd to memory without a name look like this.
constexpr std::string_view kMemory = "/memfd:";

base::UniqueFd open_context(const std::string& path, std::uint64_t key) {
  base::UniqueFd opened(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!opened) return {};
  auto copy = base::duplicate(opened.get());
  if (!copy) return {};
  int error = 0;
  const auto context = pm::MappedSegment::attach(copy->release(), error);
  return context && context->segment().header().key == key ? std::move(opened) : base::UniqueFd();
}

}  // namespace

std::vector<base::UniqueFd> contexts_of(std::span<const pid_t> processes, std::uint64_t key) {
  std::vector<base::UniqueFd> found;
  std::set<ino_t> known;
  for (const pid_t process : processes) {
    std::error_code error;
    for (fs::directory_iterator at(fmt::format("/proc/{}/fd", process), error), end;
         !error && at != end; at.increment(error)) {
      std::error_code gone;
      if (!fs::read_symlink(at->path(), gone).string().starts_with(kMemory)) continue;

      struct stat info {};

      if (stat(at->path().c_str(), &info) != 0 || !known.insert(info.st_ino).second) continue;
      auto context = open_context(at->path().string(), key);
      if (context) found.push_back(std::move(context));
    }
  }
  return found;
}

}  // namespace score::shepherd
