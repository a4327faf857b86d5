#pragma once
// Telling the service manager how the daemon is: the protocol of sd_notify(3), which is one
// datagram to the socket named by $NOTIFY_SOCKET. libsystemd is not linked for it: it would cost
// each of 64 node daemons memory. Without a service manager every function does nothing. Asio-free.

#include "base/time.hpp"

#include <optional>
#include <string_view>

namespace score::inline base {

// Sends the lines as they are ("READY=1"). Failures are nobody's business.
void notify(std::string_view lines);

void notify_ready();
// One line for people: "64/64 nodes, 3 jobs, slice 100 ms".
void notify_status(std::string_view status);
void notify_stopping();
// Of a slow start or stop: so much more time from now on.
void notify_extend(Duration time);
void notify_watchdog();

// How often notify_watchdog() should be called: half of what the manager waits. nullopt: it does
// not watch this process.
[[nodiscard]] std::optional<Duration> watchdog_period();

}  // namespace score::inline base
