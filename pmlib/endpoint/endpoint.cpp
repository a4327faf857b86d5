// This file implements waiting, among other things. A rank that waits polls for a while, because an
// answer often comes within microseconds. Then it sleeps in poll on the packet device, the wake
// socket that peers of this node write to when `sleeping` is set, and the pidfds of those peers.
// The rank sets `sleeping` before it checks the inbox for the last time, and peers read it after
// they have filled an entry, both with full barriers. So at least one of the two sees the other's
// write.
#include "pmlib/endpoint/endpoint.hpp"

#include "pmlib/devices/open_device.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <utility>

namespace score::pm {

namespace {

constexpr unsigned kDeviceEvery = 8;   // polls of shared memory per poll of the device
constexpr unsigned kDeadEvery = 64;    // turns per reading of the clock
constexpr unsigned kEmptyEvery = 256;  // empty receives per reading of the clock
constexpr unsigned kYieldEvery = 16;   // polls in vain after the first ones
constexpr std::uint64_t kDeathCheckUs = 20'000;
constexpr std::int32_t kSpinUs = 50;
// One sleep of a rest costs some 40 us of processor time on a virtual machine.
constexpr std::uint32_t kRestUs = 20'000;
constexpr std::uint32_t kRestPerRankUs = 5'000;
constexpr std::uint32_t kLongestRestUs = 200'000;
constexpr std::int64_t kRoomCheckUs = 1000;  // a free buffer is announced by no event

std::uint32_t usable_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::uint32_t>(CPU_COUNT(&set));
}

// The port of a network address is ignored.
std::uint32_t count_ranks_here(const Segment& segment) {
  const SegmentHeader& h = segment.header();
  const PeerAddress& own = segment.peer(h.rank).address;
  const bool is_ethernet = h.device.kind == DeviceKind::Ethernet;
  const auto host_bytes = is_ethernet ? own.bytes.end() : own.bytes.begin() + 4;
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < segment.geometry().size; ++i) {
    const PeerState& peer = segment.peer(i);
    const bool is_here = peer.route != Route::Packet ||
                         std::equal(own.bytes.begin(), host_bytes, peer.address.bytes.begin());
    count += is_here ? 1 : 0;
  }
  return count;
}

}  // namespace

std::int64_t poll_us_from_environment() {
  const char* text = std::getenv("PM_POLL_US");
  if (text == nullptr || *text == '\0') return kPollUs;
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  return *end == '\0' ? value : kPollUs;
}

std::uint64_t thread_used_us() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(used.tv_nsec) / 1000;
}

std::uint64_t thread_switches() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return static_cast<std::uint64_t>(used.ru_nvcsw + used.ru_nivcsw);
}

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void sleep_until_event(std::span<pollfd> news, std::int64_t timeout_us) {
  const timespec time{timeout_us / 1'000'000, timeout_us % 1'000'000 * 1000};
  for (pollfd& one : news) one.revents = 0;
  // The call is not epoll_wait, which ends when the process is frozen and thawed; poll continues by
  // itself.
  ppoll(news.data(), news.size(), timeout_us < 0 ? nullptr : &time, nullptr);
}

// --- opening and closing -----------------------------------------------------------------------

std::unique_ptr<Endpoint> Endpoint::make(std::unique_ptr<MappedSegment> context,
                                         std::unique_ptr<PacketDevice> device,
                                         Shmem::OpenPeer open_peer, const EndpointOptions& options,
                                         int& error) {
  std::unique_ptr<Endpoint> endpoint(
      new Endpoint(std::move(context), std::move(device), std::move(open_peer), options));
  error = endpoint->start();
  if (error != 0) endpoint.reset();
  return endpoint;
}

Endpoint::Endpoint(std::unique_ptr<MappedSegment> context, std::unique_ptr<PacketDevice> device,
                   Shmem::OpenPeer open_peer, const EndpointOptions& options)
    : context_(std::move(context)),
      segment_(context_->segment()),
      operations_(segment_),
      device_(std::move(device)),
      open_peer_(std::move(open_peer)),
      options_(options),
      clock_(segment_),
      episode_(poll_us_from_environment(), 0) {}

int Endpoint::start() {
  if (needs_device(segment_) && !device_) return ENODEV;
  wake_fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  if (wake_fd_ < 0 || epoll_fd_ < 0) return errno;
  // The kernel chooses a free abstract name if only the family is bound.
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  socklen_t length = sizeof name;
  if (bind(wake_fd_, reinterpret_cast<sockaddr*>(&name), sizeof(sa_family_t)) != 0 ||
      getsockname(wake_fd_, reinterpret_cast<sockaddr*>(&name), &length) != 0) {
    return errno;
  }
  SegmentHeader& h = segment_.header();
  h.wake_name = {};
  std::memcpy(h.wake_name.data(), name.sun_path,
              std::min<std::size_t>(length - sizeof(sa_family_t), h.wake_name.size() - 1));
  watch(wake_fd_);
  std::uint32_t near = 0;
  for (std::uint32_t i = 0; i < size(); ++i)
    near += segment_.peer(i).route != Route::Packet ? 1 : 0;
  if (near > 1) {
    near_turns_ = kDeviceEvery;
    // Peers must be able to copy into and out of this process's memory; they are the same user.
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  }
  ranks_here_ = count_ranks_here(segment_);
  if (options_.spin_us < 0) options_.spin_us = ranks_here_ <= usable_processors() ? kSpinUs : 0;
  longest_rest_us_ = std::clamp(ranks_here_ * kRestPerRankUs, kRestUs, kLongestRestUs);
  episode_.set_limits(poll_us_from_environment(), longest_rest_us_);
  build();
  h.closed.store(0, std::memory_order_relaxed);
  h.owner_pid.store(static_cast<std::uint32_t>(getpid()), std::memory_order_release);
  return 0;
}

// Makes the objects over the segment, and makes them again after a restore.
void Endpoint::build() {
  const char* forbidden = std::getenv("PM_NO_CROSS_MEMORY");
  const bool may_cross = options_.may_cross && (forbidden == nullptr || *forbidden == '\0');
  shmem_ = std::make_unique<Shmem>(segment_, open_peer_, wake_fd_, may_cross);
  regions_ = std::make_unique<Regions>(segment_);
  if (device_) {
    channel_ = std::make_unique<Channel>(segment_, *device_, clock_, options_.channel);
    channel_->set_consumer(taker_);
  }
  count_dead();
}

void Endpoint::watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event);
}

// A watched socket costs the kernel a fifth of a microsecond per frame, which is useless to a
// polling rank. So the device is watched only while this rank may sleep.
void Endpoint::watch_device(bool on) {
  if (!device_ || is_device_watched_ == on) return;
  is_device_watched_ = on;
  if (on) {
    watch(device_->poll_fd());
  } else {
    epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, device_->poll_fd(), nullptr);
  }
}

Endpoint::~Endpoint() {
  if (channel_) channel_->acks().send_all();
  SegmentHeader& h = segment_.header();
  h.closed.store(1, std::memory_order_seq_cst);
  h.state.store(ContextState::Rests, std::memory_order_relaxed);
  channel_.reset();
  regions_.reset();
  shmem_.reset();
  if (wake_fd_ >= 0) close(wake_fd_);
  if (epoll_fd_ >= 0) close(epoll_fd_);
  if (!path_.empty()) unlink(path_.c_str());
}

// --- messages ----------------------------------------------------------------------------------

bool Endpoint::uses_shmem(std::uint32_t peer) const {
  return peer < size() && segment_.peer(peer).route != Route::Packet;
}

std::uint32_t Endpoint::message_bytes(std::uint32_t peer) const {
  if (peer >= size()) return 0;
  return uses_shmem(peer) ? shmem_->message_bytes() : segment_.geometry().payload_bytes;
}

int Endpoint::get_send_buffer(std::uint32_t peer, std::uint32_t length, std::byte** buffer) {
  if (peer >= size()) return EINVAL;
  sends_by_shmem_ = uses_shmem(peer);
  return sends_by_shmem_ ? shmem_->get_send_buffer(peer, length, buffer)
                         : channel_->get_send_buffer(peer, length, buffer);
}

int Endpoint::send(bool more_follows) {
  return sends_by_shmem_ || !channel_ ? shmem_->send() : channel_->send(more_follows);
}

int Endpoint::send_summed(std::uint32_t sum, bool more_follows) {
  return sends_by_shmem_ || !channel_ ? shmem_->send() : channel_->send_summed(sum, more_follows);
}

void Endpoint::send_held(std::uint32_t peer) {
  if (channel_ && !uses_shmem(peer)) channel_->send_held(peer);
}

void Endpoint::cancel_send() {
  shmem_->cancel_send();
  if (channel_) channel_->queues().cancel();
}

int Endpoint::send_datagram(std::span<const std::uint32_t> ranks,
                            std::span<const std::byte> bytes) {
  for (const std::uint32_t rank : ranks) {
    if (rank >= size()) return EINVAL;
    if (bytes.size() > message_bytes(rank)) return EMSGSIZE;
  }
  const bool has_sum = channel_ && segment_.header().auth == FrameAuth::Key;
  const std::uint32_t sum = has_sum ? crc32c(0, bytes.data(), bytes.size()) : 0;
  int result = 0;
  for (const std::uint32_t rank : ranks) {
    const int error = uses_shmem(rank) ? shmem_->send_datagram(rank, bytes)
                                       : channel_->send_datagram(rank, bytes, sum);
    if (error != 0 && error != EHOSTDOWN) result = error;
  }
  return result;
}

int Endpoint::receive(ReceivedMessage& message) {
  if (empty_polls_ > PollEpisode::kFreePolls) [[unlikely]]
    returns_.begin_poll(now_ns(), thread_switches);
  // Polling shared memory reads one cache line, but polling the device is a system call. So the
  // device is not polled while messages from it are waiting.
  const bool is_drained = segment_.header().delivered.head == kNoIndex;
  if (channel_ && is_drained && (++receive_turn_ & (near_turns_ - 1)) == 0) channel_->poll();
  if (shmem_->has_input() && shmem_->receive(message)) [[unlikely]]
    return 0;
  if (channel_ && channel_->received().receive(message)) return 0;
  if (++empty_turn_ % kEmptyEvery == 0) check_dead_peers();
  if (dead_unreported_ > 0 && find_dead(message.source)) return EHOSTDOWN;
  return EAGAIN;
}

void Endpoint::set_consumer(MessageConsumer* taker) {
  taker_ = taker;
  if (channel_) channel_->set_consumer(taker);
}

void Endpoint::release(const ReceivedMessage& message) {
  if (message.by_shmem) {
    shmem_->release(message.ticket);
  } else if (channel_) {
    channel_->received().release(message.ticket);
  }
}

// --- remote memory -----------------------------------------------------------------------------

int Endpoint::add_region(const void* address, std::uint64_t length, std::uint32_t& region,
                         std::uint64_t& offset) {
  return regions_->add(address, length, region, offset);
}

int Endpoint::drop_region(std::uint32_t region) {
  const bool is_last =
      region < segment_.geometry().regions && segment_.region(region).references == 1;
  if (is_last && shmem_->is_region_in_use(region)) return EBUSY;
  if (is_last && channel_ && channel_->queues().is_region_in_use(region)) return EBUSY;
  return regions_->drop(region);
}

int Endpoint::write(std::uint32_t peer, std::uint32_t local, std::uint64_t offset,
                    RegionName remote, std::uint32_t length, OperationId& op) {
  if (peer >= size()) return EINVAL;
  return uses_shmem(peer) ? shmem_->write(peer, local, offset, remote, length, op)
                          : channel_->memory().write(peer, local, offset, remote, length, op);
}

int Endpoint::send_parts(std::uint32_t peer, std::uint32_t local, std::uint64_t offset,
                         std::uint32_t length, const PartHead& head, OperationId& op) {
  if (peer >= size()) return EINVAL;
  if (uses_shmem(peer)) return EOPNOTSUPP;
  return channel_->memory().send_parts(peer, local, offset, length, head, op);
}

int Endpoint::read(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
                   std::uint32_t length, OperationId& op) {
  if (peer >= size()) return EINVAL;
  return uses_shmem(peer) ? shmem_->read(peer, local, offset, remote, length, op)
                          : channel_->memory().read(peer, local, offset, remote, length, op);
}

int Endpoint::announce(std::uint32_t peer, std::uint32_t local, std::uint64_t offset,
                       std::uint64_t length, OperationId& op) {
  if (peer >= size() || length > UINT32_MAX) return EINVAL;
  return uses_shmem(peer) ? shmem_->announce(peer, local, offset, length, op)
                          : channel_->memory().announce(peer, local, offset, length, op);
}

int Endpoint::fetch(std::uint32_t source, const LargeHeader& large, std::uint32_t local,
                    std::uint64_t offset, OperationId& op) {
  const RegionName remote{large.region, large.nonce, large.offset};
  const int error =
      read(source, local, offset, remote, static_cast<std::uint32_t>(large.length), op);
  if (error == 0) operations_.find(op)->then_end = large.op;
  return error;
}

int Endpoint::test(OperationId id) {
  Operation* op = operations_.find(id);
  if (op != nullptr && op->state == static_cast<std::uint8_t>(OperationState::Done) &&
      op->then_end != 0) {
    const int error = uses_shmem(op->peer)
                          ? shmem_->end_remote(op->peer, op->then_end, op->error)
                          : channel_->memory().end_remote(op->peer, op->then_end, op->error);
    if (error == ENOBUFS) return EINPROGRESS;
    op->then_end = 0;
  }
  return operations_.test(id);
}

// --- progress and waiting ----------------------------------------------------------------------

bool Endpoint::progress() {
  if (progress_turn_++ % kDeadEvery == 0) check_dead_peers();
  bool something = shmem_->progress();
  something |= channel_ && channel_->progress() > 0;
  if (channel_ && channel_->dead_peers() != seen_dead_) [[unlikely]]
    count_dead();
  return something || has_input();
}

bool Endpoint::has_input() const {
  return shmem_->has_input() || segment_.header().delivered.head != kNoIndex ||
         dead_unreported_ > 0;
}

void Endpoint::check_dead_peers() {
  const std::uint64_t now = quick_us();
  if (now - last_check_us_ < kDeathCheckUs) return;
  last_check_us_ = now;
  std::uint32_t rank = 0;
  bool found = false;
  while (shmem_->find_dead(rank)) {
    segment_.peer(rank).dead = 1;
    found = true;
  }
  if (found) count_dead();
}

// Counts the dead peers not reported yet. It walks through all peers, so it is called only for new
// ones.
void Endpoint::count_dead() {
  seen_dead_ = channel_ ? channel_->dead_peers() : 0;
  dead_unreported_ = 0;
  for (std::uint32_t i = 0; i < size(); ++i) dead_unreported_ += segment_.peer(i).dead == 1 ? 1 : 0;
}

bool Endpoint::find_dead(std::uint32_t& rank) {
  for (std::uint32_t i = 0; i < size(); ++i) {
    if (segment_.peer(i).dead != 1) continue;
    segment_.peer(i).dead = 2;  // reported
    --dead_unreported_;
    rank = i;
    return true;
  }
  return false;
}

int Endpoint::before_select(std::int64_t& timeout_us) {
  end_silence();
  watch_device(true);
  const int error = get_ready_to_sleep(timeout_us);
  if (error != 0) watch_device(false);
  return error;
}

void Endpoint::after_select() {
  watch_device(false);
  wake_up(true);
}

int Endpoint::get_ready_to_sleep(std::int64_t& timeout_us) {
  SegmentHeader& h = segment_.header();
  for (const int fd : shmem_->take_new_death_fds()) watch(fd);
  if (channel_) channel_->acks().send_all();
  shmem_->push_through();  // progress() below ends the operations that this completed
  h.sleeping.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // also before the acquire loads below
  if (progress() || (device_ && !device_->prepare_to_sleep())) {
    h.sleeping.store(0, std::memory_order_relaxed);
    return EBUSY;
  }
  Microseconds due = 0;
  timeout_us = channel_ && channel_->next_deadline(due) ? std::int64_t{due} : -1;
  std::int64_t most = shmem_->has_unwatched() ? std::int64_t{kDeathCheckUs} : -1;
  if (shmem_->waits_for_room()) most = kRoomCheckUs;
  if (most >= 0 && (timeout_us < 0 || timeout_us > most)) timeout_us = most;
  publish(is_quiet() ? ContextState::Rests : ContextState::Works);
  ++h.counters.sleeps;
  return 0;
}

void Endpoint::wake_up(bool by_peers) {
  if (!is_resting_) publish(is_declared_idle_ ? ContextState::Rests : ContextState::Works);
  SegmentHeader& h = segment_.header();
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  h.rested_us.store(static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 +
                        static_cast<std::uint64_t>(now.tv_nsec) / 1000,
                    std::memory_order_relaxed);
  h.sleeping.store(0, std::memory_order_release);
  if (!by_peers) return;
  std::array<char, 16> drained{};
  while (recv(wake_fd_, drained.data(), drained.size(), MSG_DONTWAIT) > 0) {
  }
  last_check_us_ = 0;
  progress_turn_ = 0;
}

int Endpoint::wait(std::int64_t timeout_us) {
  end_silence();
  if (timeout_us < 0) segment_.write_wait_note({.call = {"pm_wait"}});
  const std::uint64_t start = monotonic_us();
  const auto passed = [start] { return static_cast<std::int64_t>(monotonic_us() - start); };
  do {
    if (progress()) return 0;
  } while (passed() < options_.spin_us && (timeout_us < 0 || passed() < timeout_us));
  for (;;) {
    if (timeout_us >= 0 && passed() >= timeout_us) return ETIMEDOUT;
    // The time may be over by now.
    const std::int64_t left =
        timeout_us < 0 ? -1 : std::max(timeout_us - passed(), std::int64_t{0});
    Sleep sleep;
    const ContextState as = timeout_us < 0 ? ContextState::Waits : ContextState::Rests;
    if (prepare_sleep(left, as, sleep) != 0) return 0;
    sleep_until_event(sleep.news, sleep.timeout_us);
    if (end_sleep(sleep)) return 0;
  }
}

int Endpoint::prepare_sleep(std::int64_t most_us, ContextState as, Sleep& sleep) {
  if (const int error = get_ready_to_sleep(sleep.timeout_us); error != 0) return error;
  if (is_quiet()) publish(as);
  if (most_us >= 0 && (sleep.timeout_us < 0 || most_us < sleep.timeout_us)) {
    sleep.timeout_us = most_us;
  }
  sleep.news = {pollfd{epoll_fd_, POLLIN, 0}, pollfd{device_ ? device_->poll_fd() : -1, POLLIN, 0}};
  return 0;
}

bool Endpoint::end_sleep(const Sleep& sleep) {
  const bool by_peers = sleep.news[0].revents != 0;
  wake_up(by_peers);
  return progress() || by_peers || sleep.news[1].revents != 0;
}

bool Endpoint::rest_if_silent() {
  if (++empty_polls_ <= PollEpisode::kFreePolls) return false;
  if (empty_polls_ == PollEpisode::kFreePolls + 1) {
    episode_.found_something();
    returns_.start_anew();
  }
  // The rank that has to answer may have been woken on this processor.
  if (empty_polls_ % kYieldEvery == 0) sched_yield();
  const std::uint32_t most_us = episode_.found_nothing(now(), thread_used_us);
  if (const std::uint64_t us = episode_.take_polled_us(); us != 0) add_polled(us);
  if (episode_.silence_us() == 0 && is_resting_) stop_resting();       // it did other work
  if (most_us == 0 || !(is_declared_idle_ || returns_.are_quick())) {  // it works in between
    if (most_us > 0 && std::exchange(is_resting_, false)) publish(ContextState::Works);
    returns_.end_poll(now_ns());
    return false;
  }
  returns_.note_sleep();
  keep_resting(ContextState::Rests);
  Sleep sleep;
  if (prepare_sleep(most_us, ContextState::Rests, sleep) != 0) return true;
  sleep_until_event(sleep.news, sleep.timeout_us);
  const bool has_news = end_sleep(sleep);
  if (!has_news) episode_.rested(now(), thread_used_us());
  return has_news;
}

// The published state holds between two sleeps, too: readers decide by the end of the last sleep if
// the owner still rests.
void Endpoint::keep_resting(ContextState state) {
  is_resting_ = true;
  publish(state);
}

void Endpoint::stop_resting() {
  is_resting_ = false;
  episode_.found_something();
  publish(is_declared_idle_ ? ContextState::Rests : ContextState::Works);
}

void Endpoint::declare_idle(bool idle) {
  if (std::exchange(is_declared_idle_, idle) == idle) return;  // repeated in each turn
  is_resting_ = false;
  episode_.found_something();
  const std::int64_t poll_us = poll_us_from_environment();
  episode_.set_limits(idle ? std::min<std::int64_t>(poll_us, 0) : poll_us, longest_rest_us_);
  publish(idle ? ContextState::Rests : ContextState::Works);
}

void Endpoint::publish(ContextState state) {
  segment_.header().state.store(state, std::memory_order_release);
}

const Counters& Endpoint::counters() const {
  Counters& c = segment_.header().counters;
  if (device_) {
    const std::uint32_t dropped = device_->dropped();
    c.dropped_by_kernel += dropped - std::exchange(seen_dropped_, dropped);
  }
  return c;
}

bool Endpoint::is_quiet() const {
  return shmem_->is_quiet() && (!channel_ || channel_->is_quiet());
}

// --- save and restore --------------------------------------------------------------------------

int Endpoint::save(std::span<std::byte> image) const {
  if (image.size() < image_bytes()) return ENOSPC;
  if (shmem_->is_building() || (channel_ && channel_->queues().is_building())) return EBUSY;
  std::memcpy(image.data(), segment_.bytes().data(), image_bytes());
  return 0;
}

int Endpoint::restore(std::span<const std::byte> image) {
  if (shmem_->is_building() || (channel_ && channel_->queues().is_building())) return EBUSY;
  if (const int error = restore_image(segment_, image); error != 0) return error;
  channel_.reset();
  build();
  return 0;
}

}  // namespace score::pm
