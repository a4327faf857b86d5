#include "base/systemd/notify.hpp"

#include "base/text.hpp"

#include <systemd/sd-daemon.h>

#include <string>

namespace score::inline base {

void notify_ready() {
  sd_notify(0, "READY=1");
}

void notify_status(std::string_view status) {
  sd_notify(0, ("STATUS=" + escape_terminal(status)).c_str());
}

void notify_stopping() {
  sd_notify(0, "STOPPING=1");
}

void notify_watchdog() {
  sd_notify(0, "WATCHDOG=1");
}

std::optional<Duration> watchdog_period() {
  std::uint64_t us = 0;
  if (sd_watchdog_enabled(0, &us) <= 0) return std::nullopt;
  return std::chrono::microseconds{us / 2};
}

}  // namespace score::inline base
