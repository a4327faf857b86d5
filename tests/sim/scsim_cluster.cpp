// scsim_cluster --seed N --nodes N --steps N [--seeds N] [--calm] [--barriers] [--crowded]
// [--hangs] [--placement N, as in gang::Placement] runs the simulated cluster. A failure prints the
// broken invariant and the seed that reproduces it. scsim_cluster --control [--switching] runs the
// daemons' control network, see control_figures.hpp.
#include "gang/job/job_state.hpp"
#include "tests/sim/control_figures.hpp"
#include "tests/sim/world.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <string_view>

namespace {

bool read_number(std::string_view text, std::uint64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

void print(const score::sim::Options& options, const score::sim::Seen& seen) {
  fmt::print("seed {} nodes {}: {} events, {} epochs ({} late), ends", options.seed, options.nodes,
             seen.events, seen.epochs, seen.late_timetables);
  for (const auto& [state, count] : seen.ends) {
    fmt::print(" {}:{}", score::gang::to_string(state), count);
  }
  fmt::print(
      "; {} head restarts, {} cuts, {} node crashes, {} daemon restarts, {} duplicates, {} stale "
      "reports; compared {} gang switches (worst {}), {} cores, {} clocks; {} idle jobs left, {} "
      "returned, {} reports lost, {} fake wake-ups\n",
      seen.head_restarts, seen.cuts, seen.node_crashes, seen.daemon_restarts, seen.duplicates,
      seen.stale_reports, seen.gangs_compared, score::base::format_duration(seen.worst_gang_skew),
      seen.cores_compared, seen.clocks_compared, seen.idle_left, seen.idle_returned,
      seen.lost_reports, seen.fake_wakes);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--control") {
    const int code = score::sim::run_control(argc, argv);
    if (code == 2) {
      fmt::print(stderr,
                 "usage: scsim_cluster --control [--switching] [--seed N] [--nodes N] [--fanout N] "
                 "[--hop-us N] [--message-us N] [--loss PERCENT] [--twice PERCENT] "
                 "[--reordered PERCENT]\n");
    }
    return code;
  }
  score::sim::Options options;
  std::uint64_t nodes = options.nodes;
  std::uint64_t seeds = 1;
  std::uint64_t placement = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view key = argv[i];
    if (key == "--barriers") {
      options.barriers = true;
      continue;
    }
    if (key == "--crowded") {
      options.crowded = true;
      options.user_pause = std::chrono::milliseconds{400};
      continue;
    }
    if (key == "--hangs") {
      options.hangs = true;
      continue;
    }
    if (key == "--calm") {
      options.faults = false;
      continue;
    }
    std::uint64_t* value = key == "--seed"        ? &options.seed
                           : key == "--nodes"     ? &nodes
                           : key == "--steps"     ? &options.steps
                           : key == "--seeds"     ? &seeds
                           : key == "--placement" ? &placement
                                                  : nullptr;
    if (value == nullptr || i + 1 == argc || !read_number(argv[++i], *value)) {
      fmt::print(stderr,
                 "usage: scsim_cluster [--seed N] [--seeds N] [--nodes N] [--steps N] "
                 "[--calm] [--barriers] [--crowded] [--hangs] [--placement 0...5]\n");
      return 2;
    }
  }
  options.nodes = static_cast<std::uint32_t>(nodes);
  options.placement = static_cast<score::gang::Placement>(placement % 6);
  try {
    for (std::uint64_t n = 0; n < seeds; ++n, ++options.seed) {
      print(options, score::sim::World(options).run());
    }
  } catch (const score::sim::Broken& broken) {
    fmt::print(stderr, "{}\n", broken.what());
    return 1;
  }
  return 0;
}
