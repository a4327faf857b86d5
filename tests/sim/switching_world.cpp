#include "tests/sim/switching_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace score::sim {

using namespace std::chrono_literals;
using gang::Dissemination;

namespace {

constexpr Duration kQuantum = 100ms;
constexpr Duration kMostSkew = 50us;  // difference between nodes' clocks

enum Kind : std::size_t { kStopped, kReady, kKinds };

class SwitchingWorld {
 public:
  explicit SwitchingWorld(const ControlOptions& options)
      : options_(options), chance_(options.seed) {
    for (std::uint32_t n = 0; n < options.nodes; ++n) {
      Node& node = nodes_.emplace_back();
      node.skew = chance_.between(0ns, kMostSkew);
      for (std::size_t m = 0; m < 2 * kKinds; ++m) node.meetings.emplace_back(n, options.nodes);
    }
  }

  SwitchingFigures run(Duration time) {
    const TimePoint begin = events_.now() + 1s;
    const auto count = static_cast<std::uint64_t>(time / kQuantum);
    for (std::uint64_t b = 0; b < count; ++b) {
      const TimePoint boundary = begin + static_cast<Duration::rep>(b) * kQuantum;
      for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
        events_.at(boundary + nodes_[n].skew,
                   [this, n, boundary, b] { cross(n, boundary, b % 2); });
      }
      events_.at(boundary + kQuantum - 1ms, [this, boundary] { count_slice(boundary); });
      while (events_.now() < boundary + kQuantum - 1ms) events_.step();
    }
    std::sort(took_.begin(), took_.end());
    figures_.boundaries = count;
    figures_.median = took_[took_.size() / 2];
    figures_.worst = took_.back();
    return figures_;
  }

 private:
  struct Node {
    Duration skew{0};
    std::vector<Dissemination> meetings;  // [job][kind]
    std::optional<std::size_t> runs;      // job
    std::size_t enters = 0;
    TimePoint boundary{}, stopped_for{};
    bool is_ready = false;
    std::array<TimePoint, 2 * kKinds> asks{};
  };

  void cross(std::uint32_t n, TimePoint boundary, std::size_t enters) {
    Node& node = nodes_[n];
    node.runs.reset();
    node.enters = enters;
    node.boundary = node.stopped_for = boundary;
    node.is_ready = false;
    come(n, 1 - enters, kStopped);
    attend(n);
  }

  void come(std::uint32_t n, std::size_t job, Kind kind) {
    Node& node = nodes_[n];
    const std::size_t m = job * kKinds + kind;
    send(n, m, node.meetings[m].come(node.boundary, events_.now()));
  }

  void attend(std::uint32_t n) {
    Node& node = nodes_[n];
    if (node.runs || node.boundary == TimePoint{}) return;
    const auto has_met = [&](std::size_t job, Kind kind) {
      return node.meetings[job * kKinds + kind].has_met(node.boundary);
    };
    if (!node.is_ready && has_met(1 - node.enters, kStopped)) {
      node.is_ready = true;
      come(n, node.enters, kReady);
    }
    if (!has_met(node.enters, kReady)) return;
    node.runs = node.enters;
    last_ = events_.now();
    const bool is_wrong = std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& other) {
      return other.stopped_for != node.boundary || (other.runs && *other.runs != node.enters);
    });
    figures_.wrong_switches += is_wrong ? 1 : 0;
  }

  void count_slice(TimePoint boundary) {
    for (const Node& node : nodes_) figures_.lost_slices += node.runs ? 0 : 1;
    took_.push_back(last_ - boundary);
  }

  void send(std::uint32_t from, std::size_t m, const Dissemination::Sends& sends) {
    const auto happens = [&](double share) {
      return static_cast<double>(chance_.below(1'000'000)) < share * 1e6;
    };
    for (const auto& one : sends.all()) {
      ++figures_.datagrams;
      if (happens(options_.loss)) continue;
      const int copies = happens(options_.twice) ? 2 : 1;
      for (int copy = 0; copy < copies; ++copy) {
        Duration delay = options_.hop + options_.message + chance_.between(0ns, options_.hop / 4);
        if (copy > 0 || happens(options_.reordered)) delay += chance_.between(0ns, 2ms);
        events_.after(delay, [this, from, m, one] {
          send(one.to, m, nodes_[one.to].meetings[m].hear(from, one.word, events_.now()));
          attend(one.to);
        });
      }
    }
    const auto due = nodes_[from].meetings[m].next_deadline();
    if (!due || nodes_[from].asks[m] == *due) return;
    nodes_[from].asks[m] = *due;
    events_.at(*due,
               [this, from, m] { send(from, m, nodes_[from].meetings[m].advance(events_.now())); });
  }

  ControlOptions options_;
  Events events_;
  Chance chance_;
  std::vector<Node> nodes_;
  std::vector<Duration> took_;
  TimePoint last_{};
  SwitchingFigures figures_;
};

}  // namespace

SwitchingFigures measure_switching(const ControlOptions& options, Duration time) {
  return SwitchingWorld(options).run(time);
}

int run_switching(const ControlOptions& options) {
  constexpr auto kTime = 10min;
  const SwitchingFigures f = measure_switching(options, kTime);
  const auto us = [](Duration d) { return std::chrono::duration<double, std::micro>(d).count(); };
  fmt::print(
      "nodes {} hop {} loss {:.1f} % twice {:.1f} % reordered {:.1f} %: {} boundaries, {} lost "
      "slices, {} wrong switches, {} datagrams, switch median {:.0f} us, worst {:.0f} us\n",
      options.nodes, base::format_duration(options.hop), options.loss * 100, options.twice * 100,
      options.reordered * 100, f.boundaries, f.lost_slices, f.wrong_switches, f.datagrams,
      us(f.median), us(f.worst));
  return f.wrong_switches == 0 ? 0 : 1;
}

}  // namespace score::sim
