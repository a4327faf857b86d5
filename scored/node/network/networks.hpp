// The networks of this node's attempts, between their shepherds and the head. A shepherd asks when
// a task of it first opens PM; the head makes every node of the job prepare its sockets, gathers
// the addresses and says when all are there; the shepherd then makes the contexts and shows them
// here.
#pragma once

#include "base/async/task_group.hpp"
#include "base/ids.hpp"
#include "base/model/model.hpp"
#include "base/result.hpp"
#include "proto/client.pb.h"
#include "proto/node.pb.h"
#include "proto/shepherd.pb.h"
#include "proto/transport/connection.hpp"
#include "scored/config/network_config.hpp"
#include "scored/node/attempts/launcher_link.hpp"
#include "scored/node/link/head_link.hpp"
#include "scored/node/network/channel_sockets.hpp"
#include "scored/node/network/channel_user.hpp"
#include "scored/node/network/job_contexts.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace score::node {

class Networks {
 public:
  // Called when an attempt's contexts are there, and again when the switcher needs another view of
  // its network.
  using Opened = std::function<void(AttemptId, std::shared_ptr<ChannelUser>)>;

  // All outlive it; tasks is stopped first.
  struct Parts {
    HeadLink& head;
    LauncherLink& launcher;
    TaskGroup& tasks;
  };

  // head_host: whoever listens there is on the nodes' network.
  Networks(Parts parts, NetworkConfig config, std::string head_host);

  void set_opened(Opened opened) { opened_ = std::move(opened); }

  // An attempt whose shepherd is connected. Again: a new connection of it.
  void add(const base::PlacedTasks& placed, std::shared_ptr<proto::Connection> shepherd);
  void remove(AttemptId attempt);

  // A frame about networks. False: it is none, or makes no sense.
  bool from_shepherd(AttemptId attempt, const proto::InFrame& frame);
  bool from_head(const proto::InFrame& frame);
  // The head greeted: what it may not know is said again.
  void resume();

  [[nodiscard]] const JobContexts& contexts() const { return contexts_; }

  // Another attempt of this node has the same channel: it must not run beside that one.
  [[nodiscard]] bool shares_channel(AttemptId attempt) const;

  // [node of the job]: frames that its tasks here have sent there so far, modulo 2^32. Empty: it
  // has no network, or is on one node alone.
  [[nodiscard]] std::vector<std::uint32_t> frames_to_nodes(AttemptId attempt) const;

  // What the channels did, and what the open contexts say they have sent.
  void fill_figures(const ChannelCounters& counters, wire::ChannelFigures& out) const;

 private:
  struct Network {
    base::PlacedTasks placed;
    std::shared_ptr<proto::Connection> shepherd;
    bool is_wanted = false;
    bool is_open = false;  // the shepherd has all it needs
    // It keeps the sockets, or rings, so many; all of them before others are told the addresses.
    std::uint32_t kept = 0;
    std::uint64_t key = 0;  // 0: not prepared
    std::uint16_t channel = 0;
    std::string addresses;  // of this node's tasks
    std::vector<std::shared_ptr<ChannelSocket>> sockets;
    std::vector<UniqueFd> rings;  // Ethernet, [task]
    bool is_preparing = false;
    std::shared_ptr<ChannelUser> user;  // null: no contexts yet
    bool has_room = false;              // of user
  };

  [[nodiscard]] static std::uint32_t tasks_of(const Network& network) {
    return network.placed.tasks_on_node[network.placed.node_index];
  }

  bool take_sockets(Network& network, std::vector<UniqueFd> fds);
  bool on_descriptors(Network& network, const wire::PassedDescriptors& message);
  void on_network(Network& network, const wire::ShepherdNetwork& message);
  bool take_kept(Network& network, std::vector<UniqueFd> fds);
  void entrust(Network& network);
  [[nodiscard]] wire::ShepherdNetwork describe(const Network& network) const;
  void on_prepare(Network& network, const wire::NetworkPrepare& message);
  void on_ready(Network& network, wire::NetworkReady&& message);
  asio::awaitable<void> run_prepare(AttemptId attempt);
  asio::awaitable<Status> open_rings(AttemptId attempt);
  Status open_sockets(Network& network);
  void filter_sockets(const Network& user) const;
  Network* find(AttemptId attempt);
  void say_prepared(const Network& network);
  void open_user(Network& network, bool has_room);
  void share_channel(Network& network);
  [[nodiscard]] Result<in_addr> local_address() const;

  HeadLink& head_;
  LauncherLink& launcher_;
  TaskGroup& tasks_;
  NetworkConfig config_;
  std::string head_host_;
  Opened opened_;
  JobContexts contexts_;
  ChannelSockets channel_sockets_;
  std::map<AttemptId, Network> networks_;
};

}  // namespace score::node
