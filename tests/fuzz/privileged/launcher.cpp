// This fuzz target sends packets to the launcher's server as the node daemon would. start() is
// replaced: it requires that the request was checked, and starts a child that only waits. The input
// is a list of packets: options, length (two bytes), bytes. Each packet must lead to one answer
// about its attempt, or to the end of the connection if it is malformed.
#include "base/assert.hpp"
#include "scored/privileged/launcher/server.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <linux/magic.h>
#include <span>
#include <string>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <vector>

namespace score::launcher {

namespace {

// Options of a packet.
constexpr unsigned kPlacesMask = 7;  // which descriptors come with it
constexpr unsigned kHasHeader = 8;   // its magic number and version are made right
constexpr unsigned kIsAllowed = 16;  // ... and its user
constexpr uid_t kLeastUser = 1000;

std::vector<pid_t> g_children;

bool is_listening(int fd) {
  int value = 0;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) == 0 && value == 1;
}

bool is_of_type(int fd, long type) {
  struct statfs info {};

  return fstatfs(fd, &info) == 0 && info.f_type == type;
}

void require_checked(const Launch& launch) {
  const StartRequest& request = launch.request;
  SCORE_ASSERT(request.attempt != 0);
  SCORE_ASSERT(request.denied[kDeniedBytes - 1] == '\0');
  SCORE_ASSERT(geteuid() == 0 ? request.user >= kLeastUser : request.user == geteuid());
  SCORE_ASSERT(is_listening(launch.places[kListener]));
  for (int i = kShepherdCgroup; i < kPlaces; ++i) {
    const long type = i >= kVersion1 ? CGROUP_SUPER_MAGIC : CGROUP2_SUPER_MAGIC;
    SCORE_ASSERT(launch.places[i] < 0 || is_of_type(launch.places[i], type));
  }
}

// Returns when the child holds no descriptor of this process any more.
pid_t start_idle_child() {
  const pid_t parent = getpid();
  int ends[2];
  SCORE_ASSERT(pipe2(ends, O_CLOEXEC) == 0);
  const pid_t child = fork();
  if (child == 0) {
    closefrom(0);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    while (getppid() == parent) pause();
    _exit(0);
  }
  close(ends[1]);
  char none = 0;
  SCORE_ASSERT(read(ends[0], &none, 1) == 0);
  close(ends[0]);
  return child;
}

class Daemon {
 public:
  Daemon() {
    char pattern[] = "/tmp/score_fuzz_XXXXXX";
    SCORE_ASSERT(mkdtemp(pattern) != nullptr);
    directory_ = pattern;
    const int before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    options_.rundir = directory_.c_str();
    options_.shepherd = "/bin/true";
    options_.daemon_user = geteuid();
    options_.min_uid = kLeastUser;
    const mode_t mask = umask(0);
    SCORE_ASSERT(server_.start());
    umask(mask);
    SCORE_ASSERT(fchdir(before) == 0);
    close(before);
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    SCORE_ASSERT(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t)) == 0);
    SCORE_ASSERT(listen(listener_, 1) == 0);
    other_ = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
  }

  ~Daemon() {
    for (const char* name : {"launcher.sock", "launcher.lock"}) {
      unlink((directory_ + "/" + name).c_str());
    }
    rmdir(directory_.c_str());
  }

  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  void send(unsigned options, std::span<const std::uint8_t> bytes) {
    std::string packet(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if ((options & kHasHeader) != 0) repair(packet, (options & kIsAllowed) != 0);
    if (peer_ < 0) connect();
    const bool is_sent = send_packet(packet, places(options & kPlacesMask));
    if (!is_sent) return;
    const std::size_t children = g_children.size();
    server_.turn();
    StartRequest request;
    const bool is_whole = packet.size() == sizeof request && (options & kPlacesMask) != 7;
    if (is_whole) memcpy(&request, packet.data(), sizeof request);
    const bool is_good = is_whole && request.magic == kMagic && request.version == kVersion;
    if (!is_good) return expect_end();
    awaited_.push_back(request.attempt);
    if (g_children.size() == children) expect_answer();  // it was refused
  }

  // Ends the children; then everything has been answered.
  void settle() {
    for (const pid_t child : g_children) {
      kill(child, SIGKILL);
      while (kill(child, 0) == 0) server_.turn();
    }
    g_children.clear();
    while (!awaited_.empty() && peer_ >= 0) expect_answer();
    if (peer_ < 0) return;
    close(peer_);
    peer_ = -1;
    server_.turn();  // it sees the end of the connection
    awaited_.clear();
  }

 private:
  static void repair(std::string& packet, bool is_allowed) {
    StartRequest request;
    if (packet.size() < sizeof request) return;
    memcpy(&request, packet.data(), sizeof request);
    request.magic = kMagic;
    request.version = kVersion;
    if (is_allowed) request.user = geteuid() == 0 ? kLeastUser : geteuid();
    memcpy(packet.data(), &request, sizeof request);
  }

  void connect() {
    peer_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    (directory_ + "/launcher.sock").copy(address.sun_path, sizeof address.sun_path - 1);
    SCORE_ASSERT(::connect(peer_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    server_.turn();
  }

  [[nodiscard]] std::vector<int> places(unsigned choice) const {
    switch (choice) {
      case 0:
        return {};
      case 1:
        return {other_};
      case 2:
        return {listener_, other_, other_};
      case 3:
        return {listener_, listener_, listener_, listener_};
      case 7:
        return std::vector<int>(kPlaces + 3, listener_);
      default:
        return {listener_};
    }
  }

  [[nodiscard]] bool send_packet(const std::string& packet, const std::vector<int>& fds) const {
    iovec block{.iov_base = const_cast<char*>(packet.data()), .iov_len = packet.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &block;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
      message.msg_control = control;
      message.msg_controllen = CMSG_LEN(fds.size() * sizeof(int));
      cmsghdr* part = CMSG_FIRSTHDR(&message);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
      memcpy(CMSG_DATA(part), fds.data(), fds.size() * sizeof(int));
    }
    return sendmsg(peer_, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(packet.size());
  }

  // The answers to earlier requests come first.
  void expect_end() {
    for (;;) {
      StartReply reply;
      const ssize_t got = recv(peer_, &reply, sizeof reply, MSG_DONTWAIT);
      if (got == sizeof reply) continue;
      SCORE_ASSERT(got == 0 || (got < 0 && errno == ECONNRESET), "a malformed packet was accepted");
      break;
    }
    close(peer_);
    peer_ = -1;
    awaited_.clear();
  }

  void expect_answer() {
    StartReply reply;
    SCORE_ASSERT(recv(peer_, &reply, sizeof reply, MSG_DONTWAIT) == sizeof reply, "no answer");
    SCORE_ASSERT(reply.magic == kMagic && reply.step[sizeof reply.step - 1] == '\0');
    SCORE_ASSERT((reply.error == 0) == (reply.shepherd_pid != 0));
    const auto found = std::find(awaited_.begin(), awaited_.end(), reply.attempt);
    SCORE_ASSERT(found != awaited_.end(), "an answer about another attempt");
    awaited_.erase(found);
  }

  std::string directory_;
  LauncherOptions options_;
  LauncherServer server_{options_};
  int listener_ = -1;
  int other_ = -1;
  int peer_ = -1;
  std::deque<std::uint64_t> awaited_;  // attempts
};

}  // namespace

// The attempt's number decides what the programs report.
int start(const Launch& launch, StartedShepherd& started) {
  require_checked(launch);
  if (launch.request.attempt % 4 == 3) return EAGAIN;
  int notes[2];
  SCORE_ASSERT(pipe2(notes, O_CLOEXEC) == 0);
  StartReply note{.error = launch.request.attempt % 4 == 1 ? 1U : 0U, .group = 4711};
  memset(note.step, 'x', sizeof note.step);  // the text has no end
  SCORE_ASSERT(write(notes[1], &note, sizeof note) == sizeof note);
  close(notes[1]);
  started.notes = notes[0];
  started.shepherd = start_idle_child();
  started.pidfd = static_cast<int>(syscall(SYS_pidfd_open, started.shepherd, 0));
  g_children.push_back(started.shepherd);
  return 0;
}

}  // namespace score::launcher

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static score::launcher::Daemon daemon;
  std::span<const std::uint8_t> rest(data, size);
  for (int packets = 0; rest.size() >= 3 && packets < 16; ++packets) {
    const std::size_t wanted = rest[1] | static_cast<std::size_t>(rest[2]) << 8U;
    const std::size_t length = std::min(wanted, rest.size() - 3);
    daemon.send(rest[0], rest.subspan(3, length));
    rest = rest.subspan(3 + length);
  }
  daemon.settle();
  return 0;
}
