#include "scout/session/head_link.hpp"

#include "base/exit_codes.hpp"
#include "base/os/daemon_users.hpp"
#include "base/text.hpp"
#include "proto/frames/hello.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace score::scout {

namespace {

class HeadCategory : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "head"; }

  [[nodiscard]] std::string message(int) const override { return "refused"; }
};

bool names_this_host(std::string_view name) {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) return name == "localhost";
  const std::string_view full(host.data());
  return name == "localhost" || name == full || name == full.substr(0, full.find('.'));
}

Result<UniqueFd> connect_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return fail(Errc::TooLarge, "{}: the path of the head's socket is too long",
                escape_terminal(path, 200));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return fail(errno_code(errno), "cannot create a socket");
  // tidy: allow cast, the sockets interface
  const auto* raw = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(socket.get(), raw, sizeof address) != 0) {
    return fail(errno_code(errno), "cannot reach the head at {}", escape_terminal(path, 200));
  }
  if (auto status = set_nonblocking(socket.get(), true); !status) return status.error();
  return socket;
}

wire::Error failure_of(const proto::InFrame& frame) {
  wire::Failed failed;
  if (!failed.ParseFromString(frame.payload))
    failed.mutable_error()->set_text("the head sent a malformed error");
  return failed.error();
}

// Every frame with a tag has it as field 1, a varint, so one message type reads the tag of all.
std::optional<std::uint64_t> tag_of(const proto::InFrame& frame) {
  wire::Detach any;  // has a tag and a number; other fields are skipped
  if (!any.ParseFromString(frame.payload)) return std::nullopt;
  return any.tag();
}

// Returns the path of one server as users name it.
Result<std::string> socket_path(std::string server) {
  if (server.starts_with("unix:")) server.erase(0, 5);
  if (server.find('/') != server.npos) return server;
  if (names_this_host(server)) return std::string(kDefaultSocket);
  return fail(
      Errc::Unsupported,
      "server '{}' is not this host; give the path of a socket on this host: the head's, or on a "
      "login node that of its node daemon",
      escape_terminal(server, 200));
}

std::string installed_sockets() {
  const auto sockets = read_installed().sockets;
  return sockets.empty() ? kDefaultSocket : fmt::format("{}", fmt::join(sockets, ","));
}

// Returns the paths of one server, or of two with a comma between: "a,b" names both heads.
Result<std::string> socket_paths(std::string_view servers) {
  if (servers.empty()) return installed_sockets();
  std::string paths;
  for (const std::string_view server : split(servers, ',')) {
    auto path = socket_path(std::string(server));
    if (!path) return path;
    if (!paths.empty()) paths += ',';
    paths += *path;
  }
  return paths;
}

bool is_there(std::string_view path) {
  return access(std::string(path).c_str(), F_OK) == 0;
}

// Combines the failures of several sockets into one error. A refusal has the most information; the
// next best is a closed connection, because it is worth a retry.
Error no_head_answers(const std::vector<std::pair<std::string, Error>>& failures) {
  std::error_code code = make_error_code(Errc::NotFound);
  std::string text;
  for (const auto& [path, error] : failures) {
    const bool is_errno = error.code().category() == std::generic_category() ||
                          error.code().category() == std::system_category();
    const bool is_refusal = error.code().category() == head_category();
    if (is_refusal || (code.category() != head_category() && error.is(Errc::Closed))) {
      code = error.code();
    }
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", escape_terminal(path, 200),
                        is_errno ? error.code().message() : error.context());
  }
  return Error(code, "no head answers: " + text);
}

}  // namespace

bool uses_installed_cluster(const std::string& option) {
  const char* variable = std::getenv("SCORED_SERVER");
  return option.empty() && (variable == nullptr || *variable == '\0');
}

Result<std::string> find_server(const std::string& option) {
  const char* variable = std::getenv("SCORED_SERVER");
  auto path = socket_paths(option.empty() && variable != nullptr ? variable : option);
  // On a node that is not a login node, the node daemon takes the commands of the jobs there.
  const char* of_node = std::getenv("SCORE_COMMANDS_SOCKET");
  const bool is_elsewhere =
      option.empty() && path && std::ranges::none_of(split(*path, ','), is_there);
  if (is_elsewhere && of_node != nullptr) return std::string(of_node);
  return path;
}

const std::error_category& head_category() noexcept {
  static const HeadCategory category;
  return category;
}

Error refused(const wire::Error& error) {
  const int code =
      error.exit_code() > 0 && error.exit_code() < 256 ? error.exit_code() : kExitError;
  return Error(std::error_code(code, head_category()), error.text());
}

int exit_code_of(const Error& error) {
  return error.code().category() == head_category() ? error.code().value() : kExitError;
}

Result<HeadLink> HeadLink::connect(const std::string& socket_path) {
  const auto connect_one = [](const std::string& path) -> Result<HeadLink> {
    auto socket = connect_socket(path);
    if (!socket) return socket.error();
    HeadLink link(std::move(*socket));
    auto status = link.check_server();
    if (status) status = link.greet();
    if (!status) return status.error();
    return link;
  };
  std::vector<std::pair<std::string, Error>> failures;
  for (const std::string_view path : split(socket_path, ',')) {
    auto link = connect_one(std::string(path));
    if (link) return link;
    failures.emplace_back(path, link.error());
  }
  if (failures.size() > 1) return no_head_answers(failures);
  const auto& [path, error] = failures.front();
  const bool is_named = error.context().find(path) != std::string::npos;
  return is_named ? error : error.with_context("{}", escape_terminal(path, 200));
}

// The server of a different user would get our environment and could answer anything.
Status HeadLink::check_server() {
  const auto peer = peer_credentials(socket_.get());
  if (!peer) return peer.error();
  const uid_t server = peer->uid.value();
  is_own_ = server == geteuid();
  if (is_own_ || server == 0) return {};
  if (is_daemon_user(server)) return {};
  return fail(
      Errc::Denied,
      "not connecting: the server runs as uid {}, not as root, scored-head, scored-node or you",
      server);
}

Status HeadLink::greet() {
  wire::ClientHello hello;
  hello.set_lowest_version(proto::spoken_versions().lowest);
  hello.set_highest_version(proto::spoken_versions().highest);
  hello.set_program(std::string("scout ") + SCORE_VERSION);
  queue(hello);
  auto frame = wait_frame(monotonic_now() + limits::kHandshakeDeadline);
  if (!frame) return frame.error();
  if (frame->type == proto::FrameType::Failed) return refused(failure_of(*frame));
  auto answer = decode<wire::ServerHello>(*frame);
  if (!answer) return answer.error();
  hello_ = std::move(*answer);
  return {};
}

Status HeadLink::flush() {
  while (!out_.empty()) {
    const ssize_t sent = ::send(fd(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      out_.erase(0, static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      return {};
    } else if (errno == EPIPE || errno == ECONNRESET) {
      // There may be unread data that the head sent before it closed; then fill() reports the end.
      out_.clear();
      return {};
    } else if (errno != EINTR) {
      return fail(errno_code(errno), "cannot send to the head");
    }
  }
  return {};
}

Status HeadLink::fill() {
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t got = ::recv(fd(), buffer.data(), buffer.size(), 0);
    if (got > 0) {
      reader_.feed(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
      if (auto status = parse(); !status) return status;
      if (static_cast<std::size_t>(got) < buffer.size()) return {};
    } else if (got == 0 || errno == ECONNRESET) {
      return fail(Errc::Closed, "the head closed the connection");
    } else if (errno == EAGAIN) {
      return {};
    } else if (errno != EINTR) {
      return fail(errno_code(errno), "cannot receive from the head");
    }
  }
}

Status HeadLink::parse() {
  for (;;) {
    auto frame = reader_.next(proto::Role::Head);
    if (!frame) return frame.error();
    if (!*frame) return {};
    frames_.push_back(std::move(**frame));
  }
}

std::optional<proto::InFrame> HeadLink::next_frame() {
  if (frames_.empty()) return std::nullopt;
  auto frame = std::move(frames_.front());
  frames_.pop_front();
  return frame;
}

Status HeadLink::wait_ready(TimePoint deadline) {
  const Duration left = deadline - monotonic_now();
  if (left <= Duration(0)) return fail(Errc::Timeout, "the head did not answer in time");
  pollfd waiting{.fd = fd(), .events = POLLIN, .revents = 0};
  if (wants_write()) waiting.events |= POLLOUT;
  const auto limit = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  if (::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(limit, 60'000))) < 0 &&
      errno != EINTR) {
    return fail(errno_code(errno), "poll");
  }
  if ((waiting.revents & POLLOUT) != 0) return flush();
  return {};
}

Result<proto::InFrame> HeadLink::wait_frame(TimePoint deadline) {
  if (auto status = flush(); !status) return status.error();
  for (;;) {
    if (auto frame = next_frame()) return std::move(*frame);
    if (auto status = wait_ready(deadline); !status) return status.error();
    auto filled = fill();
    if (!filled && frames_.empty()) return filled.error();
  }
}

Result<proto::InFrame> HeadLink::wait_answer(std::uint64_t tag, proto::FrameType type,
                                             TimePoint deadline) {
  // The head answers with tag 0 if it could not read the request.
  const auto answers = [tag, type](const proto::InFrame& frame) {
    if (frame.type != type && frame.type != proto::FrameType::Failed) return false;
    const std::uint64_t about = tag_of(frame).value_or(0);
    return about == tag || (about == 0 && frame.type == proto::FrameType::Failed);
  };
  const auto result_of = [](proto::InFrame frame) -> Result<proto::InFrame> {
    if (frame.type == proto::FrameType::Failed) return refused(failure_of(frame));
    return frame;
  };
  const auto kept = std::ranges::find_if(frames_, answers);
  if (kept != frames_.end()) {
    proto::InFrame frame = std::move(*kept);
    frames_.erase(kept);
    return result_of(std::move(frame));
  }
  std::deque<proto::InFrame> others;
  std::swap(others, frames_);
  for (;;) {
    auto frame = wait_frame(deadline);
    const bool is_answer = frame && answers(*frame);
    if (frame && !is_answer) {
      others.push_back(std::move(*frame));
      continue;
    }
    others.insert(others.end(), std::make_move_iterator(frames_.begin()),
                  std::make_move_iterator(frames_.end()));
    frames_ = std::move(others);
    if (!frame) return frame;
    return result_of(std::move(*frame));
  }
}

}  // namespace score::scout
