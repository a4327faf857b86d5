// This fuzz target gives scored-scratch-directory any text as the user. It may make only the
// private directory of the user whose number the text is.
#include "base/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

int scratch_directory_main(int argc, char** argv);

namespace {

namespace fs = std::filesystem;

struct Place {
  Place() {
    char pattern[] = "/tmp/score_fuzz_XXXXXX";
    SCORE_ASSERT(mkdtemp(pattern) != nullptr);
    path = pattern;
    setenv("SCORED_SCRATCH_DIR", pattern, 1);
  }

  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  ~Place() { fs::remove_all(path); }

  fs::path path;
};

// Returns the number that the text is: digits, at most ten, and not the number that means no user.
std::optional<std::uint64_t> number(std::string_view text) {
  if (text.empty() || text.size() > 10) return std::nullopt;
  std::uint64_t value = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    value = 10 * value + static_cast<std::uint64_t>(digit - '0');
  }
  if (value >= UINT32_MAX) return std::nullopt;
  return value;
}

// A failure is reported for nearly every input, so the messages go to /dev/null.
int run_program(std::string user) {
  std::string words[] = {"scored-scratch-directory", "--job", "/proc/self/fd/4"};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), user.data(), nullptr};
  std::fflush(stderr);
  const int kept = dup(STDERR_FILENO);
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(null, STDERR_FILENO);
  const int first = dup(null);
  const int code = scratch_directory_main(4, argv);
  closefrom(first);  // a program leaves its descriptors to its end
  std::fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  close(null);
  return code;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Place place;
  const std::string user(std::string(reinterpret_cast<const char*>(data), size).c_str());
  const auto wanted = number(user);
  const int code = run_program(user);
  const bool may_give = geteuid() == 0 || wanted == geteuid();
  SCORE_ASSERT((code == 0) == (wanted && may_give), "{}", code);
  for (const auto& entry : fs::directory_iterator(place.path)) {
    SCORE_ASSERT(wanted && entry.path().filename() == std::to_string(*wanted));

    struct stat status {};

    SCORE_ASSERT(stat(entry.path().c_str(), &status) == 0 && (status.st_mode & 07777U) == 0700U);
    SCORE_ASSERT(code != 0 || status.st_uid == *wanted);
    fs::remove(entry.path());
  }
  SCORE_ASSERT(fs::is_directory(place.path));
  return 0;
}
