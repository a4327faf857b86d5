#include "scout/doctor/pair_verdict.hpp"

#include "base/text/plain.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

namespace score::scout {
namespace {

constexpr double kMuchSlower = 10;         // chosen: a different kind of link, or a damaged one
constexpr double kSlowTripNs = 1'000'000;  // a shorter trip is never slow

constexpr const char* kFirewall =
    "a firewall drops PM's frames, or the networks are not connected: admit UDP between the nodes "
    "on all ports (nft list ruleset), and see devices and links in [network] of scored.toml";

bool is_silent(const ProbedPair& pair) {
  return !pair.round_trip_ns;
}

// Returns the nodes whose every pair is silent; empty if all pairs are silent.
std::set<std::string> silent_nodes(const std::vector<ProbedPair>& pairs) {
  std::set<std::string> silent;
  for (const auto& pair : pairs) silent.insert({pair.from, pair.to});
  for (const auto& pair : pairs) {
    if (is_silent(pair)) continue;
    silent.erase(pair.from);
    silent.erase(pair.to);
  }
  const bool is_all = std::ranges::all_of(pairs, is_silent);
  return is_all ? std::set<std::string>() : silent;
}

// Returns the median of the values that were measured; nullopt if there is none.
template <class Value>
std::optional<double> median(const std::vector<ProbedPair>& pairs, Value value) {
  std::vector<double> all;
  for (const auto& pair : pairs) {
    if (const std::optional<double> one = value(pair)) all.push_back(*one);
  }
  if (all.empty()) return std::nullopt;
  std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
  return all[all.size() / 2];
}

std::optional<double> trip_of(const ProbedPair& pair) {
  if (is_silent(pair)) return std::nullopt;
  return static_cast<double>(*pair.round_trip_ns);
}

std::optional<double> speed_of(const ProbedPair& pair) {
  return pair.bytes_per_second;
}

std::string speed_text(std::optional<double> bytes_per_second) {
  if (!bytes_per_second) return "bandwidth not measured";
  return *bytes_per_second >= 1e9 ? fmt::format("{:.1f} GB/s", *bytes_per_second / 1e9)
                                  : fmt::format("{:.0f} MB/s", *bytes_per_second / 1e6);
}

std::string pair_name_of(const ProbedPair& pair) {
  return fmt::format("{} and {}", pair.from, pair.to);
}

void judge_silence(const std::vector<ProbedPair>& pairs, Findings& found) {
  if (std::ranges::all_of(pairs, is_silent)) {
    return found.fault("", fmt::format("PM reaches none of {} pairs of nodes", pairs.size()),
                       kFirewall);
  }
  const auto alone = silent_nodes(pairs);
  for (const auto& node : alone) {
    found.fault(node, "PM reaches no other node and is reached by none", kFirewall);
  }
  for (const auto& pair : pairs) {
    if (!is_silent(pair) || alone.contains(pair.from) || alone.contains(pair.to)) continue;
    found.fault("", fmt::format("PM does not connect {}", pair_name_of(pair)), kFirewall);
  }
}

// Reports pairs whose stream was not complete in time. On a loaded machine, that may be any pair.
void judge_unmeasured(const std::vector<ProbedPair>& pairs, const Remedies& remedies,
                      Findings& found) {
  std::vector<std::string> names;
  for (const auto& pair : pairs) {
    if (!is_silent(pair) && !pair.bytes_per_second) names.push_back(pair_name_of(pair));
  }
  if (names.empty()) return;
  found.warn("",
             fmt::format("the bandwidth of {} is not measured: 4 MiB take longer than 4 s",
                         names.size() == 1 ? names[0] : counted(names.size(), "pair")),
             remedies.slow_pair);
}

void judge_speed(const std::vector<ProbedPair>& pairs, const Remedies& remedies, Findings& found) {
  const auto trip = median(pairs, trip_of);
  const auto speed = median(pairs, speed_of);
  for (const auto& pair : pairs) {
    if (is_silent(pair)) continue;
    const bool is_late = *trip_of(pair) > kSlowTripNs && *trip_of(pair) > kMuchSlower * *trip;
    const bool is_slow = speed && speed_of(pair) && *speed_of(pair) * kMuchSlower <= *speed;
    if (!is_late && !is_slow) continue;
    found.warn("",
               fmt::format("{}: round trip {:.0f} us, {}; the median of all pairs is {:.0f} us, {}",
                           pair_name_of(pair), *trip_of(pair) / 1e3, speed_text(speed_of(pair)),
                           *trip / 1e3, speed_text(speed)),
               remedies.slow_pair);
  }
  judge_unmeasured(pairs, remedies, found);
}

}  // namespace

void judge_pairs(const ProbeReport& report, const Remedies& remedies, Findings& found) {
  const auto& pairs = report.pairs;
  for (const auto& node : report.nodes) {
    if (node.network_error.empty()) continue;
    found.fault(node.name, fmt::format("PM cannot be opened: {}", node.network_error),
                remedies.no_pm);
  }
  if (pairs.empty()) return found.else_ok("there is one node, so there are no pairs");
  judge_silence(pairs, found);
  if (std::ranges::all_of(pairs, is_silent)) return;
  judge_speed(pairs, remedies, found);
  found.else_ok(fmt::format("PM connects {} of {} nodes: median round trip {:.0f} us, {}",
                            counted(pairs.size(), "pair"), report.nodes.size(),
                            *median(pairs, trip_of) / 1e3, speed_text(median(pairs, speed_of))));
}

}  // namespace score::scout
