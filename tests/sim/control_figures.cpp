#include "tests/sim/control_figures.hpp"

#include "tests/sim/switching_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace score::sim {

using namespace std::chrono_literals;

namespace {

constexpr int kPublications = 20;

Duration until_known(ControlWorld& world) {
  const TimePoint begin = world.now();
  while (!world.is_all_known() && world.now() - begin < 60s) world.run_for(1ms);
  return world.now() - begin;
}

void measure_idle(ControlWorld& world, ControlFigures& figures) {
  (void)world.take_head_counts();
  constexpr auto kTime = 20s;
  world.run_for(kTime);
  const auto counts = world.take_head_counts();
  const double seconds = std::chrono::duration<double>(kTime).count();
  figures.head_messages = static_cast<double>(counts.sent + counts.received) / seconds;
  figures.head_tls = static_cast<double>(counts.tls) / seconds;
}

void measure_timetables(ControlWorld& world, ControlFigures& figures) {
  std::vector<Duration> last;
  for (int i = 0; i < kPublications; ++i) {
    const auto publication = world.publish(16, 200);
    last.push_back(publication.last);
    figures.confirmed_worst = std::max(figures.confirmed_worst, publication.ended);
    figures.timetable_missing += publication.missing;
    figures.timetable_sent = std::max(figures.timetable_sent, publication.head_sent);
  }
  std::sort(last.begin(), last.end());
  figures.timetable_median = last[last.size() / 2];
  figures.timetable_worst = last.back();
}

Duration until_suspected(ControlWorld& world, Position position) {
  const TimePoint crashed = world.now();
  world.crash(position);
  while (!world.suspected_at(position) && world.now() - crashed < 10s) world.run_for(1ms);
  return world.now() - crashed;
}

void measure_crashes(ControlWorld& world, ControlFigures& figures) {
  const Position inner = world.tree().children(0).front();
  const TimePoint crashed = world.now();
  world.forget_waits();
  figures.crash_suspected = until_suspected(world, inner);
  world.run_for(crashed + 6s - world.now());
  const auto orphans = world.tree().children(inner);
  figures.orphans = orphans.size();
  // The members are served again after the crash, or already by a different member; the first
  // answer counts.
  for (const Position p : orphans) {
    figures.served_again = std::max(figures.served_again, world.first_served_after_crash(p));
  }
  figures.asked_in_vain = world.worst_wait();
  figures.others_suspected = world.suspects().size() - 1;
  figures.leaf_suspected = until_suspected(world, world.tree().size() - 1);
}

void print(const ControlOptions& o, const ControlFigures& f) {
  const auto ms = [](Duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  fmt::print(
      "nodes {} fan-out {} depth {} hop {} loss {:.1f} %: known after {:.0f} ms; head {:.0f} "
      "messages/s, {:.2f} TLS beats/s; timetable at the last node {:.2f} ms (median {:.2f}), "
      "confirmed {:.2f} ms, {} by TLS, {} datagrams of the head; inner node: {} orphans served "
      "after {:.0f} ms (asked for {:.0f} ms), suspected after {:.0f} ms, a leaf {:.0f} ms; others "
      "suspected {}, false suspicions {}, deaths {}; clocks: error {:.1f} us, bound {:.1f} us{}; "
      "head restart: known after {:.0f} ms\n",
      o.nodes, o.fanout, f.depth, base::format_duration(o.hop), o.loss * 100, ms(f.all_known),
      f.head_messages, f.head_tls, ms(f.timetable_worst), ms(f.timetable_median),
      ms(f.confirmed_worst), f.timetable_missing, f.timetable_sent, f.orphans, ms(f.served_again),
      ms(f.asked_in_vain), ms(f.crash_suspected), ms(f.leaf_suspected), f.others_suspected,
      f.false_suspicions, f.false_deaths, ms(f.clocks.worst_error) * 1e3,
      ms(f.clocks.worst_bound) * 1e3, f.clocks.all_within ? "" : " EXCEEDED",
      ms(f.known_after_restart));
}

}  // namespace

ControlFigures measure_control(const ControlOptions& options) {
  ControlWorld world(options);
  ControlFigures figures;
  figures.depth = world.tree().depth();
  figures.all_known = until_known(world);
  world.run_for(5s);
  measure_idle(world, figures);
  measure_timetables(world, figures);
  figures.clocks = world.clocks();
  measure_crashes(world, figures);
  world.restart_head();
  figures.known_after_restart = until_known(world);
  world.run_for(5s);
  figures.false_suspicions = world.false_suspicions();
  figures.false_deaths = world.false_deaths();
  return figures;
}

int run_control(int argc, char** argv) {
  ControlOptions options;
  bool switches = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view key = argv[i];
    if (key == "--control") continue;
    if (key == "--switching") {
      switches = true;
      continue;
    }
    if (i + 1 == argc) return 2;
    const double value = std::strtod(argv[++i], nullptr);
    const auto number = static_cast<std::uint32_t>(value);
    if (key == "--seed")
      options.seed = number;
    else if (key == "--nodes")
      options.nodes = number;
    else if (key == "--fanout")
      options.fanout = number;
    else if (key == "--hop-us")
      options.hop = number * 1us;
    else if (key == "--message-us")
      options.message = number * 1us;
    else if (key == "--loss")
      options.loss = value / 100;
    else if (key == "--twice")
      options.twice = value / 100;
    else if (key == "--reordered")
      options.reordered = value / 100;
    else
      return 2;
  }
  if (switches) return run_switching(options);
  print(options, measure_control(options));
  return 0;
}

}  // namespace score::sim
