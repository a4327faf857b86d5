#pragma once
// Represents the node in the PM network of the daemons. It offers the node to the head, joins when
// the head sends a roster, and sends heartbeats along the tree. Thread: the main loop.

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
  struct Parts {  // all must outlive it
    asio::any_io_executor io;
    Clock& clock;
    TaskGroup& tasks;
    HeadLink& head;
    Switcher& switcher;
    const gang::ClockFilter& cluster_clock;
    control::NodeHeartbeats::Handlers heartbeats;
    std::function<void(const std::string& timetable)> timetable;  // gets SetTimetable
  };

  struct Options {
    bool over_pm = true;    // false: TLS only
    bool meets = false;     // barrier mode: the switcher's thread has a separate context
    std::string interface;  // interface of the node's address; empty: the one towards the head
    std::string head_host;
  };

  NodeControl(Parts parts, Options options);

  // Must be called when the head has welcomed the node. The node is to have rank `rank`; 0 means
  // that the head uses TLS only.
  void welcomed(std::uint32_t rank);
  // Each ends the connection to the head if the message is malformed. The keys are for the roster
  // that follows.
  void on_keys(const proto::InFrame& frame);
  void on_roster(const proto::InFrame& frame);

  // Leaves the network; nothing is received or sent afterwards.
  void close() { leave(); }

  // Returns true if the head receives the node's heartbeats over PM.
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
  control::LinkKeys keys_;  // of the roster of this generation; from an older head: none
  std::uint32_t keys_generation_ = 0;
  std::uint32_t rank_ = 0;
  in_addr head_address_{};
  bool is_open_ = false;
};

}  // namespace score::node
