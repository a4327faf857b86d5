#pragma once
// AnswerChannel is the only way by which this head answers users (docs/adr/0112). It sends nothing
// unless this head is in charge, and nothing that confirms a change without the receipt of the log.
// Thread: the loop's.

#include "proto/frames/frames.hpp"
#include "proto/transport/connection.hpp"
#include "scored/head/cluster/lease_check.hpp"
#include "scored/head/store/commit_log.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace score::head {

// Returns true for a frame that only shows something. A new frame is taken for a confirmation.
constexpr bool is_view(proto::FrameType type) {
  switch (type) {
    case proto::FrameType::ServerHello:
    case proto::FrameType::Failed:
    case proto::FrameType::Planned:
    case proto::FrameType::JobNews:
    case proto::FrameType::Output:
    case proto::FrameType::InputTaken:
    case proto::FrameType::JobEnded:
    case proto::FrameType::JobList:
    case proto::FrameType::NodeList:
    case proto::FrameType::Info:
    case proto::FrameType::Facts:
    case proto::FrameType::Accounting:
    case proto::FrameType::ShareList:
    case proto::FrameType::Profile:
    case proto::FrameType::Stacks:
    case proto::FrameType::Checkpointed:
    case proto::FrameType::Trace:
    case proto::FrameType::Snapshot:
    case proto::FrameType::ReservationList:
    case proto::FrameType::SetupOffer:
      return true;
    default:
      return false;
  }
}

// Copies are the same channel.
class AnswerChannel {
 public:
  // `lease` must outlive the connection.
  AnswerChannel(std::shared_ptr<proto::Connection> connection, const LeaseCheck& lease);

  template <class Message>
  void show(const Message& message) const {
    constexpr proto::FrameType type = proto::frame_type<Message>();
    static_assert(is_view(type), "this frame confirms a change, so it needs the log's receipt");
    frames_->send(type, message.SerializeAsString());
  }

  // Confirms the change of which the log has given the receipt.
  template <class Message>
  void confirm(const Message& message, const LogReceipt&) const {
    send_confirmation(proto::frame_type<Message>(), message.SerializeAsString());
  }

  // Sends the error with the request's tag.
  void refuse(std::uint64_t tag, const Error& error) const;

  // Returns the connection, to read it and to send it views; it accepts no confirmation. When this
  // head is not in charge any more, the first frame closes it instead.
  [[nodiscard]] const std::shared_ptr<proto::Connection>& frames() const { return frames_; }

 private:
  void send_confirmation(proto::FrameType type, const std::string& payload) const;

  std::shared_ptr<proto::Connection> inner_;
  std::shared_ptr<proto::Connection> frames_;
  const LeaseCheck* lease_;
};

}  // namespace score::head
