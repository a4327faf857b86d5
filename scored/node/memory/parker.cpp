// An attempt has at most one task here, which follows the newest order: it waits until the attempt
// is stopped for good, has its memory written, and ends; or has it read back, and forgets the
// attempt. scored-park lives as long as the memory is out, because it knows the order in which it
// wrote. If it dies, a new one reads the memory back; if this daemon dies, the attempt is continued
// and reads back what it uses.
//
// An attempt that waits for the memory of another one is read ahead while that one leaves: never
// more than has left, and what was free before. So writing and reading overlap, and the node never
// holds more than it has. Memory that was read ahead in vain is clean, and the kernel drops it.
#include "scored/node/memory/parker.hpp"

#include "base/async/timeout.hpp"
#include "base/os/log.hpp"
#include "base/text.hpp"
#include "gang/node/freeze_watch.hpp"
#include "scored/node/memory/shortage.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace score::node {
namespace {

constexpr std::string_view kProgram = "scored-park";
constexpr Duration kFreezeWait = std::chrono::seconds{10};
constexpr Duration kFreezeLook = std::chrono::milliseconds{10};
// A helper that reports no progress for so long hangs in the kernel. The attempt is then continued
// all the same.
constexpr Duration kLongestSilence = std::chrono::seconds{20};
constexpr Duration kChildEnds = std::chrono::seconds{2};
constexpr Bytes kLeastRoom(16U << 20U);  // with less free swap nothing is written
constexpr Duration kMemoryLook = std::chrono::milliseconds{250};

asio::awaitable<Status> wait_readable(int fd) {
  asio::posix::stream_descriptor watched(co_await asio::this_coro::executor, dup(fd));
  auto [failed] = co_await watched.async_wait(asio::posix::stream_descriptor::wait_read, kNoThrow);
  if (failed == asio::error::operation_aborted)
    throw boost::system::system_error(asio::error::operation_aborted);
  if (failed) co_return fail(failed, "cannot wait");
  co_return Status();
}

// Sends the request with the descriptors that it needs.
Status send_request(int socket, const park::ParkRequest& request, int directory, int reclaim) {
  park::ParkRequest copy = request;
  iovec data{&copy, sizeof copy};
  const int fds[2] = {directory, reclaim};
  const std::size_t length = (reclaim >= 0 ? 2 : 1) * sizeof(int);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(length);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(length);
  std::memcpy(CMSG_DATA(header), fds, length);
  if (sendmsg(socket, &message, MSG_NOSIGNAL) == sizeof copy) return {};
  return fail(errno_code(errno), "cannot ask {}", kProgram);
}

}  // namespace

// ---- orders -----------------------------------------------------------------------------------

void Parker::obey(const base::ParkTasks& order) {
  const auto found = parked_.find(order.attempt);
  if (found == parked_.end()) {
    if (order.behind != AttemptId()) return;
    if (!order.out) return parts_.report({order.attempt, false});
    auto parked = std::make_shared<Parked>();
    parked->attempt = order.attempt;
    parked_[order.attempt] = parked;
    return work(parked);
  }
  const ParkedPtr parked = found->second;
  if (order.out && order.behind != AttemptId()) return read_ahead(parked, order);
  parked->wants_out = order.out;
  if (parked->is_working) {
    if (!order.out) order_back(*parked);
  } else if (order.out) {
    if (parked->out) parts_.report(*parked->out);
  } else {
    work(parked);
  }
}

void Parker::forget(AttemptId attempt) {
  const auto found = parked_.find(attempt);
  if (found == parked_.end()) return;
  const ParkedPtr parked = found->second;
  parked->is_gone = true;
  parked_.erase(found);
  if (parked->socket) ::shutdown(parked->socket.get(), SHUT_RDWR);
  if (!parked->is_working) work(parked);
}

void Parker::work(const ParkedPtr& parked) {
  parked->is_working = true;
  parts_.tasks.spawn("park an attempt", run(parked));
}

void Parker::order_back(Parked& parked) const {
  if (!parked.socket || parked.is_ordered) return;
  const park::ParkOrder order;
  parked.is_ordered =
      ::send(parked.socket.get(), &order, sizeof order, MSG_NOSIGNAL) == sizeof order;
}

void Parker::read_ahead(const ParkedPtr& parked, const base::ParkTasks& order) {
  if (!parked->out || !parked->wants_out || parked->is_working) return;
  parked->behind.insert(order.behind);
  parked->room = order.room;
  pace(*parked);
}

// Allows what has left so far. An order that cannot be sent is made up for by the next one.
void Parker::pace(Parked& parked) const {
  if (!parked.socket || parked.is_ordered || !parked.out) return;
  Bytes allowed = parked.room;
  for (const AttemptId leaving : parked.behind) {
    const auto found = parked_.find(leaving);
    if (found != parked_.end()) allowed += found->second->written;
  }
  if (allowed <= parked.allowed) return;
  park::ParkOrder order;
  order.way = static_cast<std::uint32_t>(park::Way::Ahead);
  order.most_bytes = allowed.value();
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
  if (::send(parked.socket.get(), &order, sizeof order, kFlags) == sizeof order)
    parked.allowed = allowed;
}

void Parker::note_written(Parked& parked, Bytes written) {
  parked.written = written;
  for (const auto& [attempt, other] : parked_) {
    if (other->behind.contains(parked.attempt)) pace(*other);
  }
}

asio::awaitable<void> Parker::run(ParkedPtr parked) {
  while (!parked->is_gone && parked->wants_out != parked->out.has_value()) {
    if (parked->wants_out) {
      co_await write_out(parked);
    } else {
      co_await read_back(parked);
    }
    const bool is_over = !parked->out && !parked->wants_out;
    if (!is_over) continue;
    const auto known = parked_.find(parked->attempt);
    if (known != parked_.end() && known->second == parked) parked_.erase(known);
    break;
  }
  if (parked->is_gone) co_await stop_helper(parked);
  parked->is_working = false;
}

// ---- scored-park ------------------------------------------------------------------------------

Status Parker::connect(Parked& parked) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (settings_.socket.size() >= sizeof address.sun_path)
    return fail(Errc::TooLarge, "cannot use socket path {}", settings_.socket);
  std::memcpy(address.sun_path, settings_.socket.data(), settings_.socket.size());
  parked.socket = UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!parked.socket) return fail(errno_code(errno), "cannot make a socket");
  const auto* const where = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(parked.socket.get(), where, sizeof address) == 0) return {};
  return fail(errno_code(errno), "cannot reach {} at {}: is scored-park.socket enabled?", kProgram,
              settings_.socket);
}

Status Parker::launch(Parked& parked) const {
  auto pair = make_socket_pair(SOCK_SEQPACKET);
  if (!pair) return pair.error();
  SpawnSpec spec;
  spec.path = find_beside(kProgram, {".", "../libexec/scored"});
  if (spec.path.empty()) {
    return fail(Errc::NotFound, "{} is not installed: install the packages again", kProgram);
  }
  spec.argv = {std::string(kProgram)};
  spec.directory = "/";
  spec.fds = {{pair->second.get(), 0}, {STDERR_FILENO, 2}};
  auto child = spawn(spec);
  if (!child) return child.error();
  parked.child = *std::move(child);
  parked.socket = std::move(pair->first);
  return {};
}

Status Parker::start(Parked& parked, bool is_back) const {
  const std::string path = parts_.tasks_path(parked.attempt);
  if (path.empty()) return fail(Errc::Unsupported, "the node has no cgroup of version 2");
  auto directory = open_file(path, O_RDONLY | O_DIRECTORY);
  if (!directory) return directory.error();
  const UniqueFd reclaim(::open((path + "/memory.reclaim").c_str(), O_WRONLY | O_CLOEXEC));
  park::ParkRequest request;
  request.attempt = parked.attempt.value();
  request.least_rate = settings_.config.least_rate.value();
  request.is_back = is_back ? 1 : 0;
  if (!is_back) {
    const Bytes room = free_job_swap(find_job_swap(settings_.config).most, in_swap());
    if (room < kLeastRoom) return fail(Errc::TooLarge, "the swap for jobs is full");
    request.most_bytes = room.value();
  }
  const auto reached = settings_.socket.empty() ? launch(parked) : connect(parked);
  if (!reached) return reached.error();
  parked.is_ordered = is_back;
  return send_request(parked.socket.get(), request, directory->get(), reclaim.get());
}

asio::awaitable<Result<park::ParkReply>> Parker::read_reply(int socket) {
  auto readable = co_await wait_readable(socket);
  if (!readable) co_return readable.error();
  park::ParkReply reply;
  const ssize_t got = ::recv(socket, &reply, sizeof reply, MSG_TRUNC | MSG_DONTWAIT);
  if (got != sizeof reply || reply.magic != park::kMagic) co_return fail(Errc::Closed, "it ended");
  reply.text[sizeof reply.text - 1] = '\0';
  co_return reply;
}

// Returns the answer to the request or order. Errors: Timeout, if there is no progress.
asio::awaitable<Result<park::ParkReply>> Parker::await_answer(ParkedPtr parked) {
  for (;;) {
    auto reading = read_reply(parked->socket.get());
    auto reply = co_await with_timeout(parts_.clock, kLongestSilence, std::move(reading));
    const bool goes_on =
        reply && static_cast<park::Outcome>(reply->outcome) == park::Outcome::Progress;
    if (!goes_on || parked->is_gone) co_return reply;
    if (parked->wants_out) note_written(*parked, Bytes(reply->moved_bytes));
  }
}

asio::awaitable<void> Parker::stop_helper(ParkedPtr parked) {
  parked->socket.reset();
  SpawnedProcess child = std::exchange(parked->child, {});
  if (child.pid <= 0) co_return;
  auto waiting = wait_readable(child.pidfd.get());
  const auto ended = co_await with_timeout(parts_.clock, kChildEnds, std::move(waiting));
  if (!ended) std::ignore = send_signal(child.pidfd.get(), SIGKILL);
  parts_.tasks.spawn("reap scored-park", collect(std::move(child)));
}

// A process that hangs in the kernel ends when the kernel lets it.
asio::awaitable<void> Parker::collect(SpawnedProcess child) {
  std::ignore = co_await wait_readable(child.pidfd.get());
  std::ignore = reap(child.pidfd.get(), false);
}

// ---- one attempt ------------------------------------------------------------------------------

// Errors: Timeout. It also returns if the order has changed.
asio::awaitable<Status> Parker::await_freeze(ParkedPtr parked) {
  const TimePoint end = parts_.clock.now() + kFreezeWait;
  while (!parked->is_gone && parked->wants_out && !parts_.is_held(parked->attempt)) {
    if (parts_.clock.now() > end) co_return fail(Errc::Timeout, "it was not stopped");
    co_await parts_.clock.sleep_for(kFreezeLook);
  }
  co_return Status();
}

void Parker::give_up(const ParkedPtr& parked, std::string why) {
  ++failures_;
  log_notice("Job cannot be parked", kv("node", settings_.node),
             kv("job", base::job_of(parked->attempt)), kv("reason", why));
  parked->written = Bytes(0);
  base::ParkReport report{parked->attempt, true};
  report.reason = escape_terminal(why, sizeof park::ParkReply::text);
  parked->wants_out = false;
  parts_.report(report);
}

void Parker::note_back(const ParkedPtr& parked, Bytes moved, Duration took) {
  read_ += moved;
  parked->out.reset();
  parked->written = parked->allowed = Bytes(0);
  parked->behind.clear();
  if (parked->wants_out || parked->is_gone) return;
  log_info("Read the memory of a job back", kv("node", settings_.node),
           kv("job", base::job_of(parked->attempt)), kv("bytes", moved.value()));
  base::ParkReport report{parked->attempt, false};
  report.moved = moved;
  report.took = took;
  note_move(report);
  parts_.report(report);
}

asio::awaitable<void> Parker::write_out(ParkedPtr parked) {
  auto frozen = co_await await_freeze(parked);
  if (parked->is_gone) co_return;
  if (!parked->wants_out) co_return note_back(parked, Bytes(0), Duration{0});
  if (!frozen) co_return give_up(parked, frozen.error().message());
  if (auto started = start(*parked, false); !started) {
    co_await stop_helper(parked);
    co_return give_up(parked, started.error().message());
  }
  auto reply = co_await await_answer(parked);
  if (parked->is_gone) co_return;
  const auto outcome = reply ? static_cast<park::Outcome>(reply->outcome) : park::Outcome::Failed;
  if (outcome == park::Outcome::Out) {
    base::ParkReport report{parked->attempt, true};
    report.moved = Bytes(reply->moved_bytes);
    report.stays = Bytes(reply->stays_bytes);
    report.took = Duration(static_cast<Duration::rep>(reply->took_ns));
    written_ += report.moved;
    parked->out = report;
    note_move(report);
    note_written(*parked, report.moved);
    log_info("Parked a job", kv("node", settings_.node), kv("job", base::job_of(parked->attempt)),
             kv("bytes", report.moved.value()), kv("stays", report.stays.value()));
    if (parked->wants_out) parts_.report(report);
    co_return;
  }
  co_await stop_helper(parked);
  if (outcome == park::Outcome::Back) {
    co_return note_back(parked, Bytes(reply->moved_bytes), Duration(0));
  }
  if (!parked->wants_out) co_return note_back(parked, Bytes(0), Duration{0});
  give_up(parked, reply ? std::string(reply->text) : "scored-park: " + reply.error().message());
}

// A helper that is gone is replaced once. If that does not help either, the attempt reads its
// memory back as it uses it.
asio::awaitable<void> Parker::read_back(ParkedPtr parked) {
  order_back(*parked);
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (parked->is_ordered && parked->socket) {
      auto reply = co_await await_answer(parked);
      if (parked->is_gone) co_return;
      if (reply) {
        const Bytes moved(reply->moved_bytes);
        const Duration took(static_cast<Duration::rep>(reply->took_ns));
        co_await stop_helper(parked);
        co_return note_back(parked, moved, took);
      }
    }
    co_await stop_helper(parked);
    if (attempt > 0 || parked->is_gone) break;
    if (auto started = start(*parked, true); !started) break;
  }
  if (parked->is_gone) co_return;
  log_notice("The job reads its memory back as it uses it", kv("node", settings_.node),
             kv("job", base::job_of(parked->attempt)));
  note_back(parked, Bytes(0), Duration{0});
}

// ---- memory of the node -----------------------------------------------------------------------

void Parker::welcomed(bool takes_reports) {
  takes_reports_ = takes_reports;
  const bool is_wanted = settings_.config.share != MemoryShare::Never &&
                         find_job_swap(settings_.config).most > Bytes(0);
  if (!is_wanted || std::exchange(is_watching_, true)) return;
  parts_.tasks.spawn("watch the memory", watch_memory());
}

// The head parks jobs before the kernel has to kill some.
asio::awaitable<void> Parker::watch_memory() {
  ShortageWatch watch(settings_.config.kept_free(memory_figure("MemTotal")));
  for (;;) {
    const Bytes available = memory_figure("MemAvailable");
    const auto report = watch.note(available, !parked_.empty(), parts_.clock.now());
    if (is_short_ != watch.is_short()) {
      is_short_ = watch.is_short();
      log_notice(is_short_ ? "Node is short of memory" : "Node has enough memory again",
                 kv("node", settings_.node), kv("available", available.value()));
    }
    if (report && takes_reports_) parts_.report_memory(*report);
    co_await parts_.clock.sleep_for(kMemoryLook);
  }
}

// ---- figures ----------------------------------------------------------------------------------

void Parker::note_move(const base::ParkReport& report) {
  if (report.moved == Bytes(0)) return;
  if (moves_.size() >= kMostMoves) moves_.pop_front();
  moves_.push_back({report.attempt, report.out, report.moved, parts_.clock.now(), report.took});
}

void Parker::fill_trace(TimePoint since, wire::NodeTrace& trace) const {
  for (const Move& move : moves_) {
    if (move.ended < since) continue;
    wire::MemoryMove& out = *trace.add_moves();
    out.set_attempt(move.attempt.value());
    out.set_out(move.out);
    out.set_began_ns((move.ended - move.took).time_since_epoch().count());
    out.set_took_ns(move.took.count());
    out.set_bytes(move.bytes.value());
  }
}

Bytes Parker::in_swap() const {
  Bytes sum{0};
  for (const auto& [attempt, parked] : parked_) {
    if (parked->out) sum += parked->out->moved;
  }
  return sum;
}

ParkFigures Parker::figures() const {
  ParkFigures out;
  for (const auto& [attempt, parked] : parked_) out.parked += parked->out ? 1 : 0;
  out.in_swap = in_swap();
  out.written = written_;
  out.read = read_;
  out.failures = failures_;
  out.is_short = is_short_;
  return out;
}

bool is_held_by(const gang::SwitchPlan& plan, AttemptId attempt, TimePoint now) {
  return plan.start <= now && std::ranges::binary_search(plan.managed, attempt) &&
         !gang::longest_pause(plan, attempt);
}

std::string park_socket(const std::string& launcher_dir) {
  std::string socket = launcher_dir + "/park.sock";

  struct stat info {};

  const bool is_of_root = ::stat(launcher_dir.c_str(), &info) == 0 && info.st_uid == 0;
  const bool has_socket = ::stat(socket.c_str(), &info) == 0;
  return is_of_root && (has_socket || geteuid() != 0) ? std::move(socket) : std::string();
}

}  // namespace score::node
