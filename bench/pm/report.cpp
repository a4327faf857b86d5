#include "bench/pm/report.hpp"

#include "pmlib/core/segment.hpp"

#include <algorithm>
#include <cstdio>

namespace score::bench {

namespace {

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string method_of(const BenchOptions& options) {
  return "two processes on two processors, " + std::to_string(options.rounds) +
         " interleaved rounds, median";
}

}  // namespace

double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

Spread ratios_of(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    ratios.push_back(ratio(a[i], b[i]));
  return spread_of(ratios);
}

ReportLine::ReportLine(const BenchOptions& options, std::size_t size) : options_(options) {
  add("device", options.device);
  add("size", static_cast<double>(size), 0);
}

ReportLine& ReportLine::add(const std::string& name, const std::string& text) {
  values_.emplace_back(name, '"' + text + '"');
  return *this;
}

ReportLine& ReportLine::add(const std::string& name, double value, int digits) {
  values_.emplace_back(name, number(value, digits));
  return *this;
}

ReportLine& ReportLine::add(const std::string& name, const Spread& spread, int digits) {
  add(name, spread.median, digits);
  values_.emplace_back(name + "_spread",
                       "[" + number(spread.low, digits) + "," + number(spread.high, digits) + "]");
  return add_samples(name, spread, digits);
}

ReportLine& ReportLine::add_samples(const std::string& name, const Spread& spread, int digits) {
  if (!options_.json) return *this;
  std::string list;
  for (const double value : spread.samples) {
    list += (list.empty() ? "" : ",") + number(value, digits);
  }
  values_.emplace_back(name + "_samples", "[" + list + "]");
  return *this;
}

void ReportLine::print() {
  add("method", method_of(options_));
  std::string text = options_.json ? "{" : "";
  for (const auto& [name, value] : values_) {
    if (!options_.json && name == "method") continue;
    if (text.size() > 1) text += options_.json ? "," : "  ";
    text += options_.json ? '"' + name + "\":" + value : name + " " + value;
  }
  std::printf("%s%s\n", text.c_str(), options_.json ? "}" : "");
  std::fflush(stdout);
}

void print_row(const BenchOptions& o, const ReportRow& r) {
  if (!o.json) {
    std::printf(
        "%-10s %8zu B  one way %9.3f us (raw %9.3f, tcp %9.3f)  %8.1f MB/s (raw %8.1f, tcp "
        "%8.1f)\n",
        o.device.c_str(), r.size, r.pm_us.median, r.raw_us.median, r.tcp_us.median, r.pm_mb.median,
        r.raw_mb.median, r.tcp_mb.median);
    std::fflush(stdout);
    return;
  }
  ReportLine(o, r.size)
      .add("one_way_us", r.pm_us, 4)
      .add("bandwidth_mb_s", r.pm_mb, 4)
      .add("vs_raw", ratio(r.pm_us.median, r.raw_us.median), 3)
      .add_samples("vs_raw", ratios_of(r.pm_us.samples, r.raw_us.samples), 3)
      .add("vs_tcp", ratio(r.pm_us.median, r.tcp_us.median), 3)
      .add_samples("vs_tcp", ratios_of(r.pm_us.samples, r.tcp_us.samples), 3)
      .add("bandwidth_vs_raw", ratio(r.pm_mb.median, r.raw_mb.median), 3)
      .add_samples("bandwidth_vs_raw", ratios_of(r.pm_mb.samples, r.raw_mb.samples), 3)
      .add("bandwidth_vs_tcp", ratio(r.pm_mb.median, r.tcp_mb.median), 3)
      .add_samples("bandwidth_vs_tcp", ratios_of(r.pm_mb.samples, r.tcp_mb.samples), 3)
      .add("raw_one_way_us", r.raw_us, 4)
      .add("tcp_one_way_us", r.tcp_us, 4)
      .add("raw_mb_s", r.raw_mb, 4)
      .add("tcp_mb_s", r.tcp_mb, 4)
      .print();
}

void print_memory(bool json) {
  const auto small = pm::SegmentLayout::of({.size = 1});
  const auto large = pm::SegmentLayout::of({.size = 1001});
  const double per_peer = static_cast<double>(large->descriptors - small->descriptors) / 1000;
  const auto kb = [](std::uint64_t bytes) { return static_cast<double>(bytes) / 1024; };
  const double peers = kb(large->sets - large->peers);
  const double control = kb(large->send_buffers - large->sets);
  const double send = kb(large->receive_buffers - large->send_buffers);
  const double receive = kb(large->inbox - large->receive_buffers);
  const double shared = kb(large->total - large->inbox);
  if (json) {
    std::printf(
        "{\"peers\":1000,\"send_kb\":%.0f,\"receive_kb\":%.0f,\"shmem_kb\":%.0f,"
        "\"control_kb\":%.0f,\"peers_kb\":%.0f,\"total_kb\":%.0f,\"bytes_a_peer\":%.1f}\n",
        send, receive, shared, control, peers, kb(large->total), per_peer);
    return;
  }
  std::printf(
      "memory of a node for 1,000 peers (KB)      PM      GigaE PM   TCP\n"
      "  send buffers                        %8.0f      120        128,000\n"
      "  receive buffers                     %8.0f      128        128,000\n"
      "  shared-memory inbox and buffers     %8.0f        -              -\n"
      "  control                             %8.0f       23            274\n"
      "  table of peers (%.1f B per peer)     %8.0f\n"
      "  in all                              %8.0f      271        256,274\n",
      send, receive, shared, control, per_peer, peers, kb(large->total));
}

}  // namespace score::bench
