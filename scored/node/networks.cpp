#include "scored/node/networks.hpp"

#include "base/limits.hpp"
#include "base/log.hpp"
#include "pmlib/segment.hpp"
#include "proto/parse.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace score::node {

namespace {

using proto::FrameType;

constexpr std::size_t kAddressBytes = sizeof(pm::PeerAddress);

pm::DeviceKind kind_of(NetworkDevice device) {
  switch (device) {
    case NetworkDevice::None:
      return pm::DeviceKind::None;
    case NetworkDevice::Udp:
      return pm::DeviceKind::Udp;
    case NetworkDevice::Ethernet:
      return pm::DeviceKind::Ethernet;
  }
  return pm::DeviceKind::None;
}

std::size_t ranks_of(const base::PlacedTasks& placed) {
  return std::accumulate(placed.tasks_on_node.begin(), placed.tasks_on_node.end(), std::size_t{0});
}

}  // namespace

Networks::Networks(HeadLink& head, NetworkConfig config, std::string head_host)
    : head_(head), config_(std::move(config)), head_host_(std::move(head_host)) {}

void Networks::add(const base::PlacedTasks& placed, std::shared_ptr<proto::Connection> shepherd) {
  Network& network = networks_[placed.attempt];
  network.placed = placed;
  network.shepherd = std::move(shepherd);
}

void Networks::remove(AttemptId attempt) {
  networks_.erase(attempt);
  contexts_.remove(attempt);
}

const std::vector<std::shared_ptr<ChannelSocket>>& Networks::sockets(AttemptId attempt) const {
  static const std::vector<std::shared_ptr<ChannelSocket>> kNone;
  const auto found = networks_.find(attempt);
  return found == networks_.end() ? kNone : found->second.sockets;
}

std::uint64_t Networks::key(AttemptId attempt) const {
  const auto found = networks_.find(attempt);
  return found == networks_.end() ? 0 : found->second.key;
}

// ---- shepherds: their users' programs, not to be trusted ---------------------------------------

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
      if (message->addresses().size() != kAddressBytes * ranks_of(network.placed)) return false;
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

// It was opened before this daemon started: the shepherd has kept everything.
void Networks::on_network(Network& network, const wire::ShepherdNetwork& message) {
  if (network.is_open) return;
  const auto& placed = network.placed;
  const auto first = std::accumulate(placed.tasks_on_node.begin(),
                                     placed.tasks_on_node.begin() + placed.node_index, 0U);
  network.is_wanted = true;
  network.is_open = true;
  network.key = message.key();
  network.channel = static_cast<std::uint16_t>(message.channel());
  network.addresses =
      message.addresses().substr(first * kAddressBytes, tasks_of(network) * kAddressBytes);
  say_prepared(network);
}

bool Networks::on_descriptors(Network& network, const wire::PassedDescriptors& message) {
  auto fds = network.shepherd->take_descriptors(message.count());
  if (!network.is_open || fds.empty() || fds.size() != message.count()) return false;
  const AttemptId attempt = network.placed.attempt;
  if (message.what() == wire::PassedDescriptors::SOCKETS) {
    return message.first() != network.sockets.size() || take_sockets(network, std::move(fds));
  }
  auto added = contexts_.add(attempt, message.first(), tasks_of(network), std::move(fds));
  if (!added) {
    log_warning("refuse contexts", kv("attempt", attempt), kv("err", added.error()));
    return false;
  }
  if (*added && opened_) opened_(attempt);
  return true;
}

bool Networks::take_sockets(Network& network, std::vector<UniqueFd> fds) {
  if (network.sockets.size() + fds.size() > tasks_of(network)) return true;
  for (UniqueFd& fd : fds) {
    const auto task = static_cast<std::uint32_t>(network.sockets.size());
    auto adopted =
        channel_sockets_.adopt({network.placed.user, network.channel, task}, std::move(fd));
    if (!adopted) return false;
    network.sockets.push_back(*std::move(adopted));
  }
  return true;
}

// ---- the head -----------------------------------------------------------------------------------

bool Networks::from_head(const proto::InFrame& frame) {
  const auto find = [this](std::uint64_t attempt) -> Network* {
    const auto found = networks_.find(AttemptId(attempt));
    return found == networks_.end() ? nullptr : &found->second;
  };
  switch (frame.type) {
    case FrameType::NetworkPrepare: {
      const auto message = proto::parse<wire::NetworkPrepare>(frame);
      if (!message || message->key() == 0 || message->channel() > 0xffff) return false;
      if (auto* network = find(message->attempt())) on_prepare(*network, *message);
      return true;
    }
    case FrameType::NetworkReady: {
      auto message = proto::parse<wire::NetworkReady>(frame);
      if (!message) return false;
      if (auto* network = find(message->attempt())) on_ready(*network, std::move(*message));
      return true;
    }
    case FrameType::NetworkFailed: {
      const auto message = proto::parse<wire::NetworkFailed>(frame);
      if (!message) return false;
      const auto* network = find(message->attempt());
      if (network != nullptr && !network->is_open) send(*network->shepherd, *message);
      return true;
    }
    default:
      return false;
  }
}

void Networks::on_prepare(Network& network, const wire::NetworkPrepare& message) {
  if (network.key != 0) return say_prepared(network);  // what is in use stays
  network.key = message.key();
  network.channel = static_cast<std::uint16_t>(message.channel());
  if (const auto prepared = prepare(network); !prepared) {
    network.key = 0;
    network.sockets.clear();
    wire::NetworkRefused refused;
    refused.set_attempt(message.attempt());
    refused.set_reason(prepared.error().message());
    head_.send(refused);
    return;
  }
  say_prepared(network);
}

Status Networks::prepare(Network& network) {
  const std::uint32_t tasks = tasks_of(network);
  network.addresses.assign(tasks * kAddressBytes, '\0');
  if (config_.is_off()) return fail(Errc::Unsupported, "the configuration names no device");
  if (network.placed.tasks_on_node.size() == 1 && config_.shmem) return {};
  if (config_.device == NetworkDevice::None) {
    return fail(Errc::Unsupported, "the configuration names no device between nodes");
  }
  if (config_.device != NetworkDevice::Udp) {
    return fail(Errc::Unsupported, "this node cannot open Ethernet rings");
  }
  const auto local = local_address();
  if (!local) return local.error();
  for (std::uint32_t task = 0; task < tasks; ++task) {
    auto socket = channel_sockets_.open({network.placed.user, network.channel, task}, *local);
    if (!socket) return socket.error();
    std::copy((*socket)->address.begin(), (*socket)->address.end(),
              network.addresses.begin() + static_cast<std::ptrdiff_t>(task * kAddressBytes));
    network.sockets.push_back(*std::move(socket));
  }
  return {};
}

Result<in_addr> Networks::local_address() const {
  if (!config_.interface.empty()) return address_of_interface(config_.interface);
  return address_towards(head_host_);
}

void Networks::say_prepared(const Network& network) {
  wire::NetworkPrepared message;
  message.set_attempt(network.placed.attempt.value());
  message.set_key(network.key);
  message.set_channel(network.channel);
  message.set_addresses(network.addresses);
  message.set_is_open(network.is_open);
  head_.send(message);
}

void Networks::on_ready(Network& network, wire::NetworkReady&& message) {
  if (network.is_open || network.key == 0) return;
  if (message.addresses().size() != kAddressBytes * ranks_of(network.placed)) return;
  network.is_open = true;
  wire::ShepherdNetwork prepared;
  prepared.set_attempt(message.attempt());
  prepared.set_key(network.key);
  prepared.set_channel(network.channel);
  const auto kind = network.sockets.empty() ? pm::DeviceKind::None : kind_of(config_.device);
  prepared.set_device(static_cast<std::uint32_t>(kind));
  prepared.set_interface(config_.interface);
  prepared.set_shmem(config_.shmem);
  prepared.set_tags(config_.tags);
  prepared.set_addresses(std::move(*message.mutable_addresses()));
  send(*network.shepherd, prepared);
  for (std::size_t first = 0; first < network.sockets.size(); first += kMaxPassedFds) {
    std::vector<UniqueFd> copies;
    const std::size_t end = std::min(network.sockets.size(), first + kMaxPassedFds);
    for (std::size_t i = first; i < end; ++i) {
      if (auto copy = duplicate(network.sockets[i]->fd.get())) copies.push_back(*std::move(copy));
    }
    wire::PassedDescriptors passed;
    passed.set_what(wire::PassedDescriptors::SOCKETS);
    passed.set_first(static_cast<std::uint32_t>(first));
    passed.set_count(static_cast<std::uint32_t>(end - first));
    network.shepherd->send_descriptors(FrameType::PassedDescriptors, passed.SerializeAsString(),
                                       std::move(copies));
  }
}

void Networks::resume() {
  for (const auto& [attempt, network] : networks_) {
    if (network.key != 0) {
      say_prepared(network);
    } else if (network.is_wanted) {
      wire::NetworkRequest request;
      request.set_attempt(attempt.value());
      head_.send(request);
    }
  }
}

}  // namespace score::node
