// Manages the networks of this node's attempts, between their shepherds and the head. A shepherd
// asks when one of its tasks first opens PM. The head has every node of the job prepare its
// sockets, gathers the addresses, and announces when all are known. The shepherd then makes the
// contexts and passes them to the node daemon.
#pragma once

#include "base/async/task_group.hpp"
#include "base/ids.hpp"
#include "base/model/model.hpp"
#include "base/result.hpp"
#include "proto/client.pb.h"
#include "proto/node.pb.h"
#include "proto/shepherd.pb.h"
#include "proto/transport/connection.hpp"
#include "scored/node/channel/channel_sockets.hpp"
#include "scored/node/channel/channel_user.hpp"
#include "scored/node/channel/job_contexts.hpp"
#include "scored/node/link/head_link.hpp"
#include "scored/node/link/launcher_link.hpp"
#include "scored/shared/config/network_config.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace score::node {

class Networks {
 public:
  // Is called when an attempt's contexts are complete, and again when the switcher needs a new
  // ChannelUser.
  using Opened = std::function<void(AttemptId, std::shared_ptr<ChannelUser>)>;

  // All must outlive it; `tasks` is stopped first.
  struct Parts {
    HeadLink& head;
    LauncherLink& launcher;
    TaskGroup& tasks;
  };

  // `head_host` is an address on the nodes' network.
  Networks(Parts parts, NetworkConfig config, std::string head_host);

  void set_opened(Opened opened) { opened_ = std::move(opened); }

  // Must be called when the attempt's shepherd has connected, and again for a new connection.
  void add(const base::PlacedTasks& placed, std::shared_ptr<proto::Connection> shepherd);
  void remove(AttemptId attempt);

  // Handles a frame about networks. Returns false for a different or malformed frame.
  bool from_shepherd(AttemptId attempt, const proto::InFrame& frame);
  bool from_head(const proto::InFrame& frame);
  // Must be called when the head has welcomed the node. Reports that may be lost are repeated.
  void resume();

  // Returns the device that the configuration names and this host lacks, or "" if there is none.
  [[nodiscard]] const std::string& problem() const { return problem_; }

  // Returns the libfabric providers that jobs' networks use, in the format of FI_PROVIDER:
  // "tcp,shm". May be empty.
  [[nodiscard]] std::string ofi_providers() const;

  [[nodiscard]] const JobContexts& contexts() const { return contexts_; }

  // Returns true if a different attempt of this node has the same channel. The two must not run at
  // the same time.
  [[nodiscard]] bool shares_channel(AttemptId attempt) const;

  // Returns for each node of the job how many frames the attempt's tasks here have sent there so
  // far, modulo 2^32. The result is empty without a network, or on one node.
  [[nodiscard]] std::vector<std::uint32_t> frames_to_nodes(AttemptId attempt) const;

  // Fills in the counters of the channels, and of frames sent by the open contexts.
  void fill_figures(const ChannelCounters& counters, wire::ChannelFigures& out) const;

 private:
  struct Network {
    base::PlacedTasks placed;
    std::shared_ptr<proto::Connection> shepherd;
    bool is_wanted = false;
    bool is_open = false;  // the shepherd has all it needs
    // The number of sockets that the shepherd keeps. It keeps all before the addresses are
    // announced.
    std::uint32_t kept = 0;
    std::uint64_t key = 0;  // 0: not prepared
    std::uint16_t channel = 0;
    std::string addresses;                                // of this node's tasks, [task][link]
    std::vector<std::shared_ptr<ChannelSocket>> sockets;  // of UDP links, in the same order
    std::vector<UniqueFd> devices;  // [task][link], until the shepherd has them
    bool is_preparing = false;
    std::shared_ptr<ChannelUser> user;  // null: no contexts yet
    bool has_room = false;              // of user
  };

  [[nodiscard]] static std::uint32_t tasks_of(const Network& network) {
    return network.placed.tasks_on_node[network.placed.node_index];
  }

  // Returns the number of sockets per task. It is at least 1: without a device that place stays
  // empty.
  [[nodiscard]] std::size_t links() const { return std::max<std::size_t>(1, config_.links.size()); }

  [[nodiscard]] std::uint32_t places_of(const Network& network) const {
    return tasks_of(network) * static_cast<std::uint32_t>(links());
  }

  Status adopt_device(Network& network, std::uint32_t place, UniqueFd fd);
  bool on_descriptors(Network& network, const wire::PassedDescriptors& message);
  void on_network(Network& network, const wire::ShepherdNetwork& message);
  bool take_kept(Network& network, std::vector<UniqueFd> fds);
  void entrust(Network& network);
  [[nodiscard]] wire::ShepherdNetwork describe(const Network& network) const;
  void on_prepare(Network& network, const wire::NetworkPrepare& message);
  void on_ready(Network& network, wire::NetworkReady&& message);
  asio::awaitable<void> run_prepare(AttemptId attempt);
  asio::awaitable<Status> open_devices(AttemptId attempt);
  asio::awaitable<Status> open_ring(AttemptId attempt, std::uint32_t place);
  Status open_socket(Network& network, std::uint32_t place);
  Result<UniqueFd> open_udp(Network& network, std::uint32_t place, in_addr local);
  void filter_sockets(const Network& user) const;
  Network* find(AttemptId attempt);
  void report_prepared(const Network& network);
  void open_user(Network& network, bool has_room);
  void share_channel(Network& network);
  [[nodiscard]] Result<in_addr> local_address(const NetworkLink& link) const;

  HeadLink& head_;
  LauncherLink& launcher_;
  TaskGroup& tasks_;
  NetworkConfig config_;
  std::string head_host_;
  std::string problem_;
  Opened opened_;
  JobContexts contexts_;
  ChannelSockets channel_sockets_;
  std::map<AttemptId, Network> networks_;
};

}  // namespace score::node
