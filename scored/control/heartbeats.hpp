#pragma once
// Heartbeats over the PM network of the daemons, along the tree of gang/control: the shells of
// BeatSender, BeatListener and TreeVerdicts. Everything is made anew with each roster. Thread: that
// of the io_context.

#include "base/async/alarm.hpp"
#include "base/async/clock.hpp"
#include "gang/control/beat_listener.hpp"
#include "gang/control/beat_sender.hpp"
#include "gang/control/tree_verdicts.hpp"
#include "gang/node/clock_filter.hpp"
#include "proto/control.pb.h"
#include "scored/control/control_network.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace score::control {

// The members of a roster by position in the tree.
class Positions {
 public:
  explicit Positions(const Roster& roster);

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(ranks_.size()); }

  // Positions below count() only.
  [[nodiscard]] std::uint32_t rank_of(gang::Position position) const { return ranks_[position]; }

  [[nodiscard]] std::optional<gang::Position> of_rank(std::uint32_t rank) const;

 private:
  std::vector<std::uint32_t> ranks_;  // ascending
};

void to_wire(const gang::SubtreeSummary& summary, wire::ControlBeat& beat);
// What makes no sense is left out.
[[nodiscard]] gang::SubtreeSummary from_wire(const wire::ControlBeat& beat);

class NodeHeartbeats {
 public:
  struct Handlers {
    std::function<void()> beat_by_tls;
    std::function<void(const gang::ClockSample&)> clock;
    std::function<bool()> hears_nothing;  // over TLS, although something was sent
  };

  // All outlive it. `cluster_clock` is what the samples are fed to.
  NodeHeartbeats(asio::any_io_executor io, Clock& clock, ControlNetwork& network,
                 const gang::ClockFilter& cluster_clock, Handlers handlers);

  // The network has a new roster, or has been left.
  void roster_changed();
  // False: not a message of heartbeats.
  bool handle(std::uint32_t source, const Message& message);

  // The head hears of this node over PM: TLS needs no heartbeats.
  [[nodiscard]] bool is_linked() const { return tree_ && tree_->sender.is_linked(); }

  // No daemon answers over PM, and nothing comes over TLS: the head is told.
  [[nodiscard]] bool hears_nothing() const { return hears_nothing_; }

  // Members below this one that are not heard over PM at present.
  [[nodiscard]] gang::Positions unheard() const;

  // Until the task is cancelled.
  asio::awaitable<void> run();

 private:
  struct Tree {
    Tree(const Roster& roster, std::uint32_t rank, TimePoint now);

    Positions positions;
    gang::Tree shape;
    gang::Position self;
    gang::BeatSender sender;
    gang::BeatListener listener;
  };

  void advance();
  void send_beat(std::uint32_t rank, TimePoint sent);
  void doubt(TimePoint now);
  void on_beat(gang::Position from, const wire::ControlBeat& beat, TimePoint received);
  void on_answer(gang::Position from, const wire::ControlAnswer& answer, TimePoint received);

  Clock& clock_;
  ControlNetwork& network_;
  const gang::ClockFilter& cluster_clock_;
  Handlers handlers_;
  Alarm alarm_;
  std::unique_ptr<Tree> tree_;  // null: in no network
  bool hears_nothing_ = false;
};

class HeadHeartbeats {
 public:
  struct News {                                // ranks
    std::vector<std::uint32_t> alive, silent;  // see gang::TreeVerdicts
    std::optional<std::uint32_t> deaf;         // it says that it hears nothing
    std::optional<std::uint32_t> hearing;      // it beats, and has heard an answer
  };

  using Handler = std::function<void(const News&)>;

  HeadHeartbeats(asio::any_io_executor io, Clock& clock, ControlNetwork& network, Handler handler);

  void roster_changed();
  bool handle(std::uint32_t source, const Message& message);
  // Nodes that are not heard over PM at present.
  [[nodiscard]] gang::Positions unheard() const;
  asio::awaitable<void> run();

 private:
  struct Tree {
    Tree(const Roster& roster, TimePoint now);

    Positions positions;
    gang::Tree shape;
    gang::TreeVerdicts verdicts;
  };

  void report(const gang::TreeVerdicts::Findings& findings, News news = {});

  Clock& clock_;
  ControlNetwork& network_;
  Handler handler_;
  Alarm alarm_;
  std::unique_ptr<Tree> tree_;
};

}  // namespace score::control
