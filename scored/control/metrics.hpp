#pragma once
// Exports the metrics of the control network that head and nodes show in /metrics:
// docs/reference/metrics.md.

#include "scored/control/control_network.hpp"

#include <algorithm>

namespace score::control {

// `out` is a monitor::Exporter, which this folder does not know.
template <class Exporter>
void export_control(Exporter& out, const ControlNetwork& network) {
  const ControlCounters counters = network.counters();
  const auto members = std::ranges::count_if(network.roster().members,
                                             [](const auto& member) { return member.is_member(); });
  out.gauge("scored_control_members", "Daemons in the PM network of the daemons, with the head.")
      .value(static_cast<double>(members));
  out.counter("scored_control_datagrams_total", "Messages between daemons over PM.")
      .value(static_cast<double>(counters.sent), {{"direction", "sent"}})
      .value(static_cast<double>(counters.received), {{"direction", "received"}});
  auto dropped = out.counter("scored_control_dropped_total",
                             "Datagrams that came to the daemon and were dropped, by reason.");
  for (const auto& [reason, count] : counters.dropped()) {
    dropped.value(static_cast<double>(count), {{"reason", reason}});
  }
}

}  // namespace score::control
