#pragma once
// Sends timetables over the PM network of the daemons, down the tree of gang/control. The class
// connects TimetableRelay to the network on head and nodes, and replaces it for each roster.
// Timetables that are not confirmed within some milliseconds go over TLS. A node follows the newest
// epoch, so duplicates and late arrivals do no harm. The head tags each timetable for its receiver,
// so the members on the way cannot change it (link_keys.hpp). Thread: that of the io_context.

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
#include <optional>
#include <string>
#include <vector>

namespace score::control {

[[nodiscard]] wire::ControlTimetables to_wire(const gang::TimetableRelay::Bundle& bundle);
[[nodiscard]] wire::ControlTimetablesTaken to_wire(const gang::TimetableRelay::Ack& ack);
[[nodiscard]] gang::TimetableRelay::Bundle from_wire(const wire::ControlTimetables& message);
[[nodiscard]] gang::TimetableRelay::Ack from_wire(const wire::ControlTimetablesTaken& message);

class Timetables {
 public:
  // Maps encoded timetables to the ranks that are to receive them.
  using Publication = std::map<std::string, std::vector<std::uint32_t>>;

  struct Handlers {
    // Returns the members below this one that are not heard over PM at present; they are bypassed.
    std::function<gang::Positions()> unheard;
    std::function<void(const std::string& timetable)> deliver;                          // nodes
    std::function<void(std::uint32_t rank, const std::string& timetable)> send_by_tls;  // the head
  };

  // All must outlive it.
  Timetables(asio::any_io_executor io, Clock& clock, ControlNetwork& network, Handlers handlers);

  // Must be called when the network has a new roster, or has been left. Timetables that were not
  // confirmed go over TLS.
  void roster_changed();
  // Returns false if the message is not one of timetables.
  bool handle(std::uint32_t source, const Message& message);
  // Must be called by the head only. Ranks that are not heard over PM get their timetable over TLS
  // at once.
  void publish(Publication publication);
  // Runs until the task is cancelled.
  asio::awaitable<void> run();

 private:
  struct Tree {
    Tree(const ControlNetwork& network, TimePoint now);
    Tree(const Tree&) = delete;  // its relay refers to it
    Tree& operator=(const Tree&) = delete;

    [[nodiscard]] std::optional<std::uint64_t> accept(const std::string& body,
                                                      std::optional<std::uint64_t> tag);
    const proto::Digest& digest_of(const std::string& body);
    void add_tags(gang::TimetableRelay::Part& part);

    const LinkKeys& keys;  // of the network
    Positions positions;
    gang::Tree shape;
    gang::TimetableRelay relay;
    std::string last_body;  // of last_digest
    proto::Digest last_digest{};
  };

  void carry_out(const gang::TimetableRelay::Actions& actions);
  void send_all_by_tls(const Publication& publication) const;

  Clock& clock_;
  ControlNetwork& network_;
  Handlers handlers_;
  Alarm alarm_;
  std::unique_ptr<Tree> tree_;                    // null: in no network
  std::map<std::uint32_t, Publication> pending_;  // by number; not yet confirmed by all
  std::uint32_t last_number_ = 0;
};

}  // namespace score::control
