// This module is tested by tests/parts, which removes the parts.
#include "scored/job/probe/parts_search.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <linux/io_uring.h>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

namespace score::probe {
namespace {

bool is_in_path(std::string_view name) {
  const char* variable = std::getenv("PATH");
  std::string_view rest = variable == nullptr ? "/usr/bin:/bin" : variable;
  while (!rest.empty()) {
    const auto end = std::min(rest.find(':'), rest.size());
    const auto path = std::string(rest.substr(0, end)) + "/" + std::string(name);
    if (access(path.c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

// The shepherd and the launcher look in the same folders, which are next to this program.
bool is_installed(std::string_view name) {
  std::error_code error;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const std::array<const char*, 3> places{".", "../../sbin", "../../bin"};
  return std::ranges::any_of(
      places, [&](const char* place) { return access((here / place / name).c_str(), X_OK) == 0; });
}

bool has_io_uring() {
  io_uring_params parameters{};
  const auto ring = static_cast<int>(syscall(SYS_io_uring_setup, 1, &parameters));
  if (ring >= 0) close(ring);
  return ring >= 0;
}

}  // namespace

bool has_part(std::string_view name, std::string_view provider) {
  if (name == "libpm-fi.so") return !provider.empty();
  if (name == "io_uring") return has_io_uring();
  if (name == "/dev/shm") return access("/dev/shm", W_OK | X_OK) == 0;
  if (name == "/dev/fuse") return access("/dev/fuse", R_OK | W_OK) == 0;
  if (name == "fusermount3") return access("/usr/bin/fusermount3", X_OK) == 0;
  return name.starts_with("scored-") ? is_installed(name) : is_in_path(name);
}

}  // namespace score::probe
