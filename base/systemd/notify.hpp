#pragma once
// Reports the daemon's state to the service manager (sd_notify(3)). Without a service manager every
// function does nothing; failures to report are ignored. Asio-free.

#include "base/time.hpp"

#include <optional>
#include <string_view>

namespace score::inline base {

void notify_ready();
// One line for people: "64/64 nodes, 3 jobs, slice 100 ms".
void notify_status(std::string_view status);
void notify_stopping();
void notify_watchdog();

// How often notify_watchdog() should be called: half of the manager's timeout. nullopt: the manager
// does not watch this process.
[[nodiscard]] std::optional<Duration> watchdog_period();

}  // namespace score::inline base
