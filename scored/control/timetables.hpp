#pragma once
// Timetables over the PM network of the daemons, down the tree of gang/control: the shell of
// TimetableRelay, on head and nodes. What is not confirmed within some milliseconds the head sends
// over TLS; a node takes the newest epoch whatever comes twice or late. Everything is made anew
// with each roster. Thread: that of the io_context.

#include "base/async/alarm.hpp"
#include "base/async/clock.hpp"
#include "gang/control/timetable_relay.hpp"
#include "proto/control.pb.h"
#include "scored/control/control_network.hpp"
#include "scored/control/heartbeats.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace score::control {

[[nodiscard]] wire::ControlTimetables to_wire(const gang::TimetableRelay::Bundle& bundle);
[[nodiscard]] wire::ControlTimetablesTaken to_wire(const gang::TimetableRelay::Ack& ack);
[[nodiscard]] gang::TimetableRelay::Bundle from_wire(const wire::ControlTimetables& message);
[[nodiscard]] gang::TimetableRelay::Ack from_wire(const wire::ControlTimetablesTaken& message);

class Timetables {
 public:
  // Encoded timetables, each with the ranks that are to have it.
  using Publication = std::map<std::string, std::vector<std::uint32_t>>;

  struct Handlers {
    // Members below this one that are not heard over PM at present: they are bypassed.
    std::function<gang::Positions()> unheard;
    std::function<void(const std::string& timetable)> deliver;                          // nodes
    std::function<void(std::uint32_t rank, const std::string& timetable)> send_by_tls;  // the head
  };

  // All outlive it.
  Timetables(asio::any_io_executor io, Clock& clock, ControlNetwork& network, Handlers handlers);

  // The network has a new roster, or has been left. What was not confirmed goes over TLS.
  void roster_changed();
  // False: not a message of timetables.
  bool handle(std::uint32_t source, const Message& message);
  // The head's. Ranks that are not heard over PM get theirs over TLS at once.
  void publish(Publication publication);
  // Until the task is cancelled.
  asio::awaitable<void> run();

 private:
  struct Tree {
    Tree(const Roster& roster, std::uint32_t rank, TimePoint now);

    Positions positions;
    gang::Tree shape;
    gang::TimetableRelay relay;
  };

  void carry_out(const gang::TimetableRelay::Actions& actions);
  void send_all_by_tls(const Publication& publication) const;

  Clock& clock_;
  ControlNetwork& network_;
  Handlers handlers_;
  Alarm alarm_;
  std::unique_ptr<Tree> tree_;                    // null: in no network
  std::map<std::uint32_t, Publication> pending_;  // by number: not confirmed by all
  std::uint32_t last_number_ = 0;
};

}  // namespace score::control
