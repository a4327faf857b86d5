#include "scored/shared/hooks/hook_runner.hpp"

#include "base/async/timeout.hpp"
#include "base/text.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace score {
namespace {

// scored-hooks itself enforces a hook's limit, and then kills what the hook has left.
constexpr Duration kMargin = std::chrono::seconds{15};
constexpr Duration kChildEnds = std::chrono::seconds{10};
constexpr std::string_view kProgram = "scored-hooks";

Result<UniqueFd> make_memory_file(std::string_view content) {
  UniqueFd file(memfd_create("hook", MFD_CLOEXEC));
  if (!file) return fail(errno_code(errno), "cannot make a file in memory");
  if (auto written = write_all(file.get(), content); !written) return written.error();
  if (lseek(file.get(), 0, SEEK_SET) != 0) return fail(errno_code(errno), "cannot rewind a file");
  return file;
}

asio::awaitable<Status> wait_readable(int fd) {
  asio::posix::stream_descriptor watched(co_await asio::this_coro::executor, dup(fd));
  auto [failed] = co_await watched.async_wait(asio::posix::stream_descriptor::wait_read, kNoThrow);
  if (failed == asio::error::operation_aborted)
    throw boost::system::system_error(asio::error::operation_aborted);
  if (failed) co_return fail(failed, "cannot wait");
  co_return Status();
}

}  // namespace

void HookHandle::cancel() {
  is_cancelled_ = true;
  if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
}

HookRunner::HookRunner(Clock& clock, Place place) : clock_(clock), place_(std::move(place)) {
  // scored-hooks runs in the root directory.
  if (!place_.config.empty()) place_.config = std::filesystem::absolute(place_.config);
}

Result<HookRunner::Running> HookRunner::connect() const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (place_.socket.size() >= sizeof address.sun_path)
    return fail(Errc::TooLarge, "cannot use socket path {}", place_.socket);
  std::memcpy(address.sun_path, place_.socket.data(), place_.socket.size());
  Running running;
  running.socket = UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!running.socket) return fail(errno_code(errno), "cannot make a socket");
  const auto* const where = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(running.socket.get(), where, sizeof address) != 0) {
    return fail(errno_code(errno), "cannot reach {} at {}: is scored-hooks.socket enabled?",
                kProgram, place_.socket);
  }
  return running;
}

Result<HookRunner::Running> HookRunner::start(const std::string* submit_input) const {
  Running running;
  auto pair = make_socket_pair(SOCK_SEQPACKET);
  if (!pair) return pair.error();
  SpawnSpec spec;
  spec.path = find_beside(kProgram, {".", "../libexec/scored/hooks"});
  if (spec.path.empty()) {
    return fail(Errc::NotFound, "{} is not installed: install the packages again", kProgram);
  }
  spec.argv = {std::string(kProgram), "--config", place_.config};
  spec.directory = "/";
  spec.fds = {{pair->second.get(), 0}, {STDERR_FILENO, 2}};
  UniqueFd input;
  if (submit_input != nullptr) {
    auto given = make_memory_file(*submit_input);
    if (!given) return given.error();
    input = *std::move(given);
    auto answer = make_memory_file("");
    if (!answer) return answer.error();
    running.answer = *std::move(answer);
    spec.argv.emplace_back("--submit");
    spec.fds.emplace_back(input.get(), hooks::kSubmitInput);
    spec.fds.emplace_back(running.answer.get(), hooks::kSubmitOutput);
  }
  auto child = spawn(spec);
  if (!child) return child.error();
  running.child = *std::move(child);
  running.socket = std::move(pair->first);
  return running;
}

asio::awaitable<Result<HookEnd>> HookRunner::run(hooks::HookRequest request, Duration timeout,
                                                 std::shared_ptr<HookHandle> handle) {
  auto running = place_.socket.empty() ? start(nullptr) : connect();
  if (!running) co_return running.error();
  if (::send(running->socket.get(), &request, sizeof request, MSG_NOSIGNAL) != sizeof request) {
    co_return fail(errno_code(errno), "cannot ask {}", kProgram);
  }
  auto ended = co_await finish(*std::move(running), timeout, std::move(handle));
  co_return ended;
}

asio::awaitable<Result<HookEnd>> HookRunner::submit(std::string input, Duration timeout) {
  auto running = start(&input);
  if (!running) co_return running.error();
  hooks::HookRequest request;
  request.hook = static_cast<std::uint32_t>(Hook::Submit);
  if (::send(running->socket.get(), &request, sizeof request, MSG_NOSIGNAL) != sizeof request) {
    co_return fail(errno_code(errno), "cannot ask {}", kProgram);
  }
  auto ended = co_await finish(*std::move(running), timeout, nullptr);
  co_return ended;
}

asio::awaitable<Result<HookEnd>> HookRunner::finish(Running running, Duration timeout,
                                                    std::shared_ptr<HookHandle> handle) {
  if (handle) {
    handle->socket_ = running.socket.get();
    if (handle->is_cancelled_) handle->cancel();
  }
  auto reading = read_reply(running.socket.get());
  auto reply = co_await with_timeout(clock_, timeout + kMargin, std::move(reading));
  if (handle) handle->socket_ = -1;
  running.socket.reset();  // scored-hooks kills a hook whose caller is gone
  co_await reap_child(std::move(running.child));
  if (handle && handle->is_cancelled_) co_return Error(Errc::Cancelled);
  if (!reply) co_return reply.error().with_context("{} did not answer", kProgram);
  HookEnd end;
  end.is_absent = reply->outcome == static_cast<std::uint32_t>(hooks::Outcome::Absent);
  const bool has_passed = reply->outcome == static_cast<std::uint32_t>(hooks::Outcome::Passed);
  if (!end.is_absent && !has_passed) {
    reply->text[sizeof reply->text - 1] = '\0';
    end.fault = escape_terminal(reply->text, sizeof reply->text);
    if (end.fault.empty()) end.fault = "it failed";
  }
  if (running.answer && has_passed) {
    lseek(running.answer.get(), 0, SEEK_SET);
    auto answer = read_all(running.answer.get(), hooks::kMostAnswerBytes);
    if (!answer) co_return answer.error();
    end.answer = *std::move(answer);
  }
  co_return end;
}

asio::awaitable<Result<hooks::HookReply>> HookRunner::read_reply(int socket) {
  auto readable = co_await wait_readable(socket);
  if (!readable) co_return readable.error();
  hooks::HookReply reply;
  const ssize_t got = ::recv(socket, &reply, sizeof reply, MSG_TRUNC | MSG_DONTWAIT);
  if (got == sizeof reply && reply.magic == hooks::kMagic) co_return reply;
  co_return fail(Errc::Closed, "it ended");
}

asio::awaitable<void> HookRunner::reap_child(SpawnedProcess child) {
  if (child.pid <= 0) co_return;
  auto waiting = wait_readable(child.pidfd.get());
  const auto ended = co_await with_timeout(clock_, kChildEnds, std::move(waiting));
  if (!ended) std::ignore = send_signal(child.pidfd.get(), SIGKILL);
  std::ignore = reap(child.pidfd.get(), true);
}

}  // namespace score
