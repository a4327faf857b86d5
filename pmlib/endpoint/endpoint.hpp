// One rank's end of its job's network. It joins the devices of a context
// (the composite device of the original): peers of the same node are reached by shared memory,
// others by frames. pm.h is this class in C.
//
// Not thread-safe. Errors are errno values; 0 is success.
#pragma once

#include "pmlib/channel/channel.hpp"
#include "pmlib/core/operations.hpp"
#include "pmlib/core/packet_device.hpp"
#include "pmlib/core/regions.hpp"
#include "pmlib/core/segment.hpp"
#include "pmlib/endpoint/poll_episode.hpp"
#include "pmlib/endpoint/quick_returns.hpp"
#include "pmlib/endpoint/stoppable_clock.hpp"
#include "pmlib/shmem/shmem.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <poll.h>
#include <span>
#include <string>

namespace score::pm {

struct EndpointOptions {
  ChannelOptions channel{};
  // How long wait() polls before it sleeps; less than 0: chosen by whether each rank of the node
  // can have a processor.
  std::int32_t spin_us = -1;
  // Let the kernel copy between processes of a node where that is allowed. Also switched off by
  // PM_NO_CROSS_MEMORY in the environment.
  bool may_cross = true;
};

// How long a thread polls in vain before it rests: PM_POLL_US of the environment, else kPollUs;
// less than 0: for ever.
constexpr std::int64_t kPollUs = 1'000;
std::int64_t poll_us_from_environment();
// CLOCK_THREAD_CPUTIME_ID.
std::uint64_t thread_used_us();
// How often the calling thread has given its processor up or lost it.
std::uint64_t thread_switches();
// CLOCK_MONOTONIC.
std::uint64_t now_ns();
// Sleeps in ppoll(2); `timeout_us` < 0: for ever.
void sleep_until_news(std::span<pollfd> news, std::int64_t timeout_us);

class Endpoint {
 public:
  // From the environment scored gives a task: PM_CONTEXT_FD is the context's descriptor,
  // PM_LOCAL_FDS the first of the contexts of this node in the order of ranks, PM_DEVICE_FD the
  // packet device's socket if one was opened for it. Without PM_CONTEXT_FD they are asked for at
  // PM_NETWORK_FD (broker.hpp). ENOENT if there is neither.
  static std::unique_ptr<Endpoint> open_inherited(int& error);
  // From the broker at the socket `broker`; see ask_broker() for errors.
  static std::unique_ptr<Endpoint> open_brokered(int broker, int& error);
  // From an address file; see network.hpp. `message` is the error in the file.
  static std::unique_ptr<Endpoint> open_file(const std::string& path, std::uint32_t rank,
                                             int& error, std::string& message);
  // Over parts made by the caller. `device` may be null if no peer needs it.
  static std::unique_ptr<Endpoint> make(std::unique_ptr<MappedSegment> context,
                                        std::unique_ptr<PacketDevice> device,
                                        Shmem::OpenPeer open_peer, const EndpointOptions& options,
                                        int& error);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  std::uint32_t rank() const { return segment_.header().rank; }

  std::uint32_t size() const { return segment_.geometry().size; }

  // Longest message to `peer`; 0 if there is no such rank.
  std::uint32_t message_bytes(std::uint32_t peer) const;

  const Segment& segment() const { return segment_; }

  // See Channel. Only for contexts with a packet device.
  void set_alias(std::uint32_t peer, const Alias& alias) { channel_->set_alias(peer, alias); }

  // Messages; see Channel.
  int get_send_buffer(std::uint32_t peer, std::uint32_t length, std::byte** buffer);
  int send(bool more_follows = false);
  int send_summed(std::uint32_t sum, bool more_follows);
  void send_held(std::uint32_t peer);
  void cancel_send();
  // Sends `bytes` once to each of `ranks`, by one frame each that is neither ordered nor sent
  // again; ranks that have died are passed over. EAGAIN: some got nothing for want of room. EINVAL
  // and EMSGSIZE (see message_bytes()): nothing was sent.
  int send_datagram(std::span<const std::uint32_t> ranks, std::span<const std::byte> bytes);
  // See Channel::set_taker(). Only messages of other nodes are offered.
  void set_taker(MessageTaker* taker);

  void send_due_acks() {
    if (channel_) channel_->send_due_acks();
  }

  // EAGAIN: nothing there. EHOSTDOWN: rank message.source has died; returned once per rank.
  int receive(ReceivedMessage& message);
  void release(const ReceivedMessage& message);

  // Remote memory; see Channel and Regions.
  int add_region(const void* address, std::uint64_t length, std::uint32_t& region,
                 std::uint64_t& offset);
  // EBUSY while a transfer uses it: progress and try again.
  int drop_region(std::uint32_t region);

  Regions& regions() { return *regions_; }

  int write(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
            std::uint32_t length, OperationId& op);
  int read(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
           std::uint32_t length, OperationId& op);
  // See RemoteMemory. EOPNOTSUPP: the peer is in this node.
  int send_parts(std::uint32_t peer, std::uint32_t local, std::uint64_t offset,
                 std::uint32_t length, const PartHead& head, OperationId& op);
  // A message of any length: it is announced to the receiver, which fetches it.
  int announce(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, std::uint64_t length,
               OperationId& op);
  // Fetches an announced message into own memory and then ends the sender's operation.
  int fetch(std::uint32_t source, const LargeHeader& large, std::uint32_t local,
            std::uint64_t offset, OperationId& op);
  int test(OperationId op);

  // As test() == EINPROGRESS, but the operation is not freed if it has ended.
  bool is_running(OperationId op) const { return operations_.is_running(op); }

  // Receives, acknowledges, resends. Never blocks. Returns whether anything happened.
  bool progress();
  // Returns 0 as soon as something can be received or anything else happened, ETIMEDOUT after
  // `timeout_us` (< 0: never). The context rests while it sleeps, or waits if that is for ever.
  int wait(std::int64_t timeout_us);

  // To be called by the owner after a receive() that found nothing, and that it will repeat: sleeps
  // for a moment if it has polled in vain for long; see poll_episode.hpp. True: something came.
  bool rest_if_silent();

  // A message was received or sent: the owner does not poll in vain.
  void end_silence() {
    empty_polls_ = 0;
    if (is_resting_) [[unlikely]]
      stop_resting();
  }

  // A sleep of a thread that may leave the endpoint to others meanwhile.
  struct Sleep {
    std::array<pollfd, 2> news{};  // for ppoll(2)
    std::int64_t timeout_us = -1;  // longest; < 0: for ever
  };

  // Prepares a sleep of at most `most_us` (< 0: for ever), during which the context does `as`; one
  // with something in flight never waits. EBUSY: there is something to do. After 0 end_sleep() is
  // called, or after_select() if others use the endpoint before that.
  int prepare_sleep(std::int64_t most_us, ContextState as, Sleep& sleep);
  // `sleep` as ppoll(2) has left it. True: something came.
  bool end_sleep(const Sleep& sleep);
  // The context does `state` between its sleeps too, until end_silence().
  void keep_resting(ContextState state);

  // So much more processor time went into polling in vain: it is published.
  void add_polled(std::uint64_t us) {
    std::atomic<std::uint64_t>& polled = segment_.header().polled_us;
    polled.store(polled.load(std::memory_order_relaxed) + us, std::memory_order_relaxed);
  }

  // The job's own time.
  Microseconds now() { return clock_.now(); }

  // So long that the ranks of a node together use less than 1 % of a processor while they rest.
  std::uint32_t longest_rest_us() const { return longest_rest_us_; }

  // Ranks of the job on this host, with this one, as far as routes and addresses show: of a virtual
  // cluster those of all its nodes, perhaps.
  std::uint32_t ranks_here() const { return ranks_here_; }

  // A descriptor for poll(2), select(2) and epoll(7); see before_select().
  int poll_fd() const { return epoll_fd_; }

  // Arms poll_fd(). EBUSY: something waits already, receive it first. Otherwise `timeout_us` is how
  // long one may sleep (-1: for ever).
  int before_select(std::int64_t& timeout_us);
  void after_select();
  // The owner only waits for messages, in a loop of its own: it rests early and counts as resting.
  void declare_idle(bool idle);

  // Bytes of an image of this context.
  std::size_t image_bytes() const { return segment_.layout().total; }

  // EBUSY while a send buffer is lent.
  int save(std::span<std::byte> image) const;
  int restore(std::span<const std::byte> image);

  const Counters& counters() const;

  // Nothing of this rank is under way; see pm_quiet().
  bool is_quiet() const;

  // Something from a peer of this node can be received, without asking the device.
  bool has_near_input() const { return shmem_->has_input(); }

 private:
  Endpoint(std::unique_ptr<MappedSegment> context, std::unique_ptr<PacketDevice> device,
           Shmem::OpenPeer open_peer, const EndpointOptions& options);
  int start();
  void build();
  bool uses_shmem(std::uint32_t peer) const;
  [[gnu::cold]] bool find_dead(std::uint32_t& peer);
  [[gnu::noinline]] void look_for_dead();
  void count_dead();
  bool has_input() const;
  // As before_select(), but the device is not part of poll_fd().
  int get_ready_to_sleep(std::int64_t& timeout_us);
  // `by_peers`: poll_fd() may be readable because a peer of this node has woken this rank or ended.
  void wake_up(bool by_peers);
  void publish(ContextState state);
  void stop_resting();
  void watch(int fd);
  void watch_device(bool on);

  std::unique_ptr<MappedSegment> context_;
  Segment segment_;
  Operations operations_;
  std::unique_ptr<PacketDevice> device_;
  Shmem::OpenPeer open_peer_;
  EndpointOptions options_;
  StoppableClock clock_;
  std::unique_ptr<Channel> channel_;  // null if every peer is near
  MessageTaker* taker_ = nullptr;
  std::unique_ptr<Shmem> shmem_;
  std::unique_ptr<Regions> regions_;
  std::string path_;  // of the context's file, removed at the end
  int wake_fd_ = -1;
  int epoll_fd_ = -1;
  bool sends_by_shmem_ = false;
  bool is_device_watched_ = false;
  unsigned receive_turn_ = 0;
  unsigned empty_turn_ = 0;
  unsigned progress_turn_ = 0;
  unsigned empty_polls_ = 0;
  bool is_declared_idle_ = false;
  bool is_resting_ = false;  // it is published, sleeping or not
  PollEpisode episode_;
  QuickReturns returns_;
  std::uint32_t longest_rest_us_ = 0;
  std::uint32_t ranks_here_ = 1;
  unsigned near_turns_ = 1;  // the device is looked at once in so many calls of receive(); 2^n
  std::uint32_t dead_unreported_ = 0;
  std::uint32_t seen_dead_ = 0;  // channel_->dead_peers() at the last count
  std::uint64_t last_look_us_ = 0;
  mutable std::uint32_t seen_dropped_ = 0;  // by the kernel
};

}  // namespace score::pm
