#include "base/os/notify.hpp"

#include "base/os/fd.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace score::inline base {

void notify(std::string_view lines) {
  const char* path = getenv("NOTIFY_SOCKET");
  if (path == nullptr) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(path);
  const bool is_known = path[0] == '/' || path[0] == '@';
  if (!is_known || length < 2 || length >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';  // the abstract name space
  const UniqueFd sender(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!sender) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  sendto(sender.get(), lines.data(), lines.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
         reinterpret_cast<const sockaddr*>(&address), size);
}

void notify_ready() {
  notify("READY=1");
}

void notify_status(std::string_view status) {
  notify("STATUS=" + escape_terminal(status));
}

void notify_stopping() {
  notify("STOPPING=1");
}

void notify_extend(Duration time) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  notify(fmt::format("EXTEND_TIMEOUT_USEC={}", us));
}

void notify_watchdog() {
  notify("WATCHDOG=1");
}

std::optional<Duration> watchdog_period() {
  const char* time = getenv("WATCHDOG_USEC");
  const char* pid = getenv("WATCHDOG_PID");
  if (time == nullptr) return std::nullopt;
  if (pid != nullptr && parse_number<pid_t>(pid).value_or(0) != getpid()) return std::nullopt;
  const auto us = parse_number<std::int64_t>(time);
  constexpr std::int64_t kMostUs = std::int64_t{1} << 50;
  if (!us || *us < 2 || *us > kMostUs) return std::nullopt;
  return std::chrono::microseconds{*us / 2};
}

}  // namespace score::inline base
