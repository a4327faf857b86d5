#include "scored/job/shepherd/network_hub.hpp"

#include "base/errc.hpp"
#include "base/limits.hpp"
#include "pmlib/network/network.hpp"
#include "scored/job/tasks/silent_socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace score::shepherd {

namespace {

constexpr base::Duration kAnswerAgain = std::chrono::milliseconds{5};
constexpr std::size_t kAddressBytes = sizeof(pm::PeerAddress);
static_assert(kAddressBytes == 6);
static_assert(pm::kBrokerFds <= base::kMaxPassedFds);

pm::DeviceKind device_of(std::uint32_t number) {
  switch (number) {
    case static_cast<std::uint32_t>(pm::DeviceKind::Udp):
      return pm::DeviceKind::Udp;
    case static_cast<std::uint32_t>(pm::DeviceKind::Ethernet):
      return pm::DeviceKind::Ethernet;
    case static_cast<std::uint32_t>(pm::DeviceKind::Ofi):
      return pm::DeviceKind::Ofi;
    default:
      return pm::DeviceKind::None;
  }
}

template <std::size_t N>
void copy_name(const std::string& from, std::array<char, N>& to) {
  std::copy_n(from.begin(), std::min(from.size(), N - 1), to.begin());
}

// Copies the description of a context's device and links.
void describe_links(const wire::ShepherdNetwork& from, pm::JobNetwork& to) {
  to.device.kind = device_of(from.device());
  copy_name(from.interface(), to.device.interface);
  copy_name(from.provider(), to.device.provider);
  if (to.device.kind == pm::DeviceKind::None) return;
  for (const auto& link : from.links()) {
    copy_name(link.name(), to.links.emplace_back(device_of(link.device())).name);
  }
  const auto weights = std::min(from.weights().size(), to.weights.size());
  std::copy_n(from.weights().begin(), weights, to.weights.begin());
}

}  // namespace

NetworkHub::NetworkHub(EventLoop& loop, Job job, Handlers handlers)
    : loop_(loop), job_(std::move(job)), handlers_(std::move(handlers)) {
  const auto& counts = job_.tasks_on_node;
  size_ = std::accumulate(counts.begin(), counts.end(), 0U);
  ranks_ = base::ranks_of_node(counts, job_.node_index, job_.distribution);
  connections_.resize(local_tasks());
}

NetworkHub::~NetworkHub() {
  for (std::uint32_t task = 0; task < connections_.size(); ++task) close(task);
}

// ---- tasks

base::Result<base::UniqueFd> NetworkHub::connect(std::uint32_t task) {
  auto pair = base::make_socket_pair(SOCK_SEQPACKET);
  if (!pair) return pair.error();
  if (auto set = base::set_nonblocking(pair->first.get(), true); !set) return set.error();
  auto watched =
      loop_.add(pair->first.get(), EPOLLIN, [this, task](std::uint32_t) { on_request(task); });
  if (!watched) return watched.error();
  connections_[task].socket = std::move(pair->first);
  return std::move(pair->second);
}

void NetworkHub::on_request(std::uint32_t task) {
  Connection& connection = connections_[task];
  pm::BrokerRequest request;
  const ssize_t got = recv(connection.socket.get(), &request, sizeof request, MSG_TRUNC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got != sizeof request || request.magic != pm::kBrokerMagic) return close(task);
  has_served_ = true;
  connection.is_waiting = true;
  connection.answered = 0;
  if (failure_ || !contexts_.empty()) return answer(task);
  if (!std::exchange(is_wanted_, true)) handlers_.wanted();
}

void NetworkHub::answer(std::uint32_t task) {
  if (!connections_[task].socket || !connections_[task].is_waiting) return;
  if (failure_) return answer_error(task);
  while (connections_[task].is_waiting && answer_part(task)) continue;
}

void NetworkHub::answer_error(std::uint32_t task) {
  connections_[task].is_waiting = false;
  handlers_.note(task, "no PM network: " + *failure_);
  const pm::BrokerReply reply{.error = ENETDOWN};
  send(connections_[task].socket.get(), &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Sends one packet. Returns false if it cannot be sent now, or never.
bool NetworkHub::answer_part(std::uint32_t task) {
  Connection& connection = connections_[task];
  const std::size_t devices = sockets_.empty() ? 0 : links();
  const pm::BrokerReply reply{.contexts = static_cast<std::uint32_t>(contexts_.size()),
                              .own = task,
                              .devices = static_cast<std::uint32_t>(devices)};
  const std::size_t all = contexts_.size() + devices;
  const std::size_t end = std::min(all, connection.answered + pm::kBrokerFds);
  std::vector<int> fds;
  for (std::size_t i = connection.answered; i < end; ++i) {
    const bool is_context = i < contexts_.size();
    fds.push_back(is_context ? contexts_[i].get()
                             : sockets_[task * devices + i - contexts_.size()].get());
  }
  const auto sent =
      base::send_with_fds(connection.socket.get(), std::as_bytes(std::span(&reply, 1)), fds);
  if (sent) {
    connection.answered = end;
    connection.is_waiting = end < all;
    return true;
  }
  // Descriptors in flight count against the user's limit.
  if (sent.error().is(std::errc::resource_unavailable_try_again) ||
      sent.error().code() == std::error_code(ETOOMANYREFS, std::generic_category())) {
    loop_.after(kAnswerAgain, [this, task] { answer(task); });
    return false;
  }
  close(task);
  return false;
}

void NetworkHub::answer_all() {
  for (std::uint32_t task = 0; task < connections_.size(); ++task) answer(task);
}

void NetworkHub::close(std::uint32_t task) {
  Connection& connection = connections_[task];
  if (!connection.socket) return;
  loop_.remove(connection.socket.get());
  connection.socket.reset();
  connection.is_waiting = false;
}

// ---- the node daemon

void NetworkHub::prepare(wire::ShepherdNetwork network) {
  if (!contexts_.empty() || failure_) return;
  const bool is_first = network.addresses().empty();
  const std::size_t links = static_cast<std::size_t>(network.links_size()) + 1;
  const bool is_whole = network.addresses().size() == kAddressBytes * size_ * links;
  if (!(is_first || is_whole) || network.key() == 0 || links > pm::kMaxLinks) {
    return handlers_.broken("invalid network addresses from the node daemon");
  }
  network_ = std::move(network);
  if (is_first) return sockets_.clear();
  if (device_of(network_->device()) == pm::DeviceKind::None || has_all_sockets()) complete();
}

void NetworkHub::take_sockets(const wire::PassedDescriptors& message,
                              std::vector<base::UniqueFd> sockets) {
  if (!network_ || !contexts_.empty() || message.first() != sockets_.size()) return;
  if (sockets.size() != message.count() ||
      sockets.size() > local_tasks() * links() - sockets_.size()) {
    return handlers_.broken("the sockets of the network did not arrive");
  }
  std::move(sockets.begin(), sockets.end(), std::back_inserter(sockets_));
  if (has_all_sockets() && !network_->addresses().empty()) complete();
}

void NetworkHub::fail(const std::string& reason) {
  if (failure_ || !contexts_.empty()) return;
  failure_ = reason;
  if (const auto ready = std::exchange(ready_, nullptr)) {
    return ready(base::fail(base::Errc::Unsupported, "no PM network: {}", reason));
  }
  answer_all();
}

void NetworkHub::complete() {
  if (const auto ready = std::exchange(ready_, nullptr)) return ready({});
  create_contexts();
}

void NetworkHub::create_contexts() {
  const auto made = make_contexts(std::vector<base::UniqueFd>(local_tasks()));
  if (!made) handlers_.broken("cannot create contexts: " + made.error().message());
}

// restored: [task]; empty: the context has to be made.
base::Status NetworkHub::make_contexts(std::vector<base::UniqueFd> restored) {
  for (std::uint32_t task = 0; task < local_tasks(); ++task) {
    const std::uint32_t rank = ranks_[task];
    const auto context = create_context(rank);
    if (!context) return base::fail(base::errno_code(errno), "context of rank {}", rank);
    if (!restored[task]) {
      auto fd = base::duplicate(context->fd());
      if (!fd) return fd.error();
      restored[task] = std::move(*fd);
      continue;
    }
    auto copy = base::duplicate(restored[task].get());
    if (!copy) return copy.error();
    int error = 0;
    const auto own = pm::MappedSegment::attach(copy->release(), error);
    if (own) error = pm::move_context(own->segment(), context->segment());
    if (error == EINVAL || error == EMSGSIZE) {
      return base::fail(base::Errc::Unsupported, "the saved tasks used another kind of network");
    }
    if (error != 0) return base::fail(base::errno_code(error), "context of rank {}", rank);
  }
  contexts_ = std::move(restored);
  show(wire::PassedDescriptors::CONTEXTS, contexts_.size(),
       [this](std::size_t i) { return contexts_[i].get(); });
  answer_all();
  return {};
}

// ---- checkpoints

bool NetworkHub::is_quiet() const {
  const auto waits = [](const Connection& one) {
    return one.socket && (one.is_waiting || !is_silent(one.socket.get()));
  };
  const bool is_opening = is_wanted_ && contexts_.empty() && !failure_;
  return !is_opening && std::ranges::none_of(connections_, waits);
}

std::string NetworkHub::why_not_saved() const {
  if (!network_ || contexts_.empty()) return {};
  const auto is_other = [](std::uint32_t device) {
    const auto kind = device_of(device);
    return kind != pm::DeviceKind::None && kind != pm::DeviceKind::Udp;
  };
  const auto& links = network_->links();
  const bool has_other =
      std::ranges::any_of(links, [&](const auto& link) { return is_other(link.device()); });
  if (!is_other(network_->device()) && !has_other) return {};
  return "its network is not udp or shared memory, which alone can be saved";
}

std::optional<NetworkHub::Saved> NetworkHub::saved() const {
  if (!network_ || contexts_.empty()) return std::nullopt;
  Saved saved;
  saved.key = network_->key();
  for (const auto& socket : sockets_) {
    struct stat info {};

    fstat(socket.get(), &info);
    saved.sockets.push_back(info.st_ino);
  }
  return saved;
}

void NetworkHub::open_again(Ready ready) {
  has_served_ = true;
  ready_ = std::move(ready);
  if (!std::exchange(is_wanted_, true)) handlers_.wanted();
}

base::Status NetworkHub::take_contexts(std::vector<base::UniqueFd> found) {
  std::vector<base::UniqueFd> by_task(local_tasks());
  for (base::UniqueFd& fd : found) {
    pm::SegmentSummary summary;
    if (pm::read_summary(fd.get(), summary) != 0) continue;
    const auto at = std::ranges::find(ranks_, summary.rank);
    if (at != ranks_.end()) by_task[static_cast<std::size_t>(at - ranks_.begin())] = std::move(fd);
  }
  return make_contexts(std::move(by_task));
}

std::unique_ptr<pm::MappedSegment> NetworkHub::create_context(std::uint32_t rank) {
  pm::JobNetwork network;
  network.key = network_->key();
  network.channel = static_cast<std::uint16_t>(network_->channel());
  network.auth = network_->tags() ? pm::FrameAuth::Tag : pm::FrameAuth::Key;
  describe_links(*network_, network);
  if (network_->generation() != 0) network.generation = network_->generation();
  if (network_->payload() != 0) network.payload_bytes = network_->payload();
  const auto nodes = base::nodes_of_ranks(job_.tasks_on_node, job_.distribution);
  const std::vector<std::string> unknown(network.links.size(), "-");
  for (const std::uint32_t node : nodes) {
    network.ranks.push_back({std::to_string(node), "-", unknown});
  }
  int error = 0;
  auto context = pm::create_context(network, rank, network_->shmem(), "", error);
  errno = error;
  if (!context) return nullptr;
  // Addresses are ordered by node and then by task.
  const auto& counts = job_.tasks_on_node;
  std::vector<std::uint32_t> next(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), next.begin(), 0U);
  for (std::uint32_t i = 0; i < size_; ++i) {
    const std::size_t place = next[nodes[i]]++;
    const char* of_rank = network_->addresses().data() + place * links() * kAddressBytes;
    for (std::size_t link = 0; link <= network.links.size(); ++link) {
      std::memcpy(context->segment().link_address(link, i).bytes.data(),
                  of_rank + link * kAddressBytes, kAddressBytes);
    }
  }
  return context;
}

void NetworkHub::show(wire::PassedDescriptors::What what, std::size_t count,
                      const std::function<int(std::size_t)>& descriptor) {
  for (std::size_t first = 0; first < count; first += base::kMaxPassedFds) {
    std::vector<base::UniqueFd> copies;
    for (std::size_t i = first; i < std::min(count, first + base::kMaxPassedFds); ++i) {
      if (auto copy = base::duplicate(descriptor(i))) copies.push_back(std::move(*copy));
    }
    wire::PassedDescriptors message;
    message.set_what(what);
    message.set_first(static_cast<std::uint32_t>(first));
    message.set_count(static_cast<std::uint32_t>(copies.size()));
    handlers_.pass(message, std::move(copies));
  }
}

void NetworkHub::show_sockets() {
  show(wire::PassedDescriptors::SOCKETS, sockets_.size(),
       [this](std::size_t i) { return sockets_[i].get(); });
}

void NetworkHub::resume() {
  if (contexts_.empty()) {
    if (failure_) return;
    if (network_ && has_all_sockets()) {
      handlers_.report(*network_);
      show_sockets();
    }
    return is_wanted_ ? handlers_.wanted() : void();
  }
  handlers_.report(*network_);
  show_sockets();
  show(wire::PassedDescriptors::CONTEXTS, contexts_.size(),
       [this](std::size_t i) { return contexts_[i].get(); });
}

}  // namespace score::shepherd
