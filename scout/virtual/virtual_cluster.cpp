#include "scout/virtual/virtual_cluster.hpp"

#include "scout/cluster/cluster_cgroup.hpp"
#include "scout/cluster/reaper.hpp"
#include "scout/session/head_link.hpp"
#include "scout/virtual/config_files.hpp"
#include "scout/virtual/description.hpp"

#include <algorithm>
#include <cerrno>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr Duration kBootLimit = std::chrono::seconds{60};
constexpr std::uint16_t kHeadPort = 9901;  // the same as SCore's

// Returns a random address of 127/8, which other clusters of this host are unlikely to have, so the
// cluster can use a fixed port.
std::string own_loopback_address() {
  const auto id = RequestId::random();
  const auto part = [&](unsigned shift) { return (id.low >> shift) % 254 + 1; };
  return fmt::format("127.{}.{}.{}", part(0), part(8), part(16));
}

// In a new network namespace the loopback interface is down, and the daemons would wait in vain.
Status check_loopback() {
  const UniqueFd probe(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(kHeadPort);
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return {};
  return fail(Errc::Unsupported, "the loopback interface is down; start it: ip link set lo up");
}

// Returns the MTU for frames with this payload, including the headers of PM, UDP and IP.
std::uint32_t links_for(std::uint32_t payload) {
  constexpr std::uint32_t kUsual = 1500, kHeaders = 76;
  return std::max(kUsual, payload + kHeaders);
}

}  // namespace

VirtualCluster::VirtualCluster(VirtualOptions options, std::string programs)
    : OwnCluster(std::move(programs)), options_(std::move(options)) {}

Status VirtualCluster::boot(const std::string& directory) {
  boot_deadline_ = monotonic_now() + kBootLimit;
  layout_.directory = directory;
  layout_.head_address = options_.netns ? NodeNetworks::kHeadAddress : own_loopback_address();
  layout_.head_port = kHeadPort;
  layout_.heads = options_.heads;
  if (options_.netns) {
    auto networks = NodeNetworks::create(options_.nodes, links_for(options_.payload));
    if (!networks) return networks.error();
    networks_ = std::move(*networks);
  } else if (auto checked = check_loopback(); !checked) {
    return checked;
  }
  Status status;
  if (!options_.no_cgroup) status = make_cluster_cgroup(layout_, node_names(options_.nodes));
  if (status) status = write_configuration(layout_, options_);
  if (!status) return status;
  daemons_.emplace(layout_, setup_daemons());
  for (std::uint32_t index = 0; index < options_.heads && status; ++index) {
    status = daemons_->start_head(index);
  }
  for (const auto& node : node_names(options_.nodes)) {
    if (status) status = daemons_->start_node(node);
  }
  return status;
}

DaemonSetup VirtualCluster::setup_daemons() {
  DaemonSetup setup;
  if (options_.is_ethernet()) setup.launcher_options = {"--network-interface", "eth0"};
  if (!networks_) return setup;
  setup.spawn = [this](const std::string& name, const SpawnSpec& spec) {
    const auto start = [&spec] { return spawn(spec); };
    if (is_head(name)) return networks_->inside_head(start);
    const auto names = node_names(options_.nodes);
    const auto node = std::ranges::find(names, node_of(name));
    return networks_->inside_node(static_cast<std::size_t>(node - names.begin()), start);
  };
  return setup;
}

Result<bool> VirtualCluster::is_up() {
  if (monotonic_now() > boot_deadline_) {
    return fail(Errc::Timeout, "the nodes were not up within {}; {}", format_duration(kBootLimit),
                daemons_->last_log_line("head"));
  }
  if (access(layout_.socket().c_str(), F_OK) != 0) return false;
  auto head = HeadLink::connect(layout_.servers());
  if (!head) return false;
  const auto info = head->ask<wire::Info>(wire::GetInfo(), std::chrono::seconds{5});
  is_up_ = info && info->nodes_up() == options_.nodes;
  if (is_up_) page_ = info->dashboard_url();
  return is_up_;
}

Status VirtualCluster::on_child(pid_t pid, int shell_code) {
  const auto name = daemons_ ? daemons_->forget(pid) : std::nullopt;
  if (!name || is_up_) return {};
  return fail(Errc::Closed, "{} ended with {}: {}", *name, shell_code,
              daemons_->last_log_line(*name));
}

std::string VirtualCluster::describe() const {
  return cluster_json(layout_, *daemons_);
}

std::vector<std::string> VirtualCluster::greeting() const {
  return greeting_lines(options_, page_);
}

std::vector<std::string> VirtualCluster::tear_down() {
  if (layout_.cgroup.empty() || clear_cgroup(layout_.cgroup)) return {};
  return {"processes remain in " + layout_.cgroup};
}

}  // namespace score::scout
