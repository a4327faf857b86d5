#include "scored/job/probe/pmi_barrier.hpp"

#include "base/os/fd.hpp"
#include "base/text.hpp"

#include <cstdlib>
#include <unistd.h>

namespace score::probe {

Result<PmiBarrier> PmiBarrier::join() {
  const char* text = std::getenv("PMI_FD");
  const auto fd = text == nullptr ? Result<int>(Error(Errc::NotFound)) : parse_number<int>(text);
  if (!fd) return fail(Errc::NotFound, "PMI_FD is not set; this process is not a task of a job");
  PmiBarrier barrier(*fd);
  auto joined = barrier.ask("init pmi_version=1 pmi_subversion=1", "response_to_init");
  if (!joined) return joined.error();
  return barrier;
}

Status PmiBarrier::ask(std::string_view command, std::string_view answer) {
  if (auto sent = write_all(fd_, fmt::format("cmd={}\n", command)); !sent) return sent;
  std::string line;
  char byte = 0;
  while (line.size() < 4096) {
    const ssize_t got = ::read(fd_, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return fail(Errc::Closed, "the PMI server closed the connection");
    if (byte == '\n') break;
    line += byte;
  }
  if (line.starts_with(fmt::format("cmd={}", answer))) return {};
  return fail(Errc::Malformed, "the PMI server replied to {} with '{}'", command,
              escape_terminal(line, 200));
}

}  // namespace score::probe
