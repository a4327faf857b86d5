// An Endpoint is one rank's end of its job's network. It combines the devices of a context (the
// composite device of the original): peers of the same node are reached by shared memory, others by
// frames. pm.h is this class in C.
//
// The class is not thread-safe. Errors are errno values; 0 is success.
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
  // wait() polls for this time before it sleeps. If negative, the time depends on whether each rank
  // of the node can have its own processor.
  std::int32_t spin_us = -1;
  // If true, the kernel may copy between processes of a node where that is allowed.
  // PM_NO_CROSS_MEMORY in the environment switches it off, too.
  bool may_cross = true;
};

// Returns how long a thread polls in vain before it rests: PM_POLL_US of the environment, else
// kPollUs. A negative value means forever.
constexpr std::int64_t kPollUs = 1'000;
std::int64_t poll_us_from_environment();
// Returns the time of CLOCK_THREAD_CPUTIME_ID.
std::uint64_t thread_used_us();
// Returns how often the calling thread has given up or lost its processor.
std::uint64_t thread_switches();
// Returns the time of CLOCK_MONOTONIC.
std::uint64_t now_ns();
// Sleeps in ppoll(2); a negative `timeout_us` means forever.
void sleep_until_event(std::span<pollfd> news, std::int64_t timeout_us);

class Endpoint {
 public:
  // Opens the context that scored describes in the task's environment. PM_CONTEXT_FD is the
  // context's descriptor, and PM_LOCAL_FDS the first of the contexts of this node in the order of
  // ranks. PM_DEVICE_FD is the packet device's socket if one was opened for it. Without
  // PM_CONTEXT_FD it requests them at PM_NETWORK_FD (broker.hpp). Returns ENOENT if neither is set.
  static std::unique_ptr<Endpoint> open_inherited(int& error);
  // Opens the context that the broker at the socket `broker` sends; see ask_broker() for errors.
  static std::unique_ptr<Endpoint> open_brokered(int broker, int& error);
  // Opens a context from an address file; see network.hpp. `message` is the error in the file.
  static std::unique_ptr<Endpoint> open_file(const std::string& path, std::uint32_t rank,
                                             int& error, std::string& message);
  // Makes an endpoint from parts made by the caller. `device` may be null if no peer needs it.
  static std::unique_ptr<Endpoint> make(std::unique_ptr<MappedSegment> context,
                                        std::unique_ptr<PacketDevice> device,
                                        Shmem::OpenPeer open_peer, const EndpointOptions& options,
                                        int& error);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  std::uint32_t rank() const { return segment_.header().rank; }

  std::uint32_t size() const { return segment_.geometry().size; }

  // Returns the length of the longest message to `peer`, or 0 if there is no such rank.
  std::uint32_t message_bytes(std::uint32_t peer) const;

  const Segment& segment() const { return segment_; }

  // Has the contract of Channel::set_alias(). Requires a context with a packet device.
  void set_alias(std::uint32_t peer, const Alias& alias) { channel_->set_alias(peer, alias); }

  // These functions for messages have the contracts of Channel.
  int get_send_buffer(std::uint32_t peer, std::uint32_t length, std::byte** buffer);
  int send(bool more_follows = false);
  int send_summed(std::uint32_t sum, bool more_follows);
  void send_held(std::uint32_t peer);
  void cancel_send();
  // Sends `bytes` once to each of `ranks`, in one frame each that is neither ordered nor resent.
  // Ranks that have died are skipped. Errors: EAGAIN if some ranks got nothing because the queue
  // was full; EINVAL and EMSGSIZE (see message_bytes()), after which nothing was sent.
  int send_datagram(std::span<const std::uint32_t> ranks, std::span<const std::byte> bytes);
  // Has the contract of Channel::set_consumer(). Only messages from other nodes are offered.
  void set_consumer(MessageConsumer* taker);

  void send_due_acks() {
    if (channel_) channel_->send_due_acks();
  }

  // Returns EAGAIN if there is no message, and EHOSTDOWN once for each rank message.source that has
  // died.
  int receive(ReceivedMessage& message);
  void release(const ReceivedMessage& message);

  // These functions for remote memory have the contracts of Channel and Regions.
  int add_region(const void* address, std::uint64_t length, std::uint32_t& region,
                 std::uint64_t& offset);
  // Returns EBUSY while a transfer uses the region; the caller must call progress() and try again.
  int drop_region(std::uint32_t region);

  Regions& regions() { return *regions_; }

  int write(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
            std::uint32_t length, OperationId& op);
  int read(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
           std::uint32_t length, OperationId& op);
  // Has the contract of RemoteMemory::send_parts(). Returns EOPNOTSUPP if the peer is on this node.
  int send_parts(std::uint32_t peer, std::uint32_t local, std::uint64_t offset,
                 std::uint32_t length, const PartHead& head, OperationId& op);
  // Announces a message of any length to the receiver, which fetches it.
  int announce(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, std::uint64_t length,
               OperationId& op);
  // Fetches an announced message into own memory and then ends the sender's operation.
  int fetch(std::uint32_t source, const LargeHeader& large, std::uint32_t local,
            std::uint64_t offset, OperationId& op);
  int test(OperationId op);

  // Returns the same as test() == EINPROGRESS, but does not free the operation if it has ended.
  bool is_running(OperationId op) const { return operations_.is_running(op); }

  // Receives, acknowledges and resends frames. Never blocks. Returns true if anything happened.
  bool progress();
  // Returns 0 as soon as a message can be received or anything else happened, and ETIMEDOUT after
  // `timeout_us` (negative: never). The context rests while it sleeps; it waits if the timeout is
  // infinite.
  int wait(std::int64_t timeout_us);

  // Sleeps for a short time if the owner has polled in vain for long; see poll_episode.hpp. The
  // owner calls it after a receive() that found nothing, and that it will repeat. Returns true if
  // there may be something to receive.
  bool rest_if_silent();

  // Records that a message was received or sent, so that the owner does not poll in vain.
  void end_silence() {
    empty_polls_ = 0;
    if (is_resting_) [[unlikely]]
      stop_resting();
  }

  // A Sleep describes a sleep of a thread that may leave the endpoint to other threads in the
  // meantime.
  struct Sleep {
    std::array<pollfd, 2> news{};  // for ppoll(2)
    std::int64_t timeout_us = -1;  // longest sleep; < 0: forever
  };

  // Prepares a sleep of at most `most_us` (negative: forever), during which the context is in state
  // `as`. A context with frames in flight never waits. Returns EBUSY if there is something to do.
  // After 0 the caller must call end_sleep(), or after_select() if others use the endpoint before
  // that.
  int prepare_sleep(std::int64_t most_us, ContextState as, Sleep& sleep);
  // Ends a sleep; `sleep` is as ppoll(2) has left it. Returns true if there may be something to
  // receive.
  bool end_sleep(const Sleep& sleep);
  // Keeps the context in `state` between its sleeps, too, until end_silence().
  void keep_resting(ContextState state);

  // Adds processor time that was spent on polling in vain, and publishes the sum.
  void add_polled(std::uint64_t us) {
    std::atomic<std::uint64_t>& polled = segment_.header().polled_us;
    polled.store(polled.load(std::memory_order_relaxed) + us, std::memory_order_relaxed);
  }

  // Returns the job's own time.
  Microseconds now() { return clock_.now(); }

  // Returns the longest rest, with which the ranks of a node together use less than 1 % of a
  // processor.
  std::uint32_t longest_rest_us() const { return longest_rest_us_; }

  // Returns how many ranks of the job are on this host, including this one, as far as routes and
  // addresses show. In a virtual cluster this may include the ranks of all its nodes.
  std::uint32_t ranks_here() const { return ranks_here_; }

  // Returns a descriptor for poll(2), select(2) and epoll(7); see before_select().
  int poll_fd() const { return epoll_fd_; }

  // Prepares poll_fd() for a sleep. Returns EBUSY if there is already something to receive.
  // Otherwise `timeout_us` is how long the caller may sleep (-1: forever).
  int before_select(std::int64_t& timeout_us);
  void after_select();
  // States that the owner only waits for messages, in its own loop: it rests early and counts as
  // resting.
  void declare_idle(bool idle);

  // Returns the size in bytes of an image of this context.
  std::size_t image_bytes() const { return segment_.layout().total; }

  // Returns EBUSY while a send buffer is lent.
  int save(std::span<std::byte> image) const;
  int restore(std::span<const std::byte> image);

  const Counters& counters() const;

  // Returns true if this rank has nothing in flight; see pm_quiet().
  bool is_quiet() const;

  // Returns true if something from a peer of this node can be received, without polling the device.
  bool has_local_input() const { return shmem_->has_input(); }

 private:
  Endpoint(std::unique_ptr<MappedSegment> context, std::unique_ptr<PacketDevice> device,
           Shmem::OpenPeer open_peer, const EndpointOptions& options);
  int start();
  void build();
  bool uses_shmem(std::uint32_t peer) const;
  [[gnu::cold]] bool find_dead(std::uint32_t& peer);
  [[gnu::noinline]] void check_dead_peers();
  void count_dead();
  bool has_input() const;
  // Does the same as before_select(), but without the device in poll_fd().
  int get_ready_to_sleep(std::int64_t& timeout_us);
  // `by_peers` is true if poll_fd() may be readable because a peer of this node has woken this rank
  // or ended.
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
  std::unique_ptr<Channel> channel_;  // null if every peer is on this node
  MessageConsumer* taker_ = nullptr;
  std::unique_ptr<Shmem> shmem_;
  std::unique_ptr<Regions> regions_;
  std::string path_;  // of the context's file, which is removed at the end
  int wake_fd_ = -1;
  int epoll_fd_ = -1;
  bool sends_by_shmem_ = false;
  bool is_device_watched_ = false;
  unsigned receive_turn_ = 0;
  unsigned empty_turn_ = 0;
  unsigned progress_turn_ = 0;
  unsigned empty_polls_ = 0;
  bool is_declared_idle_ = false;
  bool is_resting_ = false;  // the state is published, during sleeps and between them
  PollEpisode episode_;
  QuickReturns returns_;
  std::uint32_t longest_rest_us_ = 0;
  std::uint32_t ranks_here_ = 1;
  unsigned near_turns_ = 1;  // the device is polled once in this many calls of receive(); 2^n
  std::uint32_t dead_unreported_ = 0;
  std::uint32_t seen_dead_ = 0;  // channel_->dead_peers() at the last count
  std::uint64_t last_check_us_ = 0;
  mutable std::uint32_t seen_dropped_ = 0;  // dropped by the kernel
};

}  // namespace score::pm
