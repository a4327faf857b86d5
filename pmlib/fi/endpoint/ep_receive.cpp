// Matches an arriving message with a receive, or keeps it until a receive is posted.
#include "pmlib/fi/endpoint/ep.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace score::pm::fi {

namespace {

constexpr std::size_t kMostSplit = 1 << 20;  // bytes that a peer may make this process allocate

// Receives the bytes of a large message if its receive has several pieces.
struct LargeArrival final : TransferArrival {
  std::shared_ptr<Ep> ep;
  Claim claim;
  MessageInfo info;
  std::unique_ptr<std::byte[]> bounce;

  void finish(int error) override {
    const std::size_t n = std::min(info.length, claim.capacity);
    if (bounce && error == 0) ep->scatter(claim, 0, {bounce.get(), n});
    ep->received(claim, info, error);
  }
};

bool read_info(const IncomingMessage& in, MessageInfo& info, std::span<const std::byte>& bytes) {
  info.from = in.from;
  info.tag = in.header.tag;
  bytes = in.bytes;
  info.length = bytes.size();
  if (in.header.flags == 0) return true;
  if (in.header.flags == kSmallData) {
    info.data = in.header.status;
    return info.has_data = true;
  }
  const auto extra = take<Extra>(bytes);
  if (!extra || in.header.flags > kAllFlags) return false;
  info.data = extra->data;
  info.has_data = (in.header.flags & kHasData) != 0;
  info.wants_done = (in.header.flags & kWantsDone) != 0;
  info.request = extra->request;
  info.length = bytes.size();
  const bool is_large = (in.header.flags & kLarge) != 0;
  const bool is_split = (in.header.flags & kSplit) != 0;
  if (!is_large && !is_split) return true;
  info.length = extra->length;
  if (is_large) return !is_split && bytes.empty() && extra->length <= SIZE_MAX / 2;
  return extra->length > bytes.size() && extra->length <= kMostSplit;
}

}  // namespace

// --- what arrives ------------------------------------------------------------------------------

Inflow* Ep::on_message(const IncomingMessage& in, std::size_t& left) {
  MessageInfo info;
  std::span<const std::byte> bytes;
  if (!is_enabled_ || !read_info(in, info, bytes)) return nullptr;
  const bool is_large = (in.header.flags & kLarge) != 0;
  MatchTable& table = table_of(in.header.kind);
  PostedReceive* const found = table.find_receive(info.from.number(), info.tag);
  if (found != nullptr) {
    const Claim to = claim(*static_cast<Receive*>(found), info.length);
    if (is_large) return fetch(to, info), nullptr;
    scatter(to, 0, bytes);
    if (info.length == bytes.size()) return received(to, info, 0), nullptr;
    BufferedMessage& message = new_message(in, info);
    message.claim = to;
    message.has_claim = true;
    message.filled = bytes.size();
    left = info.length - bytes.size();
    return &message;
  }
  BufferedMessage& message = new_message(in, info);
  message.is_large = is_large;
  if (!is_large) {
    message.buffer = std::make_unique_for_overwrite<std::byte[]>(info.length);
    std::copy(bytes.begin(), bytes.end(), message.buffer.get());
    message.filled = bytes.size();
    left = info.length - bytes.size();
  }
  message.table = &table;
  table.add_early(message);
  return &message;
}

BufferedMessage& Ep::new_message(const IncomingMessage& in, const MessageInfo& info) {
  auto* message = new BufferedMessage();
  message->ep = this;
  message->source = in.from.number();
  message->tag = in.header.tag;
  message->info = info;
  message->alive.message = message;
  messages_.append(message->alive);
  return *message;
}

void Ep::drop(BufferedMessage& message) {
  if (message.table != nullptr) message.table->remove_early(message);
  std::erase_if(claimed_, [&](const auto& claimed) { return claimed.second == &message; });
  message.alive.unlink();
  delete &message;
}

std::byte* BufferedMessage::place(std::size_t count) {
  if (buffer) return buffer.get() + filled;
  const iovec& first = claim.iov[0];
  if (claim.iov_count == 0 || filled + count > first.iov_len) return nullptr;
  return static_cast<std::byte*>(first.iov_base) + filled;
}

void BufferedMessage::add(std::span<const std::byte> bytes, std::size_t left) {
  if (buffer) {
    std::copy(bytes.begin(), bytes.end(), buffer.get() + filled);
  } else {
    ep->scatter(claim, filled, bytes);
  }
  filled += bytes.size();
  if (left == 0) ep->message_complete(*this);
}

void BufferedMessage::fail(int error) {
  if (has_claim) ep->received(claim, info, error);
  ep->drop(*this);
}

void Ep::message_complete(BufferedMessage& message) {
  if (message.is_discarded) return discard(message);
  if (!message.has_claim) return;
  if (message.buffer) scatter(message.claim, 0, {message.buffer.get(), message.filled});
  received(message.claim, message.info, 0);
  drop(message);
}

// --- receives ----------------------------------------------------------------------------------

// Adds a receive to the storage, and reserves room for it among the spare ones.
Receive* Ep::add_storage() {
  Receive& r = storage_.emplace_back();
  r.own.receive = &r;
  spare_.reserve(storage_.size());
  return &r;
}

Receive& Ep::new_receive(const ReceiveArgs& args) {
  if (spare_.empty()) spare_.push_back(add_storage());
  Receive& r = *spare_.back();
  spare_.pop_back();
  r.tag = args.kind == MessageKind::Tagged ? args.tag : 0;
  r.ignore = args.kind == MessageKind::Tagged ? args.ignore : 0;
  r.iov_count = 0;
  r.length = 0;
  for (const iovec& piece : args.iov) {
    r.iov[r.iov_count++] = piece;
    r.length += piece.iov_len;
  }
  r.context = args.context;
  r.flags = FI_RECV | (args.kind == MessageKind::Tagged ? FI_TAGGED : FI_MSG);
  r.reports = !is_selective_receive_ || (args.flags & FI_COMPLETION) != 0;
  r.is_posted = false;
  r.is_multi = args.kind == MessageKind::Send && (args.flags & FI_MULTI_RECV) != 0;
  r.used = r.unfinished = 0;
  return r;
}

void Ep::free_receive(Receive& receive) {
  spare_.push_back(&receive);
}

ssize_t Ep::receive(const ReceiveArgs& args) {
  if (args.iov.size() > kMaxIov || (args.iov.data() == nullptr && !args.iov.empty())) {
    return -FI_EINVAL;
  }
  Guard guard(link_);
  if (!is_enabled_) return -FI_EOPBADSTATE;
  PortName from;
  std::uint64_t source = kAnySource;
  if (args.from != FI_ADDR_UNSPEC && (caps_ & FI_DIRECTED_RECV) != 0) {
    if (!av_->find(args.from, from)) return -FI_EINVAL;
    source = from.number();
  }
  if ((args.flags & FI_CLAIM) != 0 && (args.flags & FI_PEEK) == 0) return receive_claimed(args);
  Receive& r = new_receive(args);
  r.source = source;
  if ((args.flags & FI_PEEK) != 0) {
    link_.rest().note_peek();
    return peek(args, r);
  }
  MatchTable& table = table_of(args.kind);
  while (EarlyMessage* const early = table.take_early(r)) {
    auto& message = *static_cast<BufferedMessage*>(early);
    message.table = nullptr;
    const bool goes_on =
        r.is_multi &&
        r.length - r.used - std::min(message.info.length, r.length - r.used) >= min_multi_;
    deliver(r, message);
    if (!goes_on) return 0;
  }
  r.is_posted = true;
  table.post(r);
  receives_.append(r.own);
  return 0;
}

// Gives an early message to a receive.
void Ep::deliver(Receive& receive, BufferedMessage& message) {
  const Claim to = claim(receive, message.info.length);
  if (message.is_large) {
    fetch(to, message.info);
    return drop(message);
  }
  message.claim = to;
  message.has_claim = true;
  if (message.filled == message.info.length) message_complete(message);
}

// Returns the part of a receive that a message of `length` bytes may use. Unposts the receive if
// that was the last part.
Claim Ep::claim(Receive& r, std::size_t length) {
  Claim c;
  c.receive = &r;
  bool is_last = true;
  if (r.is_multi) {
    c.capacity = std::min(length, r.length - r.used);
    c.iov[0] = {static_cast<std::byte*>(r.iov[0].iov_base) + r.used, c.capacity};
    c.iov_count = 1;
    r.used += c.capacity;
    is_last = r.length - r.used < min_multi_;
  } else {
    c.iov = r.iov;
    c.iov_count = r.iov_count;
    c.capacity = r.length;
  }
  ++r.unfinished;
  if (!is_last) return c;
  if (r.is_posted) {
    ((r.flags & FI_TAGGED) != 0 ? tagged_ : plain_).remove(r);
    r.own.unlink();
  }
  r.is_posted = false;
  r.used = r.length;
  return c;
}

void Ep::scatter(const Claim& c, std::size_t offset, std::span<const std::byte> bytes) const {
  for (std::size_t i = 0; i < c.iov_count && !bytes.empty(); ++i) {
    const iovec& piece = c.iov[i];
    if (offset >= piece.iov_len) {
      offset -= piece.iov_len;
      continue;
    }
    const std::size_t n = std::min(piece.iov_len - offset, bytes.size());
    std::memcpy(static_cast<std::byte*>(piece.iov_base) + offset, bytes.data(), n);
    bytes = bytes.subspan(n);
    offset = 0;
  }
}

// Asks for the bytes of an announced message.
void Ep::fetch(const Claim& to, const MessageInfo& info) {
  const std::size_t n = std::min(info.length, to.capacity);
  if (n == 0) {
    link_.sender().send_done(info.from, info.request, 0);
    return received(to, info, 0);
  }
  auto arrival = std::make_unique<LargeArrival>();
  arrival->ep = shared_from_this();
  arrival->claim = to;
  arrival->info = info;
  arrival->info.wants_done = false;  // the end of the transfer serves as the answer
  std::span<std::byte> memory(static_cast<std::byte*>(to.iov[0].iov_base), n);
  if (to.iov[0].iov_len < n) {
    arrival->bounce = std::make_unique_for_overwrite<std::byte[]>(n);
    memory = {arrival->bounce.get(), n};
  }
  link_.transfers().fetch(info.from, info.request, memory, std::move(arrival));
}

// Completes a receive when a message has arrived in whole, or never will.
void Ep::received(const Claim& c, const MessageInfo& info, int error) {
  Receive& r = *c.receive;
  Completion done;
  done.context = r.context;
  done.flags = r.flags | (info.has_data ? FI_REMOTE_CQ_DATA : 0);
  done.length = std::min(info.length, c.capacity);
  done.buffer = c.iov_count > 0 ? c.iov[0].iov_base : nullptr;
  done.data = info.data;
  done.tag = info.tag;
  done.from = info.from;
  done.av = av_;
  --r.unfinished;
  const bool is_over = !r.is_posted && r.unfinished == 0 && (!r.is_multi || r.used == r.length);
  if (r.is_multi && is_over) done.flags |= FI_MULTI_RECV;
  const bool reports = r.reports;
  if (is_over) free_receive(r);
  if (info.wants_done) link_.sender().send_done(info.from, info.request, 0);
  if (error == 0 && info.length > c.capacity) error = FI_ETRUNC;
  std::string stranger;
  if (error == 0 && reports_unknown_senders_ && av_->address_of(info.from) == FI_ADDR_NOTAVAIL) {
    error = FI_EADDRNOTAVAIL;
    stranger = domain_.address_of(link_.peers().name_of_peer(info.from));
  }
  if (receive_cq_ != nullptr) {
    if (error != 0) {
      receive_cq_->push(
          CompletionError{done, error, info.length - done.length, std::move(stranger)});
    } else if (reports || (done.flags & FI_MULTI_RECV) != 0) {
      receive_cq_->push(done);
    }
  }
  if (counters_.receive == nullptr) return;
  if (error != 0) return counters_.receive->add_error(1);
  counters_.receive->add(1);
}

// --- looking without receiving -----------------------------------------------------------------

ssize_t Ep::peek(const ReceiveArgs& args, Receive& probe) {
  Completion seen;
  seen.context = args.context;
  seen.flags = probe.flags;
  link_.progress();
  MatchTable& table = table_of(args.kind);
  auto* message = static_cast<BufferedMessage*>(table.find_early(probe));
  free_receive(probe);
  if (message == nullptr) {
    seen.tag = args.tag;
    receive_cq_->push(CompletionError{seen, FI_ENOMSG, 0});
    return 0;
  }
  seen.length = message->info.length;
  seen.tag = message->info.tag;
  seen.data = message->info.data;
  seen.from = message->info.from;
  seen.av = av_;
  if (message->info.has_data) seen.flags |= FI_REMOTE_CQ_DATA;
  if ((args.flags & (FI_CLAIM | FI_DISCARD)) != 0) {
    table.remove_early(*message);
    message->table = nullptr;
    if ((args.flags & FI_CLAIM) != 0) claimed_[args.context] = message;
  }
  if ((args.flags & FI_DISCARD) != 0) discard(*message);
  receive_cq_->push(seen);
  return 0;
}

// Drops a message that is in no table.
void Ep::discard(BufferedMessage& message) {
  message.is_discarded = true;
  if (!message.is_large && message.filled < message.info.length) return;  // later, when complete
  if (message.is_large || message.info.wants_done) {
    link_.sender().send_done(message.info.from, message.info.request, 0);
  }
  drop(message);
}

ssize_t Ep::receive_claimed(const ReceiveArgs& args) {
  const auto found = claimed_.find(args.context);
  if (found == claimed_.end()) return -FI_EINVAL;
  BufferedMessage& message = *found->second;
  claimed_.erase(found);
  if ((args.flags & FI_DISCARD) == 0) {
    deliver(new_receive(args), message);
    return 0;
  }
  Completion gone;
  gone.context = args.context;
  gone.flags = FI_RECV | FI_TAGGED;
  gone.tag = message.info.tag;
  discard(message);
  receive_cq_->push(gone);
  return 0;
}

// Skips receives without a tag, because they are a library's own buffers for any message.
bool Ep::find_oldest(const TagFilter& filter, Awaited& awaited) const {
  for (const Chain* at = receives_.next; at != &receives_; at = at->next) {
    const Receive& r = *static_cast<const Receive::Hook*>(at)->receive;
    if ((r.flags & FI_TAGGED) == 0 || !filter.takes(r.tag, r.ignore)) continue;
    awaited.peer = r.source == kAnySource ? -1 : static_cast<std::int64_t>(r.source >> 16);
    awaited.tag = r.tag;
    awaited.ignore = r.ignore;
    awaited.bytes = r.length;
    return true;
  }
  return false;
}

// A send can be cancelled before it leaves, and while it waits for its match, which a short message
// with FI_DELIVERY_COMPLETE does. The peer may still match it; no one learns of that.
ssize_t Ep::cancel(const void* context) {
  Guard guard(link_);
  for (Chain* at = receives_.previous; at != &receives_; at = at->previous) {
    Receive& r = *static_cast<Receive::Hook*>(at)->receive;
    if (r.context != context) continue;
    ((r.flags & FI_TAGGED) != 0 ? tagged_ : plain_).remove(r);
    r.own.unlink();
    r.is_posted = false;
    Completion gone;
    gone.context = r.context;
    gone.flags = r.flags | (r.is_multi ? FI_MULTI_RECV : 0);
    gone.tag = r.tag;
    if (r.unfinished > 0) {
      r.used = r.length;  // what it takes already ends it
      return 0;
    }
    free_receive(r);
    if (receive_cq_ != nullptr) receive_cq_->push(CompletionError{gone, FI_ECANCELED, 0});
    if (counters_.receive != nullptr) counters_.receive->add_error(1);
    return 0;
  }
  const bool is_cancelled =
      link_.sender().cancel(this, context) || link_.requests().cancel(this, context);
  return is_cancelled ? 0 : -FI_ENOENT;
}

}  // namespace score::pm::fi
