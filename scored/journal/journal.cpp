#include "scored/journal/journal.hpp"

#include "base/os/fd.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace score {

bool is_journal(int fd, const char* journal_stream) {
  struct stat found {};

  if (journal_stream == nullptr || ::fstat(fd, &found) != 0) return false;
  return journal_stream == fmt::format("{}:{}", found.st_dev, found.st_ino);
}

// One datagram in the journal's native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL). Values hold
// no line ends (event.hpp), so the simple form of a field is enough.
bool send_to_journal(std::span<const JournalField> fields) {
  static const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  constexpr sockaddr_un kAddress = {AF_UNIX, "/run/systemd/journal/socket"};
  std::string entry;
  for (const auto& [name, value] : fields) (((entry += name) += '=') += value) += '\n';
  const auto sent = ::sendto(socket.get(), entry.data(), entry.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&kAddress), sizeof kAddress);
  return sent == static_cast<ssize_t>(entry.size());
}

void report_to_journal_if_started_by_it() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  if (is_journal(STDERR_FILENO, std::getenv("JOURNAL_STREAM"))) set_journal_sink(send_to_journal);
}

}  // namespace score
