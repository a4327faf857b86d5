#include "scored/shared/journal/journal.hpp"

#include <fmt/format.h>
#define SD_JOURNAL_SUPPRESS_LOCATION  // leaves out paths of the build machine
#include <systemd/sd-journal.h>

#include <cstdlib>
#include <string>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

namespace score {

bool is_journal(int fd, const char* journal_stream) {
  struct stat found {};

  if (journal_stream == nullptr || ::fstat(fd, &found) != 0) return false;
  return journal_stream == fmt::format("{}:{}", found.st_dev, found.st_ino);
}

bool send_to_journal(std::span<const JournalField> fields) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : fields) texts.push_back(fmt::format("{}={}", name, value));
  std::vector<iovec> parts;
  for (std::string& text : texts) parts.push_back({text.data(), text.size()});
  return sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) == 0;
}

void report_to_journal_if_started_by_it() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  if (is_journal(STDERR_FILENO, std::getenv("JOURNAL_STREAM"))) set_journal_sink(send_to_journal);
}

}  // namespace score
