// scored-park writes the memory of one frozen attempt to swap, waits for the order to read it back,
// and ends. systemd starts it as root for each connection of the node daemon; in a cluster of one
// user the daemon starts it as itself. Which processes these are is said by the attempt's cgroup.
#include "scored/privileged/park/paging.hpp"
#include "scored/privileged/park/protocol.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace score::park {
namespace {

constexpr int kCaller = STDIN_FILENO;
constexpr int kRequestWaitMs = 5'000;
constexpr long kCgroup2 = 0x63677270;  // CGROUP2_SUPER_MAGIC
constexpr std::uint64_t kSmallJob = 16ULL << 20U;
constexpr int kNice = 10;       // while it writes; the job waits for what is read
constexpr int kAheadNice = 19;  // reading ahead must not slow down the writing that makes room
// The kernel may have dropped what was read ahead before, so it is looked at again.
constexpr std::uint64_t kAheadLasts = 10'000'000'000;

constexpr const char* kUsage =
    "usage: scored-park [--daemon-user NAME]\n"
    "\n"
    "Writes the memory of a job that is held to swap, for the node daemon that is connected to\n"
    "its standard input. scored-park.socket starts it as root; in a cluster of one user the\n"
    "daemon does.\n"
    "\n"
    "  --daemon-user NAME   accept requests of this user (default: that of this process)\n"
    "  --help               print this help and exit\n"
    "  --version            print the version and exit\n";

int refuse(const char* why) {
  std::fprintf(stderr, "<3>scored-park: %s\n", why);
  return 1;
}

bool read_daemon_user(const char* name, uid_t& out) {
  out = geteuid();
  if (name == nullptr) return true;
  const passwd* const known = getpwnam(name);
  if (known != nullptr) out = known->pw_uid;
  return known != nullptr;
}

bool is_from(uid_t user) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(kCaller, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  return peer.uid == user;
}

// Receives the request with its descriptors. Returns false if it is malformed.
bool receive(ParkRequest& request, Place& place) {
  pollfd caller{.fd = kCaller, .events = POLLIN, .revents = 0};
  if (poll(&caller, 1, kRequestWaitMs) != 1) return false;
  iovec data{&request, sizeof request};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(kCaller, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (got != sizeof request || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return false;
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return false;
  const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  int fds[2] = {-1, -1};
  std::memcpy(fds, CMSG_DATA(header), std::min<std::size_t>(count, 2) * sizeof(int));
  place = {fds[0], fds[1]};
  return count >= 1 && request.magic == kMagic && request.version == kVersion &&
         request.attempt != 0 && request.is_back <= 1;
}

// Returns whether the descriptor is the directory of the attempt's tasks: in a cgroup2 file system,
// of that name, and of the daemon's user, who alone can have made it there.
bool is_place_of(std::uint64_t attempt, int directory, uid_t user) {
  struct statfs system {};

  struct stat status {};

  if (fstatfs(directory, &system) != 0 || system.f_type != kCgroup2) return false;
  if (fstat(directory, &status) != 0 || !S_ISDIR(status.st_mode)) return false;
  if (status.st_uid != user && status.st_uid != 0) return false;
  char path[4'096];
  const std::string link = "/proc/self/fd/" + std::to_string(directory);
  const ssize_t length = readlink(link.c_str(), path, sizeof path);
  const std::string name = "/job_" + std::to_string(attempt) + "/tasks";
  return length > 0 && std::string_view(path, static_cast<std::size_t>(length)).ends_with(name);
}

// Only what belongs to memory.reclaim of that very directory is written to.
bool is_reclaim_of(int reclaim, int directory) {
  struct stat given {};

  struct stat own {};

  return reclaim < 0 || (fstat(reclaim, &given) == 0 &&
                         fstatat(directory, "memory.reclaim", &own, AT_SYMLINK_NOFOLLOW) == 0 &&
                         given.st_dev == own.st_dev && given.st_ino == own.st_ino);
}

void set_io_priority(int of_class) {
  constexpr int kProcess = 1;      // IOPRIO_WHO_PROCESS
  constexpr int kClassShift = 13;  // IOPRIO_CLASS_SHIFT
  syscall(SYS_ioprio_set, kProcess, 0, of_class << kClassShift);
}

class Session {
 public:
  Session(const ParkRequest& request, Place place) : request_(request), paging_(place) {}

  int run() {
    if (request_.is_back == 0 && !write_out()) return 0;
    wait_for_order();
    return is_gone_ ? 0 : read_back();
  }

 private:
  // Takes an order or the end of the connection; does not wait unless asked to.
  void hear(int wait_ms) {
    if (is_gone_ || is_ordered_) return;
    pollfd caller{.fd = kCaller, .events = POLLIN, .revents = 0};
    if (poll(&caller, 1, wait_ms) != 1) return;
    ParkOrder order{0, 0, 0};
    const bool is_order = recv(kCaller, &order, sizeof order, 0) == sizeof order;
    const bool is_known = is_order && order.magic == kMagic;
    is_ordered_ = is_known && order.way == static_cast<std::uint32_t>(Way::Back);
    const bool is_ahead = is_known && order.way == static_cast<std::uint32_t>(Way::Ahead);
    if (is_ahead) ahead_ = order.most_bytes;
    is_gone_ = !is_ordered_ && !is_ahead;
  }

  // Returns when everything is to be read back, or the caller has gone.
  void wait_for_order() {
    is_ordered_ |= request_.is_back == 1;
    while (!is_ordered_ && !is_gone_) {
      hear(-1);
      if (!is_ordered_ && !is_gone_) read_ahead();
    }
  }

  // The pages that are read are clean and still in swap, so the kernel drops them at no cost if the
  // memory is needed elsewhere after all.
  void read_ahead() {
    setpriority(PRIO_PROCESS, 0, kAheadNice);
    paging_.read_back(ahead_, [this] {
      hear(0);
      return !is_ordered_ && !is_gone_;
    });
    read_ahead_ = now_ns();
  }

  // Says at times that the work goes on, and how much is done.
  void note_progress() {
    const std::uint64_t now = now_ns();
    if (now - told_ < kProgressNs) return;
    told_ = now;
    ParkReply out;
    out.outcome = static_cast<std::uint32_t>(Outcome::Progress);
    out.moved_bytes = paging_.done();
    out.took_ns = now - began_;
    send(kCaller, &out, sizeof out, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  bool reply(Outcome outcome, std::uint64_t moved, const std::string& text = {}) {
    ParkReply out;
    out.outcome = static_cast<std::uint32_t>(outcome);
    out.moved_bytes = moved;
    out.stays_bytes = paging_.measure().pss;
    out.took_ns = now_ns() - began_;
    std::memcpy(out.text, text.data(), std::min(text.size(), sizeof out.text - 1));
    return send(kCaller, &out, sizeof out, MSG_NOSIGNAL) == sizeof out;
  }

  // Returns a text if the job is one that cannot be parked.
  [[nodiscard]] std::string why_not() const {
    const Measure& measure = paging_.measure();
    if (measure.pss < kSmallJob || measure.may_leave * 10 >= measure.pss) return {};
    char text[kTextBytes];
    std::snprintf(text, sizeof text,
                  "%.1f of %.1f MB of its memory are locked, shared or huge pages",
                  static_cast<double>(measure.pss - measure.may_leave) / 1e6,
                  static_cast<double>(measure.pss) / 1e6);
    return text;
  }

  // Returns whether the memory is out.
  bool write_out() {
    constexpr int kIdle = 3;  // IOPRIO_CLASS_IDLE
    set_io_priority(kIdle);
    const auto goes_on = [this] {
      hear(0);
      note_progress();
      return !is_gone_ && !is_ordered_;
    };
    std::string fault = paging_.look() ? why_not() : "its processes cannot be read";
    if (fault.empty() && request_.most_bytes == 0) fault = "no swap is free";
    if (fault.empty()) fault = paging_.write_out(request_.most_bytes, request_.least_rate, goes_on);
    if (is_gone_) return false;
    if (!fault.empty()) {
      paging_.read_all_back([] { return true; });
      reply(Outcome::Failed, 0, fault);
      return false;
    }
    paging_.look();
    return is_ordered_ || reply(Outcome::Out, paging_.measure().swap);
  }

  int read_back() {
    constexpr int kBestEffort = 2;  // IOPRIO_CLASS_BE
    set_io_priority(kBestEffort);
    setpriority(PRIO_PROCESS, 0, 0);
    began_ = now_ns();
    const auto goes_on = [this] {
      note_progress();
      pollfd caller{.fd = kCaller, .events = POLLIN, .revents = 0};
      return poll(&caller, 1, 0) != 1;
    };
    const bool is_fresh = read_ahead_ != 0 && began_ - read_ahead_ < kAheadLasts;
    is_fresh ? paging_.read_back(UINT64_MAX, goes_on) : paging_.read_all_back(goes_on);
    return reply(Outcome::Back, paging_.done()) ? 0 : 1;
  }

  ParkRequest request_;
  Paging paging_;
  std::uint64_t began_ = now_ns();
  std::uint64_t told_ = began_;
  std::uint64_t ahead_ = 0;       // bytes that may be read ahead
  std::uint64_t read_ahead_ = 0;  // time at which that was done last; 0: never
  bool is_ordered_ = false;
  bool is_gone_ = false;
};

int serve(const char* daemon_user) {
  uid_t user = 0;
  if (!read_daemon_user(daemon_user, user)) return refuse("no such user");
  if (!is_from(user)) return refuse("the caller is not the node daemon");
  ParkRequest request;
  Place place;
  if (!receive(request, place)) return refuse("malformed request");
  if (!is_place_of(request.attempt, place.directory, user) ||
      !is_reclaim_of(place.reclaim, place.directory)) {
    return refuse("the directory is not that of the attempt's tasks");
  }
  setpriority(PRIO_PROCESS, 0, kNice);
  return Session(request, place).run();
}

}  // namespace
}  // namespace score::park

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (argc == 2 && first == "--help") return std::fputs(score::park::kUsage, stdout) < 0 ? 1 : 0;
  if (argc == 2 && first == "--version") return std::puts("scored " SCORE_VERSION) < 0 ? 1 : 0;
  if (argc == 3 && first == "--daemon-user") return score::park::serve(argv[2]);
  if (argc == 1) return score::park::serve(nullptr);
  std::fputs("scored-park: unknown arguments (--help explains)\n", stderr);
  return 2;
}
