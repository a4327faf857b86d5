// Implements the launcher's loop: one socket, one daemon at a time, its requests, the shepherds. It
// waits only in poll(2).
#pragma once

#include "scored/privileged/launcher/start.hpp"

#include <sys/socket.h>
#include <sys/types.h>

namespace score::launcher {

inline constexpr int kMaxAllowed = 16;

struct LauncherOptions {
  const char* rundir = nullptr;
  const char* shepherd = nullptr;
  const char* interface = nullptr;  // interface of the rings; null: none are opened
  uid_t daemon_user = 0;
  uid_t min_uid = 1000;  // least user id of jobs; ignored without root, which starts only its own
                         // user's jobs
  uid_t allowed[kMaxAllowed] = {};  // allowed in addition
  int allowed_count = 0;
};

class LauncherServer {
 public:
  explicit LauncherServer(const LauncherOptions& options) : options_(options) {}

  // Opens its socket. If it fails, it writes one line with the reason and returns false.
  bool start();

  // Adds a child that is not a shepherd; this process ends with it. Must be called before turn().
  void add(const StartedShepherd& child) { children_[count_++].started = child; }

  // Waits once and handles the events; must be called in an endless loop.
  void turn();

 private:
  struct Child {
    std::uint64_t attempt = 0;  // 0: scored-rings
    StartedShepherd started{};  // notes -1: it has been answered
    pid_t group = 0;
    std::int64_t deadline_ns = 0;  // of the start
  };

  void accept_daemon();
  void read_packet();
  void drop(const char* why);
  void start_attempt(const Launch& launch);
  const char* check(const Launch& launch) const;
  bool may_start(uid_t user) const;
  void watch_start(Child& child, bool is_readable);
  void answer(const Child& child, int error, const char* step);
  void kill_leftovers();

  const LauncherOptions& options_;
  Child children_[kMaxShepherds + 1] = {};  // one place is for scored-rings
  std::size_t count_ = 0;
  bool has_leftovers_ = false;  // leftovers of ended shepherds may exist
  int listener_ = -1;
  int daemon_ = -1;  // the one connection
  ucred peer_{};     // credentials of its peer
};

}  // namespace score::launcher
