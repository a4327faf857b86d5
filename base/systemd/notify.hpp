#pragma once
// Reports the daemon's state to the service manager (sd_notify(3)). Without a service manager every
// function does nothing; failures to report are ignored. It is free of Asio.

#include "base/time.hpp"

#include <optional>
#include <string_view>

namespace score::inline base {

void notify_ready();
// Sends one line for people: "64/64 nodes, 3 jobs, slice 100 ms".
void notify_status(std::string_view status);
void notify_stopping();
void notify_watchdog();

// Returns the interval between calls of notify_watchdog(): half of the manager's timeout. Returns
// nullopt if the manager does not watch this process.
[[nodiscard]] std::optional<Duration> watchdog_period();

}  // namespace score::inline base
