#include "monitor/http/exporter.hpp"

#include "base/os/fd.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <sys/resource.h>
#include <unistd.h>

namespace score::monitor {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// As prometheus-cpp writes numbers: sixteen digits.
void append_number(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "Nan";
  } else if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
  } else {
    fmt::format_to(std::back_inserter(out), "{:.16g}", value);
  }
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '\\' || c == '"' || c == '\n') out += '\\';
    out += c == '\n' ? 'n' : c;
  }
}

void append_labels(std::string& out, const ClientMetric& metric, double bound, bool has_bound) {
  if (metric.label.empty() && !has_bound) return;
  char separator = '{';
  for (const auto& label : metric.label) {
    out += separator;
    out += label.name;
    out += "=\"";
    append_escaped(out, label.value);
    out += '"';
    separator = ',';
  }
  if (has_bound) {
    out += separator;
    out += "le=\"";
    append_number(out, bound);
    out += '"';
  }
  out += '}';
}

void append_line(std::string& out, const std::string& name, const ClientMetric& metric,
                 double value) {
  out += name;
  append_labels(out, metric, 0, false);
  out += ' ';
  append_number(out, value);
  out += '\n';
}

void append_histogram(std::string& out, const MetricFamily& family, const ClientMetric& metric) {
  const auto& histogram = metric.histogram;
  append_line(out, family.name + "_count", metric, static_cast<double>(histogram.sample_count));
  append_line(out, family.name + "_sum", metric, histogram.sample_sum);
  for (const auto& bucket : histogram.bucket) {
    out += family.name + "_bucket";
    append_labels(out, metric, bucket.upper_bound, true);
    out += ' ';
    append_number(out, static_cast<double>(bucket.cumulative_count));
    out += '\n';
  }
}

void append_family(std::string& out, const MetricFamily& family) {
  if (!family.help.empty()) out += "# HELP " + family.name + " " + family.help + "\n";
  const char* type = family.type == MetricType::Counter ? "counter"
                     : family.type == MetricType::Gauge ? "gauge"
                                                        : "histogram";
  out += "# TYPE " + family.name + " " + type + "\n";
  for (const ClientMetric& metric : family.metric) {
    if (family.type == MetricType::Histogram) {
      append_histogram(out, family, metric);
    } else {
      const bool is_counter = family.type == MetricType::Counter;
      append_line(out, family.name, metric, is_counter ? metric.counter.value : metric.gauge.value);
    }
  }
}

}  // namespace

Exporter& Exporter::begin(std::string name, std::string help, MetricType type) {
  MetricFamily& family = families_.emplace_back();
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = type;
  return *this;
}

Exporter& Exporter::counter(std::string name, std::string help) {
  return begin(std::move(name), std::move(help), MetricType::Counter);
}

Exporter& Exporter::gauge(std::string name, std::string help) {
  return begin(std::move(name), std::move(help), MetricType::Gauge);
}

Exporter& Exporter::histogram(std::string name, std::string help) {
  return begin(std::move(name), std::move(help), MetricType::Histogram);
}

ClientMetric& Exporter::add(const Labels& labels) {
  ClientMetric& metric = families_.back().metric.emplace_back();
  for (const auto& [name, value] : labels) metric.label.push_back({name, value});
  return metric;
}

Exporter& Exporter::value(double value, const Labels& labels) {
  ClientMetric& metric = add(labels);
  metric.counter.value = value;
  metric.gauge.value = value;
  return *this;
}

std::string Exporter::text() const {
  std::string out;
  for (const MetricFamily& family : families_) append_family(out, family);
  return out;
}

// ---- what head and nodes share ------------------------------------------------------------------

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
  out.histogram("scored_gang_switch_duration_seconds", "Phases of gang switches.");
  for (std::size_t i = 0; i < kSwitchPhases; ++i) {
    out.distribution(totals.phases[i], {{"phase", name_of(static_cast<SwitchPhase>(i))}});
  }
  out.counter("scored_gang_switches_total", "Gang switches.")
      .value(static_cast<double>(totals.switches));
  out.counter("scored_gang_late_switches_total", "Gang switches that began more than 1 ms late.")
      .value(static_cast<double>(totals.late));
  out.counter("scored_gang_overhead_seconds_total", "Time that switching took from entering jobs.")
      .value(totals.lost);
  out.counter("scored_gang_slot_seconds_total", "Time in which at least one job was scheduled.")
      .value(totals.busy);
}

}  // namespace score::monitor
