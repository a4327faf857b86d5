// The endpoint matches arriving messages with posted receives, and turns libfabric's calls into
// messages of the link. ep_send.cpp, ep_receive.cpp, ep_access.cpp (remote memory, atomics) and
// ep.cpp implement it.
#pragma once

#include "pmlib/fi/endpoint/matching.hpp"
#include "pmlib/fi/endpoint/order.hpp"
#include "pmlib/fi/objects/objects.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace score::pm::fi {

// Holds the arguments of a send, common to libfabric's ten functions.
struct SendArgs {
  MessageKind kind = MessageKind::Send;
  std::span<const iovec> iov;
  fi_addr_t to = FI_ADDR_UNSPEC;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  bool has_data = false;
  bool is_silent = false;  // an inject function: no completion
  void* context = nullptr;
  std::uint64_t flags = 0;
};

struct ReceiveArgs {
  MessageKind kind = MessageKind::Send;
  std::span<const iovec> iov;
  fi_addr_t from = FI_ADDR_UNSPEC;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  void* context = nullptr;
  std::uint64_t flags = 0;
};

struct AccessArgs {
  std::span<const iovec> iov;
  fi_addr_t to = FI_ADDR_UNSPEC;
  std::uint64_t address = 0;
  std::uint64_t key = 0;
  std::uint64_t data = 0;
  bool has_data = false;
  bool is_silent = false;
  void* context = nullptr;
  std::uint64_t flags = 0;
};

struct AtomicArgs {
  AccessArgs access;
  AtomicForm form = AtomicForm::Plain;
  fi_op operation = FI_SUM;
  fi_datatype datatype = FI_INT8;
  std::size_t count = 0;
  std::span<const iovec> compare;
  std::span<const iovec> result;
};

// Holds a receive that the application has posted.
struct Receive : PostedReceive {
  struct Hook : Chain {
    Receive* receive = nullptr;
  };

  Hook own;  // element of the endpoint's list
  std::array<iovec, kMaxIov> iov{};
  std::size_t iov_count = 0;
  std::size_t length = 0;
  void* context = nullptr;
  std::uint64_t flags = 0;  // flags of its completions
  bool reports = true;
  bool is_posted = false;
  // With FI_MULTI_RECV the buffer is used up piece by piece.
  bool is_multi = false;
  std::size_t used = 0;
  std::size_t unfinished = 0;
};

// Holds the place of one message: a receive, or the next piece of its buffer.
struct Claim {
  Receive* receive = nullptr;
  std::array<iovec, kMaxIov> iov{};
  std::size_t iov_count = 0;
  std::size_t capacity = 0;
};

// Holds the part of a completion that describes a message.
struct MessageInfo {
  PortName from;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  bool has_data = false;
  bool wants_done = false;
  std::uint32_t request = 0;
  std::size_t length = 0;
};

class Ep;

// Holds a message that is incomplete, or that no receive was posted for.
struct BufferedMessage final : EarlyMessage, Inflow {
  std::byte* place(std::size_t count) override;

  void placed(std::size_t count) override { filled += count; }

  void add(std::span<const std::byte> bytes, std::size_t left) override;
  void fail(int error) override;

  struct Alive : Chain {
    BufferedMessage* message = nullptr;
  };

  Ep* ep = nullptr;
  MatchTable* table = nullptr;  // set while it waits there
  Alive alive;
  MessageInfo info;
  std::unique_ptr<std::byte[]> buffer;  // null: `claim` takes the bytes at once
  std::size_t filled = 0;
  bool is_large = false;
  bool is_discarded = false;
  bool has_claim = false;
  Claim claim;
};

class Ep final : public fid_ep, public std::enable_shared_from_this<Ep>, private Port {
 public:
  using Base = fid_ep;

  static int open(Domain& domain, const fi_info& info, fid_ep** ep, void* context);
  Ep(Domain& domain, const fi_info& info, void* context);
  ~Ep();

  int bind(fid_t other, std::uint64_t flags);
  int enable();
  int name(void* address, std::size_t* length);
  int get_option(int name, void* value, std::size_t* length) const;
  int set_option(int name, const void* value, std::size_t length);
  // Both use the default flags of operations; `flags` names the direction.
  int get_flags(std::uint64_t& flags) const;
  int set_flags(std::uint64_t flags);
  ssize_t cancel(const void* context);
  // Sends the queued requests, then releases everything.
  void close();

  [[gnu::noinline]] ssize_t send(const SendArgs& args);
  [[gnu::noinline]] ssize_t receive(const ReceiveArgs& args);

  // Holds the arguments of the fast path of small messages, which has the effect of send() and
  // receive(). See ep_fast.cpp.
  struct Short {
    MessageKind kind = MessageKind::Tagged;
    fi_addr_t peer = FI_ADDR_UNSPEC;  // or the source of a receive
    std::uint64_t tag = 0;
    std::uint64_t data = 0;
    bool has_data = false;
  };

  // Sends without a completion; `buffer` may be reused at once.
  ssize_t inject(const Short& message, const void* buffer, std::size_t length);
  // Receives a tagged message with the endpoint's own flags.
  ssize_t receive_one(const Short& wanted, std::uint64_t ignore, const iovec& to, void* context);
  ssize_t write(const AccessArgs& args);
  ssize_t read(const AccessArgs& args);
  // Reads or writes several ranges of remote memory, in place of the address and the key of `args`.
  // The operation completes once, when all ranges have. Returns -FI_EINVAL if the local length
  // differs.
  ssize_t access(const AccessArgs& args, std::span<const fi_rma_iov> ranges, bool is_read);
  ssize_t atomic(const AtomicArgs& args);
  // Stores how many elements one operation may have. Returns -FI_EOPNOTSUPP if there is no such
  // operation.
  int atomic_count(AtomicForm form, fi_datatype datatype, fi_op operation, std::size_t* count);
  static int query_atomic(fid_domain* domain, fi_datatype datatype, fi_op operation,
                          fi_atomic_attr* attr, std::uint64_t flags);

  std::uint64_t send_flags() const { return send_flags_; }

  std::uint64_t receive_flags() const { return receive_flags_; }

  struct Whole;  // an access to several ranges

  // Describes the end of an operation to be reported.
  struct Report {
    Completion completion;
    bool reports = true;
    std::uint64_t counter = 0;  // FI_SEND, FI_READ, FI_WRITE
    static constexpr std::uint64_t kUncounted = UINT64_MAX;
    Order::Operation operation{};
    std::uint64_t peer = kUncounted;  // the peer for which `order_` counts it
  };

  void ended(const Report& report, int error);
  // Notes the end of a part of an operation, which is not reported.
  void part_ended(const Report& report);
  void received(const Claim& claim, const MessageInfo& info, int error);
  void scatter(const Claim& claim, std::size_t offset, std::span<const std::byte> bytes) const;
  // Records and reports a write by a peer.
  void was_written(std::uint64_t key, const RmaExtra& extra, std::uint8_t flags);
  void message_complete(BufferedMessage& message);
  void drop(BufferedMessage& message);

 private:
  struct Counters {
    Counter* send = nullptr;
    Counter* receive = nullptr;
    Counter* read = nullptr;
    Counter* write = nullptr;
    Counter* remote_read = nullptr;
    Counter* remote_write = nullptr;
  };

  Inflow* on_message(const IncomingMessage& in, std::size_t& left) override;
  void on_access(const IncomingMessage& in) override;
  bool take_fast(const IncomingMessage& in) override;
  bool find_oldest(const TagFilter& filter, Awaited& awaited) const override;
  void on_write(const IncomingMessage& in, const RmaExtra& extra, std::span<const std::byte> bytes);
  void on_read(const IncomingMessage& in, const RmaExtra& extra);
  void on_atomic(const IncomingMessage& in);
  void reply(PortName to, std::uint32_t request, std::span<const std::byte> bytes);

  void start(const AccessArgs& args, PortName to, bool is_read, std::shared_ptr<Whole> whole);
  void start_write(const AccessArgs& args, PortName to, std::shared_ptr<Whole> whole);
  void start_read(const AccessArgs& args, PortName to, std::shared_ptr<Whole> whole);
  int check_ranges(const AccessArgs& args, std::span<const fi_rma_iov> ranges) const;

  MatchTable& table_of(MessageKind kind) { return kind == MessageKind::Tagged ? tagged_ : plain_; }

  int bind_cq(Cq& cq, std::uint64_t flags);
  int resolve(fi_addr_t address, PortName& port) const;
  // Returns 0, or the error if the endpoint was not opened for the flags of the operation.
  int check(std::uint64_t flags, std::span<const iovec> iov) const;
  bool is_full();
  Report report_of(void* context, std::uint64_t flags, bool is_silent, std::uint64_t event) const;
  ssize_t send_slowly(const SendArgs& args, PortName to, Header header, std::size_t length);
  Header header_to(PortName to, MessageKind kind, std::uint64_t tag) const;

  bool must_wait(PortName to, std::uint64_t flags) const {
    return order_ != nullptr && order_->must_wait(to.number(), (flags & FI_FENCE) != 0);
  }

  // Calls `start` with the request, at once or when the operations before it have ended.
  template <class R, class Start>
  void launch(std::unique_ptr<R> request, Order::Operation operation, Start start);

  bool send_fast(const Short& message, const void* buffer, std::size_t length);
  Receive* add_storage();
  Receive& new_receive(const ReceiveArgs& args);
  void free_receive(Receive& receive);
  Claim claim(Receive& receive, std::size_t length);
  void deliver(Receive& receive, BufferedMessage& message);
  void fetch(const Claim& claim, const MessageInfo& info);
  ssize_t peek(const ReceiveArgs& args, Receive& probe);
  ssize_t receive_claimed(const ReceiveArgs& args);
  void discard(BufferedMessage& message);
  BufferedMessage& new_message(const IncomingMessage& in, const MessageInfo& info);

  Domain& domain_;
  Link& link_;
  std::shared_ptr<Ep> self_;  // set until close()
  Av* av_ = nullptr;
  Cq* send_cq_ = nullptr;
  Cq* receive_cq_ = nullptr;
  Counters counters_;
  bool is_selective_send_ = false;
  bool is_selective_receive_ = false;
  std::uint64_t caps_;
  std::uint64_t send_flags_;
  std::uint64_t receive_flags_;
  std::size_t min_multi_ = 256;
  std::size_t inject_bytes_;
  std::unique_ptr<Order> order_;  // null: no operation has to wait
  bool orders_writes_ = false;
  bool reports_unknown_senders_;  // FI_SOURCE_ERR
  std::uint16_t port_ = 0;
  bool is_enabled_ = false;
  MatchTable tagged_, plain_;
  Chain receives_;  // posted ones
  Chain messages_;  // all BufferedMessages
  std::deque<Receive> storage_;
  std::vector<Receive*> spare_;
  std::unordered_map<const void*, BufferedMessage*>
      claimed_;  // by context, after FI_PEEK with FI_CLAIM
};

template <class R, class Start>
void Ep::launch(std::unique_ptr<R> request, Order::Operation operation, Start start) {
  if (order_ == nullptr) return start(std::move(request));
  const std::uint64_t peer = request->to.number();
  operation.holds_later = operation.holds_later && orders_writes_;
  request->report.operation = operation;
  request->report.peer = peer;
  order_->run(peer, operation, [request = std::move(request), start = std::move(start)]() mutable {
    start(std::move(request));
  });
}

}  // namespace score::pm::fi
