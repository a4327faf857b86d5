#pragma once
// Sends heartbeats over the PM network of the daemons, along the tree of gang/control. The classes
// connect BeatSender, BeatListener and TreeVerdicts to the network, and replace them for each
// roster. Thread: that of the io_context.

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

void to_wire(const gang::SubtreeSummary& summary, wire::ControlBeat& beat);
// Leaves out invalid ranges.
[[nodiscard]] gang::SubtreeSummary from_wire(const wire::ControlBeat& beat);

class NodeHeartbeats {
 public:
  struct Handlers {
    std::function<void()> beat_by_tls;
    std::function<void(const gang::ClockSample&)> clock;
    std::function<bool()> hears_nothing;  // true if nothing arrives over TLS, although something
                                          // was sent
  };

  // All must outlive it. The samples are fed to `cluster_clock`.
  NodeHeartbeats(asio::any_io_executor io, Clock& clock, ControlNetwork& network,
                 const gang::ClockFilter& cluster_clock, Handlers handlers);

  // Must be called when the network has a new roster, or has been left.
  void roster_changed();
  // Returns false if the message is not one of heartbeats.
  bool handle(std::uint32_t source, const Message& message);

  // Returns true if the head receives this node's heartbeats over PM, so that TLS needs none.
  [[nodiscard]] bool is_linked() const { return tree_ && tree_->sender.is_linked(); }

  // Returns true if no daemon answers over PM, and nothing arrives over TLS. The head is notified
  // of that.
  [[nodiscard]] bool hears_nothing() const { return hears_nothing_; }

  // Returns the members below this one that are not heard over PM at present.
  [[nodiscard]] gang::Positions unheard() const;

  // Runs until the task is cancelled.
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
    std::optional<std::uint32_t> deaf;         // reports that it receives nothing
    std::optional<std::uint32_t> hearing;      // sends heartbeats, and has received an answer
  };

  using Handler = std::function<void(const News&)>;

  HeadHeartbeats(asio::any_io_executor io, Clock& clock, ControlNetwork& network, Handler handler);

  void roster_changed();
  bool handle(std::uint32_t source, const Message& message);
  // Returns the nodes that are not heard over PM at present.
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
