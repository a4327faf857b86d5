#pragma once
// The shepherd's end of the node daemon's connection. It accepts one connection at a time, only
// from users that may command it. The connection may be lost and established again while the tasks
// continue.

#include "base/os/fd.hpp"
#include "base/os/log.hpp"
#include "proto/frames/frame_reader.hpp"
#include "proto/shepherd.pb.h"
#include "scored/job/tasks/event_loop.hpp"

#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace score::shepherd {

class DaemonLink {
 public:
  struct Handlers {
    // Receives a frame and the descriptors that arrived with it.
    std::function<void(proto::InFrame, std::vector<base::UniqueFd>)> frame;
    std::function<void()> lost;
    std::function<void()> sent;  // all queued data was sent
  };

  // Takes a listening Unix stream socket, which becomes non-blocking. allowed: uids that may
  // connect. The loop must outlive the link. start() begins to accept. Errors: errno codes.
  DaemonLink(EventLoop& loop, base::UniqueFd listener, std::vector<uid_t> allowed);
  base::Status start(Handlers handlers);

  [[nodiscard]] bool is_connected() const { return static_cast<bool>(socket_); }

  // Returns the bytes that the kernel has not taken yet; 0 without a connection.
  [[nodiscard]] std::size_t queued_bytes() const { return out_.size() - written_; }

  // Returns true if the listener's name has been removed from the file system: no daemon can
  // connect any more.
  [[nodiscard]] bool is_unreachable() const;

  // Queues a frame, or drops it if there is no connection. The caller must keep any data that must
  // not get lost, and send it again after a resume.
  template <class Message>
  void send(const Message& message) {
    send_frame(proto::frame_type<Message>(), message.SerializeAsString());
  }

  void send_frame(proto::FrameType type, std::string_view payload);
  // Takes at most base::kMaxPassedFds descriptors.
  void send_descriptors(const wire::PassedDescriptors& message, std::vector<base::UniqueFd> fds);
  // Writes the queued data but gives up soon. It is meant for the last frames before exit.
  void flush();
  void drop();  // closes the connection and calls `lost`; accepts the next one

 private:
  struct QueuedDescriptors {  // sent with the byte at `offset` of out_
    std::size_t offset = 0;
    std::vector<base::UniqueFd> fds;
  };

  void on_accept();
  void on_ready(std::uint32_t events);
  void read_frames();
  void deliver_frames();
  void write_queue();
  base::Result<std::size_t> write_some();
  std::vector<base::UniqueFd> take_arrived(const proto::InFrame& frame);
  void log_rejection(const std::string& what);

  EventLoop& loop_;
  base::UniqueFd listener_;
  std::vector<uid_t> allowed_;
  Handlers handlers_;
  base::UniqueFd socket_;
  std::uint64_t connection_ = 0;  // counts connections
  proto::FrameReader reader_;
  std::string out_;
  std::size_t written_ = 0;  // of out_
  std::deque<QueuedDescriptors> queued_descriptors_;
  std::vector<base::UniqueFd> arrived_;  // no frame has taken them yet
  EventLoop::TimerId first_frame_timer_ = 0;
  base::LogLimiter limiter_;
};

}  // namespace score::shepherd
