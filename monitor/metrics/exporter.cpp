#include "monitor/metrics/exporter.hpp"

#include "base/os/fd.hpp"
#include "base/text.hpp"

#include <prometheus/text_serializer.h>

#include <sys/resource.h>
#include <unistd.h>

namespace score::monitor {

Series<prometheus::Counter> Exporter::counter(const std::string& name, const std::string& help) {
  return Series(prometheus::BuildCounter().Name(name).Help(help).Register(registry_));
}

Series<prometheus::Gauge> Exporter::gauge(const std::string& name, const std::string& help) {
  return Series(prometheus::BuildGauge().Name(name).Help(help).Register(registry_));
}

Series<prometheus::Histogram> Exporter::histogram(const std::string& name,
                                                  const std::string& help) {
  return Series(prometheus::BuildHistogram().Name(name).Help(help).Register(registry_));
}

std::string Exporter::text() const {
  return prometheus::TextSerializer().Serialize(registry_.Collect());
}

void export_process(Exporter& out) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto length = [](const timeval& time) {
    return Duration(std::chrono::seconds(time.tv_sec)) + std::chrono::microseconds(time.tv_usec);
  };
  out.counter("process_cpu_seconds_total", "CPU time of this daemon, user and system.")
      .value(length(usage.ru_utime) + length(usage.ru_stime));
  const auto statm = read_file("/proc/self/statm", 256);
  const auto words = split(statm ? std::string_view(*statm) : "", ' ');
  const auto pages = words.size() > 1 ? parse_number<std::uint64_t>(words[1]).value_or(0) : 0;
  out.gauge("process_resident_memory_bytes", "Resident memory of this daemon.")
      .value(static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE)));
}

void export_node(Exporter& out, const NodeTotals& totals) {
  auto phases = out.histogram("scored_gang_switch_duration_seconds", "Phases of gang switches.");
  for (std::size_t i = 0; i < kSwitchPhases; ++i) {
    phases.distribution(totals.phases[i], {{"phase", name_of(static_cast<SwitchPhase>(i))}});
  }
  out.counter("scored_gang_switches_total", "Gang switches.")
      .value(static_cast<double>(totals.switches));
  out.counter("scored_gang_late_switches_total",
              "Gang switches that began later than 5 % of the slice.")
      .value(static_cast<double>(totals.late));
  auto overhead = out.counter("scored_gang_overhead_seconds_total",
                              "Time that switching took from entering jobs, by its parts.");
  for (const auto& [name, part] : kOverheadParts) {
    overhead.value(totals.overhead.*part, {{"part", name}});
  }
  out.counter("scored_gang_slot_seconds_total", "Time in which at least one job was scheduled.")
      .value(totals.busy);
}

}  // namespace score::monitor
