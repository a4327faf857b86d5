// The launcher's loop: one socket, one daemon at a time, its requests, the lease, ended shepherds.
#pragma once

#include "scored/launcher/options.hpp"
#include "scored/launcher/protocol.hpp"
#include "scored/launcher/rings.hpp"
#include "scored/launcher/shepherds.hpp"

#include <cstdint>
#include <sys/socket.h>

namespace score::launcher {

class Server {
 public:
  explicit Server(const Options& options) : options_(options), rings_(options.interface) {}

  // Opens what it needs. False: one line said why not.
  bool start();
  // For ever.
  [[noreturn]] void run();

 private:
  bool listen_on_socket();
  void turn();
  void accept_daemon();
  void read_packet();
  void drop(const char* why);
  void on_request(const Request& request, int fd);
  void launch(const Request& request, int fd);
  void open_ring(const Request& request);
  void report_without_xdp(Failure& failure);
  [[nodiscard]] Failure check(const Request& request, int fd) const;
  // fd: goes with the answer; -1: none.
  void answer(const Request& request, const Failure& failure, const Started& started, int fd);
  void take_lease(int fd);
  [[nodiscard]] bool has_lease() const;
  void thaw(const char* what);

  Options options_;
  Shepherds shepherds_;
  Rings rings_;
  Failure without_xdp_;  // why the last ring that should be by AF_XDP is not; error 0: none yet
  int listener_ = -1;
  int daemon_ = -1;  // the one connection
  ucred peer_{};     // who made it; pid 0: not known
  int lease_ = -1;   // the daemon's timer
  int cgroup_root_ = -1;
  int cpu_root_ = -1;  // of the daemon that connected last; -1: none
  int null_device_ = -1;
  bool reset_oom_score_ = false;
  std::uint64_t refused_ = 0;  // packets and connections
  std::int64_t last_complaint_ns_ = 0;
};

}  // namespace score::launcher
