// Implements opening, ports and waiting; link_send.cpp and link_transfer.cpp have the rest.
#include "pmlib/fi/link/link.hpp"

#include "pmlib/fi/link/own_context.hpp"
#include "pmlib/network/broker.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace score::pm::fi {

namespace {

constexpr std::uint16_t kMaxPorts = 4096;
constexpr std::uint64_t kLingerUs =
    2'000'000;                               // chosen: messages not acknowledged by then are lost
constexpr std::int64_t kBusyWaitUs = 1'000;  // between polls while something cannot be sent

// A rank of a job can open its context only once, so all its endpoints share it.
std::mutex job_mutex;
std::weak_ptr<Link> job_link;
// Keeps the link of an address file. Peers know a rank by one context only, so a process that
// closes its last domain and opens a new one gets the same link.
std::shared_ptr<Link> kept_link;

// Returns the rank that an address file is opened for: the variable of scored, otherwise that of a
// process manager.
const char* rank_from_environment() {
  for (const char* name : {"PM_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return nullptr;
}

bool has_address_file() {
  return std::getenv("PM_ADDRESS_FILE") != nullptr && rank_from_environment() != nullptr;
}

bool is_in_job() {
  return std::getenv("PM_CONTEXT_FD") != nullptr || std::getenv(kBrokerVariable) != nullptr ||
         has_address_file();
}

std::uint32_t own_rank() {
  const char* rank = rank_from_environment();
  return rank != nullptr ? static_cast<std::uint32_t>(std::strtoul(rank, nullptr, 10)) : 0;
}

std::unique_ptr<pm::Endpoint> open_context(int& error, bool& is_of_file) {
  auto endpoint = pm::Endpoint::open_inherited(error);
  if (endpoint || error != ENOENT || !has_address_file()) return endpoint;
  std::string message;
  is_of_file = true;
  return pm::Endpoint::open_file(std::getenv("PM_ADDRESS_FILE"), own_rank(), error, message);
}

void watch(int epoll_fd, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

std::uint64_t Link::now_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

// --- opening and closing -----------------------------------------------------------------------

std::shared_ptr<Link> Link::open(const Name& own, int& error) {
  const std::lock_guard lock(job_mutex);
  if (auto link = job_link.lock()) {
    error = 0;
    link->needs_lock = true;  // there are two users now, whatever the first domain asked for
    return link;
  }
  auto link = open_job(error);
  if (link) job_link = link;
  if (link || error != ENOENT) return link;
  return open_own(own, error);
}

std::shared_ptr<Link> Link::open_job(int& error) {
  bool is_of_file = false;
  auto endpoint = open_context(error, is_of_file);
  const bool shares_host = is_of_file && endpoint && endpoint->ranks_here() > 1;
  auto link = endpoint ? over(std::move(endpoint), error) : nullptr;
  if (link) link->has_near_ranks_ |= shares_host;  // MPI's own shared memory needs no path
  if (is_of_file) kept_link = link;
  return link;
}

void Link::forget_kept() {
  const std::lock_guard lock(job_mutex);
  kept_link.reset();
}

Name Link::expected_name(std::uint32_t ip, std::uint16_t udp_port) {
  const std::lock_guard lock(job_mutex);
  if (const auto link = job_link.lock()) return link->name_of(0);
  Name name;
  if (is_in_job()) {
    name.rank = own_rank();
    return name;
  }
  name.kind = NameKind::Udp;
  name.ip = own_ip(ip);
  name.udp_port = udp_port;
  return name;
}

std::shared_ptr<Link> Link::over(std::unique_ptr<pm::Endpoint> endpoint, int& error) {
  const SegmentHeader& h = endpoint->segment().header();
  Name name;
  name.kind = NameKind::Job;
  name.key = mark_of(h.key, h.generation, h.channel);
  name.rank = h.rank;
  std::shared_ptr<Link> link(new Link(std::move(endpoint), name, nullptr));
  link->has_near_ranks_ = link->find_near_ranks();
  error = link->make_wait_fd();
  return error == 0 ? link : nullptr;
}

bool Link::find_near_ranks() const {
  for (std::uint32_t i = 0; i < pm_->size(); ++i) {
    if (i != pm_->rank() && pm_->segment().peer(i).route != Route::Packet) return true;
  }
  return false;
}

std::shared_ptr<Link> Link::open_own(const Name& own, int& error) {
  OwnContext context = open_own_context(own.ip, own.udp_port, error);
  if (!context.endpoint) return nullptr;
  std::shared_ptr<Link> link(
      new Link(std::move(context.endpoint), context.name, context.directory));
  context.directory->set_listener(*link);
  error = link->make_wait_fd();
  return error == 0 ? link : nullptr;
}

Link::Link(std::unique_ptr<pm::Endpoint> pm, const Name& name, Directory* directory)
    : directory_(directory), pm_(std::move(pm)), name_(name), peers_(pm_->size()) {
  choose_polls();
  pm_->set_consumer(this);
}

int Link::make_wait_fd() {
  wait_fd_ = epoll_create1(EPOLL_CLOEXEC);
  timer_fd_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wait_fd_ < 0 || timer_fd_ < 0 || wake_fd_ < 0) return errno;
  watch(wait_fd_, pm_->poll_fd());
  watch(wait_fd_, timer_fd_);
  watch(wait_fd_, wake_fd_);
  return 0;
}

Link::~Link() {
  const std::uint64_t end = now_us() + kLingerUs;
  while (!is_drained() && now_us() < end) {
    if (!progress()) pm_->wait(kBusyWaitUs);
  }
  pm_->set_consumer(nullptr);
  if (holds_) pm_->release(held_);  // the next owner of the context finds all buffers
  for (const std::uint32_t id : requests_.ids()) delete requests_.take(id);
  for (Peer& peer : peers_) {
    for (LinkRequest* request : peer.queue) {
      if (request->id == 0) delete request;
    }
  }
  for (const int fd : {wait_fd_, timer_fd_, wake_fd_}) {
    if (fd >= 0) close(fd);
  }
}

bool Link::is_drained() const {
  const Segment& segment = pm_->segment();
  if (!waiting_peers_.empty() || !outbounds_.empty() || !waiting_outbounds_.empty()) return false;
  if (segment.header().free_descriptors != segment.geometry().descriptors) return false;
  for (std::uint32_t i = 0; i < segment.geometry().pool_buffers; ++i) {
    if (segment.pool_used(i).load(std::memory_order_relaxed) != 0) return false;
  }
  return true;
}

// --- peers that come one by one ----------------------------------------------------------------

void Link::on_known(std::uint32_t index, std::uint64_t key, std::uint32_t own_index) {
  pm_->set_alias(index, {key, own_index});
}

void Link::on_address(std::uint32_t index, const PeerAddress& address) {
  pm_->segment().peer(index).address = address;
}

// --- ports and names ---------------------------------------------------------------------------

int Link::add_port(Port& port, std::uint16_t& number) {
  const auto free = std::find(ports_.begin(), ports_.end(), nullptr);
  if (free == ports_.end() && ports_.size() >= kMaxPorts) return ENOSPC;
  number = static_cast<std::uint16_t>(free - ports_.begin());
  if (free == ports_.end()) {
    ports_.push_back(&port);
  } else {
    *free = &port;
  }
  return 0;
}

void Link::remove_port(std::uint16_t number) {
  ports_[number] = nullptr;
  for (Peer& peer : peers_) {
    if (peer.inflow != nullptr && peer.inflow_port == number) peer.inflow = nullptr;
  }
}

Name Link::name_of(std::uint16_t port) const {
  Name name = name_;
  name.port = port;
  return name;
}

Name Link::name_of_peer(PortName port) const {
  Name name = directory_ != nullptr ? directory_->name_of(port.peer) : name_;
  name.port = port.port;
  if (directory_ == nullptr) name.rank = port.peer;
  return name;
}

int Link::resolve(const Name& name, PortName& port) {
  port.port = name.port;
  if (name.kind != name_.kind || !name.is_whole()) return EINVAL;
  if (directory_ != nullptr) {
    if (name.payload != name_.payload) return EINVAL;  // its frames do not fit
    port.peer = directory_->find_or_add(name);
    return port.peer != 0 || directory_->is_own(name) ? 0 : ENOSPC;
  }
  port.peer = name.rank;
  return name.key == name_.key && name.rank < pm_->size() ? 0 : EINVAL;
}

// --- waiting -----------------------------------------------------------------------------------

bool Link::prepare_to_wait() {
  if (progress()) return false;
  std::int64_t sleep_us = -1;
  if (pm_->before_select(sleep_us) != 0) return false;
  is_armed_ = true;
  const bool is_impatient = !waiting_peers_.empty() || !outbounds_.empty() ||
                            (directory_ != nullptr && directory_->has_unready());
  if (is_impatient && (sleep_us < 0 || sleep_us > kBusyWaitUs)) sleep_us = kBusyWaitUs;
  itimerspec time{};
  if (sleep_us >= 0) {
    time.it_value.tv_sec = sleep_us / 1'000'000;
    time.it_value.tv_nsec = sleep_us % 1'000'000 * 1000 + 1;  // 0 would disarm it
  }
  timerfd_settime(timer_fd_, 0, &time, nullptr);
  return true;
}

void Link::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_fd_, &one, sizeof one);
}

void Link::disarm() {
  is_armed_ = false;
  pm_->after_select();
  std::uint64_t drained = 0;
  [[maybe_unused]] ssize_t n = read(timer_fd_, &drained, sizeof drained);
  if (has_sleepers()) return wake();  // the sleeper has to arm again
  n = read(wake_fd_, &drained, sizeof drained);
}

}  // namespace score::pm::fi
