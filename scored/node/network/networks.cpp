#include "scored/node/network/networks.hpp"

#include "base/limits.hpp"
#include "base/model/distribution.hpp"
#include "base/os/log.hpp"
#include "pmlib/core/segment.hpp"
#include "proto/frames/parse.hpp"
#include "scored/node/network/device_check.hpp"
#include "scored/privileged/rings/protocol.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <linux/if_packet.h>
#include <numeric>
#include <sys/socket.h>
#include <utility>

namespace score::node {

namespace {

using proto::FrameType;

constexpr std::size_t kAddressBytes = sizeof(pm::PeerAddress);

pm::DeviceKind kind_of(NetworkDevice device) {
  switch (device) {
    case NetworkDevice::Udp:
      return pm::DeviceKind::Udp;
    case NetworkDevice::Ethernet:
      return pm::DeviceKind::Ethernet;
    case NetworkDevice::Ofi:
      return pm::DeviceKind::Ofi;
  }
  return pm::DeviceKind::None;
}

std::vector<std::uint32_t> ranks_of_this_node(const base::PlacedTasks& placed) {
  return ranks_of_node(placed.tasks_on_node, placed.node_index, placed.distribution);
}

std::size_t ranks_of(const base::PlacedTasks& placed) {
  return std::accumulate(placed.tasks_on_node.begin(), placed.tasks_on_node.end(), std::size_t{0});
}

// Returns the position of this node's first task. Addresses are in the order of nodes and their
// tasks, regardless of the tasks' ranks.
std::uint32_t first_task(const base::PlacedTasks& placed) {
  return std::accumulate(placed.tasks_on_node.begin(),
                         placed.tasks_on_node.begin() + placed.node_index, 0U);
}

using DeviceAddress = std::array<char, kAddressBytes>;

void set_address(std::string& addresses, std::uint32_t place, const DeviceAddress& address) {
  addresses.replace(place * kAddressBytes, kAddressBytes, address.data(), kAddressBytes);
}

// Returns the address to which other nodes send frames: an Ethernet address, or IPv4 and port.
Result<DeviceAddress> address_of_device(int device) {
  union {
    sockaddr_storage any{};
    sockaddr_ll ring;
    sockaddr_in ip;
  } bound;

  socklen_t size = sizeof bound;
  if (getsockname(device, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return fail(errno_code(errno), "cannot get the address of a device");
  }
  DeviceAddress address{};
  if (bound.any.ss_family == AF_PACKET && bound.ring.sll_halen == address.size()) {
    std::memcpy(address.data(), bound.ring.sll_addr, address.size());
    return address;
  }
  if (bound.any.ss_family != AF_INET) return fail(Errc::Malformed, "not a socket of a device");
  std::memcpy(address.data(), &bound.ip.sin_addr, 4);
  std::memcpy(address.data() + 4, &bound.ip.sin_port, 2);
  return address;
}

}  // namespace

Networks::Networks(Parts parts, NetworkConfig config, std::string head_host)
    : head_(parts.head),
      launcher_(parts.launcher),
      tasks_(parts.tasks),
      config_(std::move(config)),
      head_host_(std::move(head_host)),
      problem_(missing_device(config_)) {
  if (!problem_.empty()) log_warning("Networks of jobs will be refused", kv("why", problem_));
}

Networks::Network* Networks::find(AttemptId attempt) {
  const auto found = networks_.find(attempt);
  return found == networks_.end() ? nullptr : &found->second;
}

void Networks::add(const base::PlacedTasks& placed, std::shared_ptr<proto::Connection> shepherd) {
  Network& network = networks_[placed.attempt];
  network.placed = placed;
  network.shepherd = std::move(shepherd);
}

void Networks::remove(AttemptId attempt) {
  const auto removed = networks_.extract(attempt);
  if (!removed.empty()) filter_sockets(removed.mapped());
  contexts_.remove(attempt);
}

void Networks::fill_figures(const ChannelCounters& counters, wire::ChannelFigures& out) const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  out.set_handovers(counters.handovers.load(kRelaxed));
  out.set_saved_bursts(counters.saved_bursts.load(kRelaxed));
  out.set_saved_bytes(counters.saved_bytes.load(kRelaxed));
  out.set_restored_bursts(counters.restored_bursts.load(kRelaxed));
  out.set_dropped_full(counters.dropped_full.load(kRelaxed));
  out.set_dropped_strangers(counters.dropped_strangers.load(kRelaxed));
  for (const AttemptId attempt : contexts_.attempts()) {
    for (const UniqueFd& context : *contexts_.of(attempt)) {
      pm::SegmentSummary summary;
      if (pm::read_summary(context.get(), summary) != 0) continue;
      out.set_frames_sent(out.frames_sent() + summary.counters.frames_sent);
      out.set_frames_resent(out.frames_resent() + summary.counters.frames_resent);
    }
  }
}

std::vector<std::uint32_t> Networks::frames_to_nodes(AttemptId attempt) const {
  const auto found = networks_.find(attempt);
  const auto contexts = contexts_.of(attempt);
  if (found == networks_.end() || !contexts) return {};
  const auto& placed = found->second.placed;
  if (placed.tasks_on_node.size() < 2) return {};
  const auto nodes = base::nodes_of_ranks(placed.tasks_on_node, placed.distribution);
  std::vector<std::uint32_t> frames(nodes.size()), sums(placed.tasks_on_node.size());
  for (const UniqueFd& context : *contexts) {
    if (pm::read_frames_to(context.get(), frames) != 0) continue;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) sums[nodes[rank]] += frames[rank];
  }
  return sums;
}

void Networks::open_user(Network& network, bool has_room) {
  const AttemptId attempt = network.placed.attempt;
  network.user = std::make_shared<ChannelUser>(network.key, contexts_.of(attempt), network.sockets);
  network.has_room = has_room;
  if (has_room) network.user->make_room();
  if (opened_) opened_(attempt, network.user);
}

// Makes buffers for saved frames, which the first attempt of a channel needs only when a second one
// arrives. An object that the switcher holds is never changed, so the switcher gets a new
// ChannelUser.
void Networks::share_channel(Network& network) {
  const auto shares = [&](const Network& other) {
    return &other != &network && other.user && !network.sockets.empty() && !other.sockets.empty() &&
           other.sockets.front() == network.sockets.front();
  };
  bool is_shared = false;
  for (auto& [attempt, other] : networks_) {
    if (!shares(other)) continue;
    is_shared = true;
    if (!other.has_room) open_user(other, true);
  }
  open_user(network, is_shared);
}

// ---- Shepherds: these are their users' programs and not trusted --------------------------------

bool Networks::from_shepherd(AttemptId attempt, const proto::InFrame& frame) {
  const auto found = networks_.find(attempt);
  if (found == networks_.end()) return false;
  Network& network = found->second;
  switch (frame.type) {
    case FrameType::NetworkRequest: {
      const auto message = proto::parse<wire::NetworkRequest>(frame);
      if (!message || message->attempt() != attempt.value()) return false;
      network.is_wanted = true;
      head_.send(*message);
      return true;
    }
    case FrameType::ShepherdNetwork: {
      const auto message = proto::parse<wire::ShepherdNetwork>(frame);
      if (!message || message->key() == 0 || message->channel() > 0xffff) return false;
      const std::size_t all = kAddressBytes * links() * ranks_of(network.placed);
      if (!message->addresses().empty() && message->addresses().size() != all) return false;
      on_network(network, *message);
      return true;
    }
    case FrameType::PassedDescriptors: {
      const auto message = proto::parse<wire::PassedDescriptors>(frame);
      return message && on_descriptors(network, *message);
    }
    default:
      return false;
  }
}

// The network was opened or prepared before this daemon started, and the shepherd has kept
// everything.
void Networks::on_network(Network& network, const wire::ShepherdNetwork& message) {
  const bool is_whole = !message.addresses().empty();
  if (network.is_open || (!is_whole && network.key != 0)) return;
  const auto first = first_task(network.placed) * links();
  network.is_wanted = true;
  network.is_open = is_whole;
  network.is_preparing = !is_whole;  // until the sockets have arrived
  network.key = message.key();
  network.channel = static_cast<std::uint16_t>(message.channel());
  network.addresses.assign(places_of(network) * kAddressBytes, '\0');
  if (!is_whole) return;
  network.addresses =
      message.addresses().substr(first * kAddressBytes, places_of(network) * kAddressBytes);
  report_prepared(network);
}

bool Networks::on_descriptors(Network& network, const wire::PassedDescriptors& message) {
  auto fds = network.shepherd->take_descriptors(message.count());
  if (network.key == 0 || fds.empty() || fds.size() != message.count()) return false;
  const AttemptId attempt = network.placed.attempt;
  if (message.what() == wire::PassedDescriptors::SOCKETS) {
    return message.first() != network.kept || take_kept(network, std::move(fds));
  }
  if (!network.is_open) return false;
  auto added = contexts_.add(attempt, message.first(), tasks_of(network), std::move(fds));
  if (!added) {
    log_warning("Refused contexts of an attempt", kv("attempt", attempt), kv("err", added.error()));
    return false;
  }
  if (*added) share_channel(network);
  return true;
}

bool Networks::take_kept(Network& network, std::vector<UniqueFd> fds) {
  if (config_.links.empty() || fds.size() > places_of(network) - network.kept) return true;
  for (UniqueFd& fd : fds) {
    if (!adopt_device(network, network.kept, std::move(fd))) return false;
    ++network.kept;
  }
  if (network.is_open || network.kept < places_of(network)) return true;
  network.is_preparing = false;
  report_prepared(network);
  return true;
}

// Adopts a device from a shepherd. Only UDP sockets are shared and saved.
Status Networks::adopt_device(Network& network, std::uint32_t place, UniqueFd fd) {
  const auto address = address_of_device(fd.get());
  if (!address) return address.error();
  if (config_.links[place % links()].device == NetworkDevice::Udp) {
    auto adopted =
        channel_sockets_.adopt({network.placed.user, network.channel, place}, std::move(fd));
    if (!adopted) return adopted.error();
    set_address(network.addresses, place, (*adopted)->address);
    network.sockets.push_back(*std::move(adopted));
  } else if (!network.is_open) {
    set_address(network.addresses, place, *address);
  }
  return {};
}

// ---- The head -----------------------------------------------------------------------------------

bool Networks::from_head(const proto::InFrame& frame) {
  switch (frame.type) {
    case FrameType::NetworkPrepare: {
      const auto message = proto::parse<wire::NetworkPrepare>(frame);
      if (!message || message->key() == 0 || message->channel() > 0xffff) return false;
      if (auto* network = find(AttemptId(message->attempt()))) on_prepare(*network, *message);
      return true;
    }
    case FrameType::NetworkReady: {
      auto message = proto::parse<wire::NetworkReady>(frame);
      if (!message) return false;
      if (auto* network = find(AttemptId(message->attempt())))
        on_ready(*network, std::move(*message));
      return true;
    }
    case FrameType::NetworkFailed: {
      const auto message = proto::parse<wire::NetworkFailed>(frame);
      if (!message) return false;
      const auto* network = find(AttemptId(message->attempt()));
      if (network != nullptr && !network->is_open) send(*network->shepherd, *message);
      return true;
    }
    default:
      return false;
  }
}

void Networks::on_prepare(Network& network, const wire::NetworkPrepare& message) {
  if (network.is_preparing) return;
  const bool is_kept = network.is_open || network.key == message.key();
  if (network.key != 0 && is_kept) return report_prepared(network);
  network.sockets.clear();  // left by a head that died before all nodes had prepared
  network.devices.clear();
  network.kept = 0;
  network.key = message.key();
  network.channel = static_cast<std::uint16_t>(message.channel());
  network.is_preparing = true;
  network.addresses.assign(places_of(network) * kAddressBytes, '\0');
  tasks_.spawn("prepare a network", run_prepare(network.placed.attempt));
}

asio::awaitable<void> Networks::run_prepare(AttemptId attempt) {
  Network* network = find(attempt);
  if (network == nullptr) co_return;
  Status prepared;
  const bool is_local = network->placed.tasks_on_node.size() == 1 && config_.shmem;
  if (config_.is_off() || (config_.links.empty() && !is_local)) {
    prepared = fail(Errc::Unsupported, "the configuration names no device for this");
  } else if (!is_local && !problem_.empty()) {
    prepared = fail(Errc::Unsupported, "{}", problem_);
  } else if (!is_local) {
    prepared = co_await open_devices(attempt);
  }
  network = find(attempt);
  if (network == nullptr) co_return;
  network->is_preparing = false;
  if (prepared) {
    entrust(*network);
    report_prepared(*network);
    co_return;
  }
  network->key = 0;
  network->sockets.clear();
  network->devices.clear();
  wire::NetworkRefused refused;
  refused.set_attempt(attempt.value());
  refused.set_reason(prepared.error().message());
  head_.send(refused);
}

asio::awaitable<Status> Networks::open_devices(AttemptId attempt) {
  const std::uint32_t places = places_of(*find(attempt));
  for (std::uint32_t place = 0; place < places; ++place) {
    Network* network = find(attempt);
    if (network == nullptr) co_return fail(Errc::Cancelled, "the attempt is over");
    Status opened;
    if (config_.links[place % links()].device == NetworkDevice::Ethernet) {
      opened = co_await open_ring(attempt, place);
    } else {
      opened = open_socket(*network, place);
    }
    if (!opened) co_return opened.error();
  }
  filter_sockets(*find(attempt));
  co_return Status();
}

asio::awaitable<Status> Networks::open_ring(AttemptId attempt, std::uint32_t place) {
  Network* network = find(attempt);
  LauncherLink::RingPlace wanted;
  wanted.key = config_.tags ? 0 : network->key;
  wanted.rank = ranks_of_this_node(network->placed)[place / links()];
  wanted.channel = network->channel;
  auto ring = co_await launcher_.open_ring(attempt, wanted);
  if (!ring) co_return ring.error();
  network = find(attempt);
  if (network == nullptr) co_return fail(Errc::Cancelled, "the attempt is over");
  const auto address = address_of_device(ring->get());
  if (!address) co_return address.error();
  network->devices.push_back(*std::move(ring));
  set_address(network->addresses, place, *address);
  co_return Status();
}

Status Networks::open_socket(Network& network, std::uint32_t place) {
  const NetworkLink& link = config_.links[place % links()];
  const auto local = local_address(link);
  if (!local) return local.error();
  auto opened =
      link.device == NetworkDevice::Udp ? open_udp(network, place, *local) : keep_tcp_port(*local);
  if (!opened) return opened.error();
  const auto address = address_of_device(opened->get());
  if (!address) return address.error();
  network.devices.push_back(*std::move(opened));
  set_address(network.addresses, place, *address);
  return {};
}

// Returns a copy for the shepherd, because attempts use the socket in turn.
Result<UniqueFd> Networks::open_udp(Network& network, std::uint32_t place, in_addr local) {
  auto socket = channel_sockets_.open({network.placed.user, network.channel, place}, local);
  if (!socket) return socket.error();
  auto copy = duplicate((*socket)->fd.get());
  network.sockets.push_back(*std::move(socket));
  return copy;
}

// A name such as "verbs;ofi_rxm" means one provider layered over a second one.
std::string Networks::ofi_providers() const {
  std::string names;
  for (const NetworkLink& link : config_.links) {
    if (link.device != NetworkDevice::Ofi) continue;
    names += (names.empty() ? "" : ",") + link.provider;
  }
  std::ranges::replace(names, ';', ',');
  return names;
}

// Must be called when the attempts that share the sockets of `user` have changed.
void Networks::filter_sockets(const Network& user) const {
  const auto is_udp = [](const NetworkLink& link) { return link.device == NetworkDevice::Udp; };
  const auto per_task = static_cast<std::size_t>(std::ranges::count_if(config_.links, is_udp));
  for (std::size_t i = 0; i < user.sockets.size(); ++i) {
    std::vector<pm::FrameOwner> owners;
    for (const auto& [attempt, other] : networks_) {
      if (other.sockets.size() <= i || other.sockets[i] != user.sockets[i]) continue;
      const std::uint32_t rank = ranks_of_this_node(other.placed)[i / per_task];
      owners.push_back({rank, config_.tags ? 0 : other.key});
    }
    pass_only(*user.sockets[i], user.channel, owners);
  }
}

Result<in_addr> Networks::local_address(const NetworkLink& link) const {
  if (!link.interface.empty()) return address_of_interface(link.interface);
  return address_towards(head_host_);
}

void Networks::report_prepared(const Network& network) {
  wire::NetworkPrepared message;
  message.set_attempt(network.placed.attempt.value());
  message.set_key(network.key);
  message.set_channel(network.channel);
  message.set_addresses(network.addresses);
  message.set_is_open(network.is_open);
  head_.send(message);
}

void Networks::on_ready(Network& network, wire::NetworkReady&& message) {
  if (network.is_open || network.key == 0 || network.is_preparing) return;
  if (message.addresses().size() != kAddressBytes * links() * ranks_of(network.placed)) return;
  network.is_open = true;
  auto whole = describe(network);
  whole.set_addresses(std::move(*message.mutable_addresses()));
  whole.set_payload(message.payload());
  send(*network.shepherd, whole);
}

wire::ShepherdNetwork Networks::describe(const Network& network) const {
  wire::ShepherdNetwork out;
  out.set_attempt(network.placed.attempt.value());
  out.set_key(network.key);
  out.set_channel(network.channel);
  for (std::size_t i = 0; i < config_.links.size(); ++i) {
    const NetworkLink& link = config_.links[i];
    const auto kind = static_cast<std::uint32_t>(kind_of(link.device));
    const bool is_ethernet = link.device == NetworkDevice::Ethernet;
    if (i == 0) {
      if (network.kept != 0) out.set_device(kind);
      out.set_interface(link.interface);
      out.set_provider(link.provider);
    } else {
      auto& more = *out.add_links();
      more.set_device(kind);
      more.set_name(is_ethernet ? link.interface : link.provider);
    }
    out.mutable_weights()->push_back(static_cast<char>(link.weight));
  }
  out.set_shmem(config_.shmem);
  out.set_tags(config_.tags);
  out.set_generation(rings::ring_generation(network.placed.attempt.value()));
  return out;
}

// Passes the sockets to the shepherd before the addresses are announced. Otherwise other nodes
// would use addresses of sockets that are lost with this daemon.
void Networks::entrust(Network& network) {
  const std::size_t devices = network.devices.size();
  if (devices == 0) return;
  network.kept = static_cast<std::uint32_t>(devices);
  send(*network.shepherd, describe(network));
  for (std::size_t first = 0; first < devices; first += kMaxPassedFds) {
    const std::size_t end = std::min(devices, first + kMaxPassedFds);
    std::vector<UniqueFd> part(std::make_move_iterator(network.devices.begin() + first),
                               std::make_move_iterator(network.devices.begin() + end));
    wire::PassedDescriptors passed;
    passed.set_what(wire::PassedDescriptors::SOCKETS);
    passed.set_first(static_cast<std::uint32_t>(first));
    passed.set_count(static_cast<std::uint32_t>(end - first));
    network.shepherd->send_descriptors(FrameType::PassedDescriptors, passed.SerializeAsString(),
                                       std::move(part));
  }
  network.devices.clear();
}

void Networks::resume() {
  for (const auto& [attempt, network] : networks_) {
    if (network.key != 0) {
      if (!network.is_preparing) report_prepared(network);
    } else if (network.is_wanted) {
      wire::NetworkRequest request;
      request.set_attempt(attempt.value());
      head_.send(request);
    }
  }
}

bool Networks::shares_channel(AttemptId attempt) const {
  const auto own = networks_.find(attempt);
  if (own == networks_.end() || own->second.key == 0) return false;
  return std::any_of(networks_.begin(), networks_.end(), [&](const auto& other) {
    return other.first != attempt && other.second.key != 0 &&
           other.second.channel == own->second.channel;
  });
}

}  // namespace score::node
