// Manages a cluster of several hosts: the head runs here, and a host agent on every host is
// connected by a link.
#pragma once

#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "proto/transport/key.hpp"
#include "scout/cluster/supervisor.hpp"
#include "scout/start/bundle.hpp"
#include "scout/start/link.hpp"
#include "scout/start/plan/allocation.hpp"
#include "scout/start/plan/boot_tracker.hpp"
#include "scout/start/plan/daemon_configs.hpp"
#include "scout/start/plan/hosts.hpp"
#include "scout/start/plan/script.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace score::scout {

struct StartOptions {
  std::vector<Host> hosts;
  Via via = Via::Ssh;
  std::vector<std::string> ssh = {"ssh"};
  std::uint32_t min_hosts = 0;  // 0: all
  std::string head_address;     // as given by the user; empty: found by each host
  std::string own_address;      // for hosts that find none, or a loopback address; empty: unknown
  HeadSetup head{};
  std::string memory;  // per host for jobs; empty: all
  Push push = Push::Auto;
  std::string directory = "/tmp";  // for pushed programs
  Duration limit{};                // time for all hosts to come up
};

class HostCluster : public OwnCluster {
 public:
  HostCluster(StartOptions options, std::string programs);

  Status boot(const std::string& directory) override;

  Result<bool> is_up() override;

  [[nodiscard]] int fd() const override { return ready_.get(); }

  Status serve() override;
  Status on_child(pid_t pid, int shell_code) override;
  [[nodiscard]] std::string describe() const override;
  std::vector<std::string> take_notes() override;
  std::vector<std::string> tear_down() override;

 private:
  struct Member {
    std::optional<Link> link;
    bool wants_bundle = false;
    bool wants_orders = false;
    bool is_gone = false;  // it has removed everything
    bool watches_input = false;
    std::string error;  // its own error text, or that of the link
  };

  Status start_head();
  Status find_port();
  Status start_links();
  Status start_link(std::size_t index);
  void read_link(std::size_t index);
  void on_report(std::size_t index, const Report& report);
  void on_link_end(std::size_t index, int shell_code);
  void send_orders(std::size_t index);
  void send_waiting();
  void send_beats();
  void watch(Member& member);
  [[nodiscard]] std::size_t nodes_up();
  void name_silent_nodes();
  [[nodiscard]] Error too_few() const;

  StartOptions options_;
  std::string script_;
  UniqueFd ready_;  // epoll: every link
  proto::Key key_;
  std::optional<BootTracker> boot_tracker_;
  Bundle bundle_;
  std::vector<Member> members_;
  std::vector<std::string> notes_;
  TimePoint next_beat_{};
  TimePoint next_look_{};
  TimePoint head_restart_{};
  bool head_ended_ = false;
  bool is_up_ = false;
};

}  // namespace score::scout
