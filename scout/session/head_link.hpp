// HeadLink is a command's connection to the head. Short commands send blocking requests; commands
// that stream poll its descriptor. It uses no event loop library, so a command starts in a few
// milliseconds.
#pragma once

#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "proto/client.pb.h"
#include "proto/frames/frame_reader.hpp"
#include "scout/session/installed_cluster.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace score::scout {

// Returns the head's socket, or several with commas between. The value is `option` (--server), else
// SCORED_SERVER, else the packaged socket, or with two heads the sockets of read_installed(). Users
// give a path, a name of this host, or several with commas between. If the socket does not exist
// and no option names it, SCORE_COMMANDS_SOCKET is used: the socket of the tasks' node daemon.
// Errors: Unsupported for the name of a different host.
Result<std::string> find_server(const std::string& option);

// Returns true if neither the option nor SCORED_SERVER names a server: the installed cluster is
// used.
bool uses_installed_cluster(const std::string& option);

// Converts the head's refusal into an Error; its code is the exit code of the command.
const std::error_category& head_category() noexcept;
Error refused(const wire::Error& error);
int exit_code_of(const Error& error);  // kExitError unless the head named one

// Parses a message from a frame. Errors: Malformed.
template <class Message>
Result<Message> decode(const proto::InFrame& frame) {
  Message message;
  if (frame.type != proto::frame_type<Message>() || !message.ParseFromString(frame.payload)) {
    return fail(Errc::Malformed, "the head sent a malformed {}", proto::name_of(frame.type));
  }
  return message;
}

class HeadLink {
 public:
  // Connects to the first socket that answers, checks the server's user (root, a daemon's user or
  // our own), and exchanges hellos. The error names each socket and why it cannot be used.
  static Result<HeadLink> connect(const std::string& socket_path);

  [[nodiscard]] int fd() const { return socket_.get(); }

  [[nodiscard]] const wire::ServerHello& hello() const { return hello_; }

  // Returns true if the head runs as this user, as in a one-user cluster.
  [[nodiscard]] bool is_own_cluster() const { return is_own_; }

  [[nodiscard]] std::uint64_t next_tag() { return ++tag_; }

  // Queues a message; flush() or the next request writes it.
  template <class Message>
  void queue(const Message& message) {
    out_ += proto::encode_frame_bytes(proto::frame_type<Message>(), message.SerializeAsString());
  }

  [[nodiscard]] bool wants_write() const { return !out_.empty(); }

  [[nodiscard]] std::size_t queued_bytes() const { return out_.size(); }

  // Writes as much as possible without waiting. Errors: Closed, errno codes.
  Status flush();
  // Reads the data that has arrived, without waiting, for next_frame(). Errors: Closed, wire
  // errors.
  Status fill();
  std::optional<proto::InFrame> next_frame();
  // Waits for the next frame. Errors: Timeout, Closed, wire errors.
  Result<proto::InFrame> wait_frame(TimePoint deadline);

  // Queues a request. Sets its tag, and returns it for answer().
  template <class Request>
  std::uint64_t put(Request request) {
    request.set_tag(next_tag());
    queue(request);
    return request.tag();
  }

  // Waits for the answer to a request. The head's Failed becomes an error of head_category(). Other
  // frames that arrive first are kept for next_frame() and later answers.
  template <class Reply>
  Result<Reply> answer(std::uint64_t tag, Duration limit = limits::kRequestDeadline) {
    auto frame = wait_answer(tag, proto::frame_type<Reply>(), monotonic_now() + limit);
    if (!frame) return frame.error();
    return decode<Reply>(*frame);
  }

  template <class Reply, class Request>
  Result<Reply> ask(Request request, Duration limit = limits::kRequestDeadline) {
    return answer<Reply>(put(std::move(request)), limit);
  }

 private:
  explicit HeadLink(UniqueFd socket) : socket_(std::move(socket)) {}

  Status check_server();
  Status greet();
  Status parse();
  Status wait_ready(TimePoint deadline);
  Result<proto::InFrame> wait_answer(std::uint64_t tag, proto::FrameType type, TimePoint deadline);

  UniqueFd socket_;
  proto::FrameReader reader_;
  std::deque<proto::InFrame> frames_;
  std::string out_;
  wire::ServerHello hello_;
  std::uint64_t tag_ = 0;
  bool is_own_ = false;
};

}  // namespace score::scout
