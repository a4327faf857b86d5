// systemd.scope(5) describes the unit; the D-Bus call is StartTransientUnit of
// org.freedesktop.systemd1(5). systemd has moved this process when its own cgroup has changed.
#include "base/systemd/user_scope.hpp"

#include "base/os/cgroup.hpp"
#include "base/time.hpp"

#include <systemd/sd-bus.h>

#include <chrono>
#include <poll.h>
#include <string>
#include <unistd.h>

namespace score::inline base {

namespace {

constexpr std::uint64_t kLimit_us = 1'000'000;
constexpr int kPause_ms = 5;

bool append_properties(sd_bus_message* call) {
  return sd_bus_message_open_container(call, 'a', "(sv)") >= 0 &&
         sd_bus_message_append(call, "(sv)", "Delegate", "b", 1) >= 0 &&
         sd_bus_message_append(call, "(sv)", "CollectMode", "s", "inactive-or-failed") >= 0 &&
         sd_bus_message_append(call, "(sv)", "PIDs", "au", 1U,
                               static_cast<std::uint32_t>(getpid())) >= 0 &&
         sd_bus_message_close_container(call) >= 0 &&
         sd_bus_message_append(call, "a(sa(sv))", 0) >= 0;
}

bool request_scope(sd_bus* bus, const std::string& unit) {
  sd_bus_message* call = nullptr;
  const bool made = sd_bus_message_new_method_call(
                        bus, &call, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                        "org.freedesktop.systemd1.Manager", "StartTransientUnit") >= 0 &&
                    sd_bus_message_append(call, "ss", unit.c_str(), "fail") >= 0 &&
                    append_properties(call);
  const bool sent = made && sd_bus_call(bus, call, kLimit_us, nullptr, nullptr) >= 0;
  sd_bus_message_unref(call);
  return sent;
}

bool wait_until_in(const std::string& unit) {
  const TimePoint deadline = monotonic_now() + std::chrono::microseconds(kLimit_us);
  for (;;) {
    const auto cgroup = own_cgroup();
    if (cgroup && cgroup->ends_with("/" + unit)) return true;
    if (monotonic_now() > deadline) return false;
    ::poll(nullptr, 0, kPause_ms);
  }
}

}  // namespace

bool join_user_scope() {
  if (geteuid() == 0) return false;
  sd_bus* bus = nullptr;
  if (sd_bus_open_user(&bus) < 0) return false;
  const auto unit = "scored-start-" + std::to_string(getpid()) + ".scope";
  const bool joined = request_scope(bus, unit) && wait_until_in(unit);
  sd_bus_flush_close_unref(bus);
  return joined;
}

}  // namespace score::inline base
