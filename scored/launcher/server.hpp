// The launcher's loop: one socket, one daemon at a time, its requests, the shepherds. It waits for
// poll(2) alone.
#pragma once

#include "scored/launcher/start.hpp"

#include <sys/socket.h>
#include <sys/types.h>

namespace score::launcher {

inline constexpr int kMaxAllowed = 16;

struct Options {
  const char* rundir = nullptr;
  const char* shepherd = nullptr;
  const char* interface = nullptr;  // that rings lead to; null: none are opened
  uid_t daemon_user = 0;
  uid_t min_uid = 1000;             // of jobs; ignored without root, which starts its own only
  uid_t allowed[kMaxAllowed] = {};  // besides
  int allowed_count = 0;
};

class Server {
 public:
  explicit Server(const Options& options) : options_(options) {}

  // Opens its socket. False: one line said why not.
  bool start();
  // A child that is no shepherd; this process ends with it. Before turn().
  void add(pid_t child);
  // One wait and what it brings; to be called for ever.
  void turn();

 private:
  struct Child {
    std::uint64_t attempt = 0;  // 0: scored-rings
    Started started{};          // notes -1: it has been answered
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
  void kill_strangers();

  const Options& options_;
  Child children_[kMaxShepherds + 1] = {};  // and scored-rings
  std::size_t count_ = 0;
  bool has_strangers_ = false;  // what ended shepherds left may be there
  int listener_ = -1;
  int daemon_ = -1;  // the one connection
  ucred peer_{};     // who made it
};

}  // namespace score::launcher
