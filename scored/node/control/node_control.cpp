#include "scored/node/control/node_control.hpp"

#include "base/os/log.hpp"
#include "proto/frames/parse.hpp"
#include "proto/node.pb.h"
#include "scored/node/channel/channel_sockets.hpp"

#include <cstring>
#include <utility>

namespace score::node {

NodeControl::NodeControl(Parts parts, Options options)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      network_(parts_.io, parts_.clock,
               [this](std::uint32_t source, const control::Message& message) {
                 if (!heartbeats_.handle(source, message)) timetables_.handle(source, message);
               }),
      heartbeats_(parts_.io, parts_.clock, network_, parts_.cluster_clock, parts_.heartbeats),
      timetables_(parts_.io, parts_.clock, network_,
                  {.unheard = [this] { return heartbeats_.unheard(); },
                   .deliver = parts_.timetable,
                   .send_by_tls = nullptr}) {}

Status NodeControl::open() {
  if (is_open_) return {};
  const auto local = options_.interface.empty() ? address_towards(options_.head_host)
                                                : address_of_interface(options_.interface);
  if (!local) return local.error();
  const auto head = address_of_host(options_.head_host);
  if (!head) return head.error();
  head_address_ = *head;
  if (options_.meets) {
    auto socket = control::open_socket(*local);
    if (!socket) return socket.error();
    meeting_socket_ = *std::move(socket);
  }
  if (auto opened = network_.open(*local, parts_.tasks); !opened) return opened;
  is_open_ = true;
  parts_.tasks.spawn("heartbeats over PM", heartbeats_.run());
  parts_.tasks.spawn("timetables over PM", timetables_.run());
  return {};
}

void NodeControl::welcomed(std::uint32_t rank) {
  rank_ = rank;
  if (rank == 0) return leave();
  wire::ControlOffer offer;
  if (const auto opened = options_.over_pm ? open() : Status(); !opened) {
    log_warning("Cannot open the PM network of the daemons; using TLS only",
                kv("err", opened.error()));
    offer.set_reason(opened.error().message());
  } else if (options_.over_pm) {
    const auto meetings =
        meeting_socket_ ? control::address_of(meeting_socket_.get()) : pm::PeerAddress();
    offer = control::to_wire(control::MemberAddress{network_.address(), meetings, true});
  }
  parts_.head.send(offer);
}

void NodeControl::leave() {
  network_.leave();
  roster_changed();
  if (options_.meets) parts_.switcher.set_meeting_channel(nullptr);
}

void NodeControl::roster_changed() {
  heartbeats_.roster_changed();
  timetables_.roster_changed();
}

// Gives the switcher a new channel. The old one is released when the switcher's thread has returned
// it.
Status NodeControl::join_meetings(const control::Roster& roster) {
  auto socket = duplicate(meeting_socket_.get());
  auto waited_on = duplicate(meeting_socket_.get());
  if (!socket || !waited_on) return socket ? waited_on.error() : socket.error();
  auto endpoint = control::open_context(roster, rank_, control::Use::Meetings, *std::move(socket));
  if (!endpoint) return endpoint.error();
  parts_.switcher.set_meeting_channel(
      std::make_shared<MeetingChannel>(*std::move(endpoint), *std::move(waited_on)));
  return {};
}

void NodeControl::on_keys(const proto::InFrame& frame) {
  const auto message = proto::parse<wire::ControlKeys>(frame);
  if (!message) return parts_.head.drop(message.error().message());
  auto keys = control::from_wire(*message);
  if (!keys) return parts_.head.drop(keys.error().message());
  keys_ = *std::move(keys);
  keys_generation_ = message->generation();
}

void NodeControl::on_roster(const proto::InFrame& frame) {
  const auto message = proto::parse<wire::ControlRoster>(frame);
  if (!message) return parts_.head.drop(message.error().message());
  auto roster = control::from_wire(*message);
  if (!roster) return parts_.head.drop(roster.error().message());
  if (!is_open_ || rank_ == 0) return;
  if (!roster->has(rank_)) return leave();
  std::memcpy(roster->members[control::kHeadRank].main.bytes.data(), &head_address_,
              sizeof head_address_);
  if (const auto joined = options_.meets ? join_meetings(*roster) : Status(); !joined) {
    log_warning("Cannot open a PM context for meetings; meeting through the head",
                kv("err", joined.error()));
    parts_.switcher.set_meeting_channel(nullptr);
  }
  const bool has_keys = roster->generation == keys_generation_;
  const auto joined =
      network_.join(*std::move(roster), rank_, has_keys ? keys_ : control::LinkKeys());
  roster_changed();
  if (!joined) {
    log_warning("Cannot join the PM network of the daemons; using TLS only",
                kv("err", joined.error()));
  }
}

}  // namespace score::node
