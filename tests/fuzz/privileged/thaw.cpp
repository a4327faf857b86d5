// This fuzz target is the node daemon of the guard, scored-thaw: it sends packets about process
// groups and then goes away. kill() is replaced. Exactly the groups that are watched at the end
// must be continued. The input is a list of packets, each a length and bytes.
#include "base/assert.hpp"
#include "scored/privileged/thaw/guard.hpp"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <span>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <unistd.h>
#include <vector>

int thaw_main(int argc, char** argv);

namespace {

using score::thaw::WatchedGroup;
using Groups = std::set<std::int32_t>;

Groups g_continued;

// A fixed number of descriptor, used for one run of the program and then what it was before.
class Placed {
 public:
  Placed(int number, int fd) : number_(number), before_(dup(number)) {
    SCORE_ASSERT(dup2(fd, number) == number);
  }

  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;

  ~Placed() {
    close(number_);
    if (before_ < 0) return;
    dup2(before_, number_);
    close(before_);
  }

 private:
  int number_;
  int before_;
};

// Holds what the program knows, which lasts from one run to the next in this process.
class Model {
 public:
  void note(const WatchedGroup& told) {
    groups_.erase(told.group);
    const bool has_room = groups_.size() < score::thaw::kMaxGroups;
    if (told.is_watched != 0 && told.group != 0 && has_room) groups_.insert(told.group);
  }

  // Groups that are no group of processes are never continued.
  [[nodiscard]] Groups continued() const {
    Groups valid;
    std::ranges::copy_if(groups_, std::inserter(valid, valid.end()),
                         [](std::int32_t group) { return group > 1; });
    return valid;
  }

  [[nodiscard]] std::vector<std::int32_t> all() const { return {groups_.begin(), groups_.end()}; }

 private:
  Groups groups_;
};

// Runs the guard until the daemon is gone.
void run_guard(int daemon) {
  const int lease = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  char name[] = "scored-thaw";
  char guard[] = "--guard";
  char none[] = "none";
  char* argv[] = {name, guard, none, nullptr};
  {
    const int high[] = {fcntl(daemon, F_DUPFD_CLOEXEC, 100), fcntl(lease, F_DUPFD_CLOEXEC, 100)};
    close(daemon);
    close(lease);
    const Placed first(score::thaw::kDaemonFd, high[0]);
    const Placed second(score::thaw::kLeaseFd, high[1]);
    for (const int fd : high) close(fd);
    g_continued.clear();
    SCORE_ASSERT(thaw_main(3, argv) == 0);
  }
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::signal(signal, SIG_DFL);
}

// Sends packets, at most as many as a socket holds, and ends.
class Sender {
 public:
  Sender() { SCORE_ASSERT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_) == 0); }

  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  [[nodiscard]] bool send(const void* bytes, std::size_t size) const {
    return ::send(ends_[0], bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
  }

  void finish() {
    close(ends_[0]);
    run_guard(ends_[1]);
  }

 private:
  int ends_[2] = {-1, -1};
};

}  // namespace

extern "C" int kill_recorded(pid_t process, int signal) {
  SCORE_ASSERT(process < -1 && signal == SIGCONT, "only groups are continued");
  SCORE_ASSERT(g_continued.insert(-process).second, "a group is continued once");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Model model;
  std::span<const std::uint8_t> rest(data, size);
  Sender sender;
  bool has_ended = false;
  for (int packets = 0; rest.size() > 1 && packets < 64 && !has_ended; ++packets) {
    const std::size_t length = std::min<std::size_t>(rest[0], rest.size() - 1);
    const bool is_sent = sender.send(rest.data() + 1, length);
    WatchedGroup told;
    if (is_sent && length == sizeof told) {
      std::memcpy(&told, rest.data() + 1, sizeof told);
      model.note(told);
    }
    has_ended = is_sent && length == 0;  // this looks like the end of the connection
    rest = rest.subspan(1 + length);
  }
  sender.finish();
  SCORE_ASSERT(g_continued == model.continued());

  // Forgets all groups, so that an input does not depend on those before it.
  while (!model.all().empty()) {
    Sender forgets;
    for (const std::int32_t group : model.all()) {
      const WatchedGroup told{group, 0};
      if (!forgets.send(&told, sizeof told)) break;
      model.note(told);
    }
    forgets.finish();
    SCORE_ASSERT(g_continued == model.continued());
  }
  return 0;
}
