#pragma once
// The node's part in the PM network of the daemons: offers itself to the head, joins by the head's
// roster, and beats along the tree. Thread: the loop's.

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "proto/frames/frame_reader.hpp"
#include "scored/control/control_network.hpp"
#include "scored/control/heartbeats.hpp"
#include "scored/control/timetables.hpp"
#include "scored/node/link/head_link.hpp"
#include "scored/node/switch/switcher.hpp"

#include <cstdint>
#include <netinet/in.h>
#include <string>

namespace score::node {

class NodeControl {
 public:
  struct Parts {  // all outlive it
    asio::any_io_executor io;
    Clock& clock;
    TaskGroup& tasks;
    HeadLink& head;
    Switcher& switcher;
    const gang::ClockFilter& cluster_clock;
    control::NodeHeartbeats::Handlers heartbeats;
    std::function<void(const std::string& timetable)> timetable;  // SetTimetable, from the head
  };

  struct Options {
    bool over_pm = true;    // false: TLS only
    bool meets = false;     // barrier mode: the switcher's thread has a context of its own
    std::string interface;  // of the node's address; empty: the one towards the head
    std::string head_host;
  };

  NodeControl(Parts parts, Options options);

  // The head has welcomed the node, which is to be rank `rank`; 0: the head uses TLS only.
  void welcomed(std::uint32_t rank);
  // Ends the connection to the head if the roster is malformed.
  void on_roster(const proto::InFrame& frame);

  // Hears and sends nothing from now on.
  void close() { leave(); }

  // The head hears of the node over PM.
  [[nodiscard]] bool is_linked() const { return heartbeats_.is_linked(); }

  [[nodiscard]] control::ControlNetwork& network() { return network_; }

  [[nodiscard]] const control::ControlNetwork& network() const { return network_; }

 private:
  Status open();
  void leave();
  void roster_changed();
  Status join_meetings(const control::Roster& roster);

  Parts parts_;
  Options options_;
  control::ControlNetwork network_;
  control::NodeHeartbeats heartbeats_;
  control::Timetables timetables_;
  UniqueFd meeting_socket_;
  std::uint32_t rank_ = 0;
  in_addr head_address_{};
  bool is_open_ = false;
};

}  // namespace score::node
