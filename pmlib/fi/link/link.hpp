// Connects a process to its peers: a PM endpoint, and the transfers that the provider adds to it.
// All endpoints of a process in a job share one link and are distinguished by ports; without a job
// each domain makes its own link.
//
// Small messages go as PM messages, split if they do not fit one. Larger ones are announced; the
// receiver answers with registered memory once it knows where the bytes go, and the sender writes
// them there. Both sides use few of PM's regions at a time: each transfer holds one at the receiver
// (Inbound) and one at the sender (Outbound), each from a quota of its own. So a transfer that has
// its go-ahead never waits for a different one.
//
// All functions must be called with the lock held, unless a comment says otherwise.
#pragma once

#include "pmlib/endpoint/endpoint.hpp"
#include "pmlib/fi/link/directory.hpp"
#include "pmlib/fi/link/id_table.hpp"
#include "pmlib/fi/link/name.hpp"
#include "pmlib/fi/link/rest_rule.hpp"
#include "pmlib/fi/link/wire.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <sys/uio.h>
#include <vector>

namespace score::pm::fi {

class Link;
struct Poller;

// Messages up to this length are sent without asking, if three quarters of the send buffers hold
// them: with an MTU of 1500 those hold 66 KB, so 64 KB go unasked. Chosen; measured over UDP with
// an MTU of 9000, where asking takes 1.1 times as long for 128 KB and 1.2 times for 64.
constexpr std::size_t kEagerBytes = 128 << 10;
// Over Ethernet, where each frame is sent by itself, a message without asking has at most this many
// frames.
constexpr std::size_t kEagerFrames = 24;
// Over UDP, messages up to kUnaskedBytes go out of the sender's own memory without asking. Those
// from kUncopiedBytes on do so if they are to be answered anyway, which saves a copy. At most
// kMostUnasked bytes of them may be unanswered per peer, because the receiver has to keep a message
// until a receive is posted. The values were measured.
constexpr std::size_t kUncopiedBytes = 16 << 10;
constexpr std::size_t kUnaskedBytes = 512 << 10;
constexpr std::size_t kMostUnasked = 1 << 20;

// Identifies an endpoint of a process.
struct PortName {
  std::uint32_t peer = 0;
  std::uint16_t port = 0;

  std::uint64_t number() const { return std::uint64_t{peer} << 16 | port; }

  bool operator==(const PortName&) const = default;
};

// A request is to be sent or waits for an answer. The link owns it from submit() until it ends.
struct LinkRequest {
  virtual ~LinkRequest() = default;

  // The link calls this once, at the end, and then deletes the request. `error` is an errno or 0.
  virtual void finish(int error) = 0;

  // Takes the answer to a Read or Atomic; the bytes are valid during the call.
  virtual void take_reply(std::span<const std::byte>) {}

  void set_head(const MessageHead& from) {
    head = from.bytes;
    head_bytes = from.size;
  }

  // Memory of an announced message.
  std::span<const std::byte> large;

  PortName to;
  std::uint32_t id = 0;       // 0: no answer is expected
  std::uint32_t inbound = 0;  // the transfer that ends a large Read
  // These bytes are still to be sent: the head, then the pieces.
  std::array<std::byte, kMaxHead> head{};
  std::size_t head_bytes = 0;
  std::vector<iovec> pieces;
  std::size_t length = 0;  // bytes in the pieces
  std::size_t sent = 0;
  std::unique_ptr<std::byte[]> copy;  // if `pieces` or `large` lie here
  std::size_t copied = 0;             // bytes in `copy`
  bool is_queued = false;
  bool is_moving = false;  // the announced memory is being written
  // For a message that goes unasked out of its own memory: the bytes behind its first part.
  std::size_t unasked = 0;
  bool has_region = false;
  std::uint32_t region = 0;
  OperationId operation = 0;
};

// Bytes that arrive in this process by a large transfer.
struct TransferArrival {
  virtual ~TransferArrival() = default;
  // The link calls this once, and then deletes the object.
  virtual void finish(int error) = 0;
};

// Receives bytes that arrive in this process in Fragments.
class Inflow {
 public:
  // Returns where the next `count` bytes go in one piece; null if add() has to take them.
  virtual std::byte* place(std::size_t count) = 0;
  // The link calls this when the bytes are in place; they are not the last ones.
  virtual void placed(std::size_t count) = 0;
  // `left` more bytes will come. If it is 0, these were the last, and the link no longer uses the
  // object.
  virtual void add(std::span<const std::byte> bytes, std::size_t left) = 0;
  // The link calls this when the peer has died, and does not use the object afterwards. No more
  // bytes will come.
  virtual void fail(int error) = 0;

 protected:
  ~Inflow() = default;
};

// Holds a message that has arrived for a port.
struct IncomingMessage {
  Header header;
  PortName from;
  std::span<const std::byte> bytes;  // behind the header
};

// Describes a posted receive that names one message.
struct Awaited {
  std::int64_t peer = -1;  // -1: any
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;  // bits of the tag
  std::size_t bytes = 0;     // length of its buffer
};

// Represents an endpoint to its link.
class Port {
 public:
  // Takes a Send or Tagged message. The returned inflow takes the `left` bytes in the Fragments of
  // a kSplit message.
  virtual Inflow* on_message(const IncomingMessage& in, std::size_t& left) = 0;
  virtual void on_access(const IncomingMessage& in) = 0;  // Write, WriteLarge, Read, Atomic
  // Does what on_message() does for a message without flags, or with kSmallData alone, if a receive
  // takes it at once and whole. Otherwise returns false and does nothing.
  virtual bool take_fast(const IncomingMessage& in) = 0;
  // Describes the oldest unmatched receive with a tag that `filter` accepts. Returns false if there
  // is none.
  virtual bool find_oldest(const TagFilter& filter, Awaited& awaited) const = 0;

 protected:
  ~Port() = default;
};

class Link final : private Directory::Listener, private MessageConsumer {
 public:
  // Joins the job that this process was given. Without a job, opens a UDP socket that peers reach
  // by the address and port of `own` (0 = chosen; a different port if that one is taken). Must be
  // called without any lock.
  static std::shared_ptr<Link> open(const Name& own, int& error);
  // Returns the name of a link that open() would make, as far as it is known before. `ip` and
  // `udp_port`, both in network order, are those of a socket; 0 = chosen.
  static Name expected_name(std::uint32_t ip, std::uint16_t udp_port);
  // Closes the kept link at the end of the process; see open_job().
  static void forget_kept();
  // Makes a link over an endpoint of a job that the caller has opened.
  static std::shared_ptr<Link> over(std::unique_ptr<pm::Endpoint> endpoint, int& error);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // --- ports

  // Returns 0, or ENOSPC if there are too many ports.
  int add_port(Port& port, std::uint16_t& number);
  void remove_port(std::uint16_t number);
  Name name_of(std::uint16_t port) const;
  Name name_of_peer(PortName port) const;
  // Finds peer and port of a name. Errors: EINVAL if the name belongs to a different job; ENOSPC if
  // there are too many peers.
  int resolve(const Name& name, PortName& port);

  // --- sending

  // Sends head and pieces at once. Returns false if that is not possible now; the caller then makes
  // a LinkRequest.
  bool try_send(std::uint32_t peer, std::span<const std::byte> head, std::span<const iovec> pieces,
                std::size_t length);
  // Lends memory for a message of `bytes`, which send_lent() must send before anything else is
  // sent. Returns null if no message can be sent at once.
  std::byte* lend(std::uint32_t peer, std::size_t bytes);
  // Returns false if the message was not sent; the memory is given back in that case as well.
  bool send_lent();
  // Sends a request that needs no answer at once; its pieces are not used afterwards. Returns false
  // if a part could not be sent: the caller must then submit() it.
  bool send_at_once(LinkRequest& request);
  // Sends `request` as soon as possible. If `id` is 0, it ends when PM has accepted all of it.
  void submit(std::unique_ptr<LinkRequest> request);
  // Gives the request an id, to be named by the peer.
  std::uint32_t enter(LinkRequest& request);
  // Sends a head alone, now or later.
  void send_head(std::uint32_t peer, const MessageHead& head);
  void send_done(PortName to, std::uint32_t request, int error);

  // Returns the bytes of one message, head and payload.
  std::size_t message_bytes(std::uint32_t peer) const { return pm_->message_bytes(peer); }

  // Returns the message length that every peer supports.
  std::size_t smallest_message() const;

  // Returns the length of the longest message that is worth copying.
  std::size_t eager_bytes(std::uint32_t peer) const;
  // Returns true if a message that is to be answered may go at once out of one piece of its own
  // memory.
  bool may_go_unasked(std::uint32_t peer, std::size_t length) const;

  std::size_t waiting_requests() const { return live_requests_; }

  // Returns the bytes of the waiting requests that keep a copy.
  std::size_t waiting_bytes() const { return copied_bytes_; }

  // --- large transfers

  // Asks the peer to write the announced message `request` to `memory`, then ends `arrival`.
  void fetch(PortName from, std::uint32_t request, std::span<std::byte> memory,
             std::unique_ptr<TransferArrival> arrival);
  // Sends the Read that `header` and `extra` describe and receives its bytes in `memory`. Then ends
  // `request`, which must have an id.
  void read_into(std::unique_ptr<LinkRequest> request, const Header& header, const RmaExtra& extra,
                 std::span<std::byte> memory);
  // Writes `memory` to the place that a peer's Read has named.
  void answer_read(PortName to, const RmaExtra& extra, std::span<const std::byte> memory);

  // --- progress

  // Receives everything that has arrived and sends everything that can be sent. Returns whether
  // anything happened.
  bool progress();
  // Returns how often a reader that finds nothing should poll before it gives up. MPIs yield the
  // processor between two reads, which takes longer than an answer, so it pays to poll again. The
  // number is small after each message, and 0 if the caller does other work in between or has lost
  // the processor.
  unsigned polls_before_giving_up();
  // Notes that these polls found nothing.
  void gave_up();

  // Returns true if the calling thread has polled in vain for long. It then calls begin_poll()
  // before it polls, and rest() after that, both without the lock.
  bool is_silent() const { return empty_turns_ > kPatientTurns && may_rest_; }

  void begin_poll();

  // Sleeps for a moment if this thread polls and does nothing else: until a message comes, another
  // thread sends, or wake() is called. Does not sleep if `has_news`, which is called with the lock,
  // returns true. Must be called without the lock. Returns true if the caller should poll again.
  bool rest(const std::function<bool()>& has_news);

  // Prepares for a sleep on wait_fd(). Returns false if there is work to do.
  bool prepare_to_wait();

  int wait_fd() const { return wait_fd_; }

  // Makes wait_fd() readable until the next progress() without sleeping threads. Any thread may
  // call this, without the lock.
  void wake();

  // A thread calls add_sleeper() after prepare_to_wait(), before it sleeps on wait_fd(), and
  // remove_sleeper() afterwards. Other threads wake it when they make progress, because it would
  // not notice what they receive, and when they send, because its timeout does not include their
  // retransmissions.
  void add_sleeper() { ++sleepers_; }

  void remove_sleeper() { --sleepers_; }

  bool has_sleepers() const { return sleepers_ > 0; }

  void wake_sleepers() {
    if (has_sleepers()) wake();
  }

  // Called when this process sends: its threads then do not poll in vain.
  void note_sending() {
    wake_sleepers();
    end_silence();
  }

  // Returns true if everything that was accepted has been sent and acknowledged.
  bool is_drained() const;

  // Notes that a receive with FI_PEEK has asked for a message.
  void note_peek() { ++peeks_; }

  std::mutex& mutex() { return mutex_; }

  bool needs_lock = true;

  // Returns the monotonic time.
  static std::uint64_t now_us();

  static constexpr unsigned kPatientTurns = PollEpisode::kFreePolls;  // some 50 us

 private:
  struct Inbound {
    PortName from;
    std::uint32_t request = 0;  // the peer's; this process's if it is a Read
    std::span<std::byte> memory;
    std::unique_ptr<TransferArrival> arrival;  // null: a Read
    Header header;                             // header of the Read
    RmaExtra extra;
    std::uint32_t region = 0;
    bool is_started = false;
  };

  struct Outbound {
    PortName to;
    std::uint32_t request = 0;  // this process's; 0: the answer to a Read
    std::uint32_t inbound = 0;  // the peer's
    fi::RegionPlace place;
    std::span<const std::byte> memory;
    std::uint64_t written = 0;
    std::uint32_t region = 0;
    std::uint64_t region_offset = 0;
    OperationId operation = 0;
    bool has_region = false;
    bool is_told = false;
    int error = 0;
  };

  struct Peer {
    std::list<LinkRequest*> queue;
    Inflow* inflow = nullptr;  // receives the Fragments
    std::uint16_t inflow_port = 0;
    std::size_t inflow_left = 0;
    std::size_t unasked = 0;  // bytes sent without asking and not answered
    bool is_waiting = false;  // is in waiting_peers_
    bool is_dead = false;
  };

  Link(std::unique_ptr<pm::Endpoint> pm, const Name& name, Directory* directory);
  static std::shared_ptr<Link> open_job(int& error);
  static std::shared_ptr<Link> open_own(const Name& own, int& error);
  int make_wait_fd();
  void choose_polls();
  [[nodiscard]] bool find_near_ranks() const;
  void on_known(std::uint32_t index, std::uint64_t key, std::uint32_t own_index) override;
  void on_address(std::uint32_t index, const PeerAddress& address) override;

  bool has_late_work() const {
    return !waiting_peers_.empty() || has_transfers() ||
           (directory_ != nullptr && directory_->has_unready());
  }

  [[gnu::noinline]] bool do_late_work();
  [[gnu::noinline]] void yield_at_times();
  void expect_more();

  void end_silence() {
    empty_turns_ = 0;
    ++silence_;
    pm_->end_silence();
  }

  std::int64_t longest_rest(Poller& poller);
  [[nodiscard]] WaitFacts facts_of(const Poller& poller) const;
  [[nodiscard]] bool find_receive(const TagFilter& filter, Awaited& awaited) const;
  void note_wait(const Poller& poller) const;
  void end_rest(Poller& poller, const pm::Endpoint::Sleep& sleep, bool is_woken);

  bool is_ready(std::uint32_t peer) const { return !directory_ || directory_->is_ready(peer); }

  // Both return 0 once PM has accepted all of the request, otherwise the errors of pm::Endpoint.
  int push(LinkRequest& request);
  int push_parts(LinkRequest& request);
  void flush(std::uint32_t peer);
  void end(LinkRequest* request, int error);
  [[gnu::cold]] void peer_died(std::uint32_t peer);
  [[gnu::noinline]] void disarm();

  void on_received(const ReceivedMessage& message);
  void give_back_later(const ReceivedMessage& message);
  bool take_fast(const IncomingMessage& in);
  bool take(std::uint32_t source, std::span<const std::byte> bytes) override;
  Place place(std::uint32_t source, std::span<const std::byte> bytes) override;
  void placed(std::uint32_t source, std::size_t count) override;
  [[gnu::noinline]] void on_message(const IncomingMessage& in);
  void on_fragment(Peer& peer, std::span<const std::byte> bytes);
  void on_go_ahead(const IncomingMessage& in);
  void on_finished(const IncomingMessage& in);
  void on_answer(const IncomingMessage& in);

  bool has_transfers() const {
    return !outbounds_.empty() || !waiting_outbounds_.empty() || !waiting_inbounds_.empty() ||
           !undropped_.empty();
  }

  void start_inbounds();
  bool start_inbound(Inbound& inbound, std::uint32_t id);
  void end_inbound(std::uint32_t id, int error);
  bool pump(Outbound& outbound);
  bool write_chunk(Outbound& outbound);
  [[nodiscard]] bool is_ordered(const Outbound& outbound) const;
  void send_finished(Outbound& outbound);
  void end_outbound(const Outbound& outbound);
  void drop_region(std::uint32_t region);
  void end_transfers_of(std::uint32_t rank);
  bool pump_all();

  std::mutex mutex_;
  Directory* directory_ = nullptr;  // the device of pm_, if peers come and go
  std::unique_ptr<pm::Endpoint> pm_;
  Name name_;
  std::vector<Port*> ports_;
  std::vector<Peer> peers_;
  std::vector<std::uint32_t> waiting_peers_;
  IdTable<LinkRequest*> requests_;
  std::size_t live_requests_ = 0;
  std::size_t copied_bytes_ = 0;
  IdTable<std::unique_ptr<Inbound>> inbounds_;
  std::deque<std::uint32_t> waiting_inbounds_;
  std::size_t started_inbounds_ = 0;
  std::vector<Outbound> outbounds_;
  std::deque<Outbound> waiting_outbounds_;
  std::vector<std::uint32_t> undropped_;  // regions that PM still used when they were to be dropped
  int wait_fd_ = -1;
  int timer_fd_ = -1;
  int wake_fd_ = -1;
  bool is_armed_ = false;
  int sleepers_ = 0;
  ReceivedMessage held_;        // the next progress() gives it back to PM
  bool holds_ = false;          // held_ is set
  bool is_handling_ = false;    // on_received() runs
  bool has_taken_ = false;      // take() has received bytes since the last turn
  bool has_near_ranks_ = true;  // true also if it is not known
  bool may_rest_ = poll_us_from_environment() >= 0;
  std::uint32_t peeks_ = 0;  // modulo 2^32
  unsigned empty_turns_ = 0;
  std::uint32_t silence_ = 0;  // number of silences that have ended, modulo 2^32
  unsigned polls_at_once_ = 0;
  unsigned polls_after_message_ = 0;
  unsigned polls_left_ = 0;
  std::uint64_t gave_up_ns_ = 0;  // 0: not since the last message
};

// Locks a link for its own lifetime, if the link needs a lock.
class Guard {
 public:
  explicit Guard(Link& link) : link_(link), is_locked_(link.needs_lock) {
    if (is_locked_) link_.mutex().lock();
  }

  ~Guard() {
    if (is_locked_) link_.mutex().unlock();
  }

  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Link& link_;
  bool is_locked_;
};

}  // namespace score::pm::fi
