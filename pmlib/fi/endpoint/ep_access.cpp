// Implements remote memory and atomics, both sides. Small accesses are one message and its answer;
// large ones are transfers of the link: a write is announced and fetched like a message, a read is
// answered by one.
#include "pmlib/fi/endpoint/atomics.hpp"
#include "pmlib/fi/endpoint/ep.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

namespace score::pm::fi {

// The last range is accessed when the others have ended, because the peer counts it and reports its
// data.
struct Ep::Whole : std::enable_shared_from_this<Whole> {
  std::shared_ptr<Ep> ep;
  Report report;
  bool is_read = false;
  std::size_t left = 0;  // ranges
  int error = 0;
  AccessArgs last;
  Claim last_memory;
  PortName to;
  std::unique_ptr<std::byte[]> kept;  // the last range's bytes, for an injected write

  void part_ended(int part_error) {
    if (error == 0) error = part_error;
    if (--left > 1) return;
    if (left == 1 && error == 0 && ep->is_enabled_) {
      last.iov = {last_memory.iov.data(), last_memory.iov_count};
      return ep->start(last, to, is_read, shared_from_this());
    }
    ep->ended(report, error);
  }
};

namespace {

struct AccessRequest final : LinkRequest {
  std::shared_ptr<Ep> ep;
  Ep::Report report;
  Claim result;  // where the reply goes
  bool has_reply = false;
  std::unique_ptr<std::byte[]> bounce;  // for a large read into several pieces
  std::shared_ptr<Ep::Whole> whole;     // the operation that this is a part of

  void take_reply(std::span<const std::byte> bytes) override {
    has_reply = bytes.size() == result.capacity;
    if (has_reply) ep->scatter(result, 0, bytes);
  }

  void finish(int error) override {
    if (error == 0 && bounce) ep->scatter(result, 0, {bounce.get(), result.capacity});
    if (error == 0 && result.capacity > 0 && inbound == 0 && !has_reply) error = EIO;
    if (whole == nullptr) return ep->ended(report, error);
    ep->part_ended(report);
    whole->part_ended(error);
  }
};

// Receives the bytes of a peer's large write.
struct WriteArrival final : TransferArrival {
  std::shared_ptr<Ep> ep;
  std::uint64_t key = 0;
  RmaExtra extra;
  std::uint8_t flags = 0;

  void finish(int error) override {
    if (error == 0) ep->was_written(key, extra, flags);
  }
};

Claim claim_of(std::span<const iovec> iov) {
  Claim c;
  c.iov_count = iov.size();
  std::copy(iov.begin(), iov.end(), c.iov.begin());
  for (const iovec& piece : iov) c.capacity += piece.iov_len;
  return c;
}

// Returns the pieces that contain `length` bytes from `offset` on.
Claim slice(std::span<const iovec> iov, std::size_t offset, std::size_t length) {
  Claim c;
  for (const iovec& piece : iov) {
    const std::size_t skipped = std::min(offset, piece.iov_len);
    const std::size_t n = std::min(piece.iov_len - skipped, length - c.capacity);
    offset -= skipped;
    if (n > 0) c.iov[c.iov_count++] = {static_cast<std::byte*>(piece.iov_base) + skipped, n};
    c.capacity += n;
  }
  return c;
}

bool needs_copy(const AccessArgs& args) {
  return args.is_silent || (args.flags & FI_INJECT) != 0;
}

void gather(std::span<const iovec> iov, std::byte* to) {
  for (const iovec& piece : iov) {
    if (piece.iov_len > 0) std::memcpy(to, piece.iov_base, piece.iov_len);
    to += piece.iov_len;
  }
}

// Makes the request keep a copy of its bytes until they are sent.
void keep(LinkRequest& request, std::span<const iovec> iov, std::size_t length) {
  request.copy = std::make_unique_for_overwrite<std::byte[]>(length);
  request.copied = length;
  gather(iov, request.copy.get());
  request.pieces = {{request.copy.get(), length}};
}

}  // namespace

// --- this side ---------------------------------------------------------------------------------

ssize_t Ep::write(const AccessArgs& args) {
  if (const int error = check(args.flags, args.iov); error != 0) return error;
  Guard guard(link_);
  PortName to;
  if (const int error = resolve(args.to, to); error != 0) return error;
  if (is_full()) return -FI_EAGAIN;
  start_write(args, to, nullptr);
  return 0;
}

void Ep::start_write(const AccessArgs& args, PortName to, std::shared_ptr<Whole> whole) {
  const Claim source = claim_of(args.iov);
  const std::size_t length = source.capacity;
  auto request = std::make_unique<AccessRequest>();
  request->ep = shared_from_this();
  request->report = report_of(args.context, args.flags, args.is_silent, FI_RMA | FI_WRITE);
  request->to = to;
  Header header = header_to(to, MessageKind::Write, args.key);
  if (args.has_data) header.flags = kHasData;
  if (whole != nullptr && whole->left > 1) header.flags = kPart;
  request->whole = std::move(whole);
  const bool is_large =
      sizeof(Header) + sizeof(RmaExtra) + length > link_.peers().message_bytes(to.peer);
  request->pieces.assign(args.iov.begin(), args.iov.end());
  if (needs_copy(args) || (is_large && args.iov.size() > 1)) keep(*request, args.iov, length);
  if (is_large) {
    header.kind = MessageKind::WriteLarge;
    request->large = {static_cast<const std::byte*>(request->pieces[0].iov_base), length};
  } else {
    request->length = length;
  }
  const RmaExtra extra{args.address, length, args.data, 0, 0, {}};
  const Order::Operation operation{(args.flags & FI_FENCE) != 0, is_large};
  launch(std::move(request), operation, [this, header, extra](auto owned) {
    RmaExtra named = extra;
    named.request = link_.requests().enter(*owned);
    owned->set_head(MessageHead(header).add(named));
    link_.sender().submit(std::move(owned));
  });
}

Header Ep::header_to(PortName to, MessageKind kind, std::uint64_t tag) const {
  Header header;
  header.kind = kind;
  header.from_port = port_;
  header.to_port = to.port;
  header.tag = tag;
  return header;
}

ssize_t Ep::read(const AccessArgs& args) {
  if (const int error = check(args.flags, args.iov); error != 0) return error;
  Guard guard(link_);
  PortName to;
  if (const int error = resolve(args.to, to); error != 0) return error;
  if (is_full()) return -FI_EAGAIN;
  start_read(args, to, nullptr);
  return 0;
}

void Ep::start_read(const AccessArgs& args, PortName to, std::shared_ptr<Whole> whole) {
  auto request = std::make_unique<AccessRequest>();
  request->ep = shared_from_this();
  request->report = report_of(args.context, args.flags, args.is_silent, FI_RMA | FI_READ);
  request->to = to;
  request->result = claim_of(args.iov);
  const std::size_t length = request->result.capacity;
  Header header = header_to(to, MessageKind::Read, args.key);
  if (whole != nullptr && whole->left > 1) header.flags = kPart;
  request->whole = std::move(whole);
  const RmaExtra extra{args.address, length, 0, 0, 0, {}};
  const Order::Operation operation{.is_fenced = (args.flags & FI_FENCE) != 0};
  if (sizeof(Header) + length <= link_.peers().message_bytes(to.peer)) {
    launch(std::move(request), operation, [this, header, extra](auto owned) {
      RmaExtra named = extra;
      named.request = link_.requests().enter(*owned);
      owned->set_head(MessageHead(header).add(named));
      link_.sender().submit(std::move(owned));
    });
    return;
  }
  std::span<std::byte> memory(static_cast<std::byte*>(args.iov[0].iov_base), length);
  if (args.iov.size() > 1) {
    request->bounce = std::make_unique_for_overwrite<std::byte[]>(length);
    memory = {request->bounce.get(), length};
  }
  launch(std::move(request), operation, [this, header, extra, memory](auto owned) {
    link_.transfers().read_into(std::move(owned), header, extra, memory);
  });
}

void Ep::start(const AccessArgs& args, PortName to, bool is_read, std::shared_ptr<Whole> whole) {
  is_read ? start_read(args, to, std::move(whole)) : start_write(args, to, std::move(whole));
}

int Ep::check_ranges(const AccessArgs& args, std::span<const fi_rma_iov> ranges) const {
  if (const int error = check(args.flags, args.iov); error != 0) return error;
  if (ranges.empty() || ranges.data() == nullptr || ranges.size() > kMaxRemoteIov) {
    return -FI_EINVAL;
  }
  std::size_t left = claim_of(args.iov).capacity;
  for (const fi_rma_iov& range : ranges) {
    if (range.len > left) return -FI_EINVAL;
    left -= range.len;
  }
  return left == 0 ? 0 : -FI_EINVAL;
}

ssize_t Ep::access(const AccessArgs& args, std::span<const fi_rma_iov> ranges, bool is_read) {
  if (const int error = check_ranges(args, ranges); error != 0) return error;
  Guard guard(link_);
  PortName to;
  if (const int error = resolve(args.to, to); error != 0) return error;
  if (is_full()) return -FI_EAGAIN;
  const auto whole = std::make_shared<Whole>();
  whole->ep = shared_from_this();
  whole->report =
      report_of(args.context, args.flags, args.is_silent, FI_RMA | (is_read ? FI_READ : FI_WRITE));
  whole->is_read = is_read;
  whole->left = ranges.size();
  whole->to = to;
  std::size_t offset = 0;
  std::vector<std::pair<AccessArgs, Claim>> parts;
  for (const fi_rma_iov& range : ranges) {
    AccessArgs part = args;
    part.address = range.addr;
    part.key = range.key;
    parts.emplace_back(part, slice(args.iov, offset, range.len));
    offset += range.len;
  }
  std::tie(whole->last, whole->last_memory) = parts.back();
  Claim& memory = whole->last_memory;
  if (!is_read && needs_copy(args)) {
    whole->kept = std::make_unique_for_overwrite<std::byte[]>(memory.capacity);
    gather({memory.iov.data(), memory.iov_count}, whole->kept.get());
    memory.iov[0] = {whole->kept.get(), memory.capacity};
    memory.iov_count = 1;
  }
  parts.pop_back();
  for (auto& [part, piece] : parts) {
    part.has_data = false;
    part.iov = {piece.iov.data(), piece.iov_count};
    start(part, to, is_read, whole);
  }
  return 0;
}

ssize_t Ep::atomic(const AtomicArgs& args) {
  std::size_t most = 0;
  if (const int error = atomic_count(args.form, args.datatype, args.operation, &most); error != 0) {
    return error;
  }
  if (args.count == 0 || args.count > most) return -FI_EINVAL;
  if (const int error = check(args.access.flags, args.access.iov); error != 0) return error;
  Guard guard(link_);
  PortName to;
  if (const int error = resolve(args.access.to, to); error != 0) return error;
  if (is_full()) return -FI_EAGAIN;
  auto request = std::make_unique<AccessRequest>();
  request->ep = shared_from_this();
  const bool fetches = args.form != AtomicForm::Plain;
  request->report = report_of(args.access.context, args.access.flags, args.access.is_silent,
                              FI_ATOMIC | (fetches ? FI_READ : FI_WRITE));
  request->to = to;
  request->result = claim_of(args.result);
  std::vector<iovec> operands;
  if (args.operation != FI_ATOMIC_READ) {
    operands.assign(args.access.iov.begin(), args.access.iov.end());
  }
  operands.insert(operands.end(), args.compare.begin(), args.compare.end());
  request->length = 0;
  for (const iovec& piece : operands) request->length += piece.iov_len;
  keep(*request, operands, request->length);
  const Header header = header_to(to, MessageKind::Atomic, args.access.key);
  const AtomicExtra extra{args.access.address,
                          0,
                          static_cast<std::uint16_t>(args.count),
                          static_cast<std::uint8_t>(args.operation),
                          static_cast<std::uint8_t>(args.datatype),
                          args.form,
                          {}};
  const Order::Operation operation{.is_fenced = (args.access.flags & FI_FENCE) != 0};
  launch(std::move(request), operation, [this, header, extra](auto owned) {
    AtomicExtra named = extra;
    named.request = link_.requests().enter(*owned);
    owned->set_head(MessageHead(header).add(named));
    link_.sender().submit(std::move(owned));
  });
  return 0;
}

int Ep::atomic_count(AtomicForm form, fi_datatype datatype, fi_op operation, std::size_t* count) {
  const std::size_t each = atomic_bytes(form, operation, datatype);
  if (each == 0) return -FI_EOPNOTSUPP;
  const std::size_t room = link_.peers().smallest_message() - sizeof(Header) - sizeof(AtomicExtra);
  *count = room / (form == AtomicForm::Compare ? 2 * each : each);
  return 0;
}

int Ep::query_atomic(fid_domain* domain, fi_datatype datatype, fi_op operation,
                     fi_atomic_attr* attr, std::uint64_t flags) {
  AtomicForm form = AtomicForm::Plain;
  if ((flags & FI_FETCH_ATOMIC) != 0) form = AtomicForm::Fetch;
  if ((flags & FI_COMPARE_ATOMIC) != 0) form = AtomicForm::Compare;
  const std::size_t each = atomic_bytes(form, operation, datatype);
  if (each == 0) return -FI_EOPNOTSUPP;
  const std::size_t room = static_cast<Domain*>(domain)->link().peers().smallest_message() -
                           sizeof(Header) - sizeof(AtomicExtra);
  attr->size = each;
  attr->count = room / (form == AtomicForm::Compare ? 2 * each : each);
  return 0;
}

// --- the other side ----------------------------------------------------------------------------

void Ep::on_access(const IncomingMessage& in) {
  std::span<const std::byte> bytes = in.bytes;
  if (!is_enabled_) return;
  if (in.header.kind == MessageKind::Atomic) return on_atomic(in);
  const auto extra = take<RmaExtra>(bytes);
  if (!extra) return;
  if (in.header.kind == MessageKind::Read) return on_read(in, *extra);
  on_write(in, *extra, bytes);
}

void Ep::on_write(const IncomingMessage& in, const RmaExtra& extra,
                  std::span<const std::byte> bytes) {
  const bool is_large = in.header.kind == MessageKind::WriteLarge;
  std::span<std::byte> memory;
  int error = !is_large && bytes.size() != extra.length ? EINVAL : 0;
  if (error == 0) {
    error = domain_.locate(in.header.tag, extra.address, extra.length, FI_REMOTE_WRITE, memory);
  }
  if (error != 0 || !is_large || memory.empty()) {
    if (error == 0) {
      std::copy(bytes.begin(), bytes.end(), memory.begin());
      was_written(in.header.tag, extra, in.header.flags);
    }
    return link_.sender().send_done(in.from, extra.request, error);
  }
  auto arrival = std::make_unique<WriteArrival>();
  arrival->ep = shared_from_this();
  arrival->key = in.header.tag;
  arrival->extra = extra;
  arrival->flags = in.header.flags;
  link_.transfers().fetch(in.from, extra.request, memory, std::move(arrival));
}

void Ep::was_written(std::uint64_t key, const RmaExtra& extra, std::uint8_t flags) {
  if (!is_enabled_) return;  // the endpoint is closed, perhaps its domain as well
  if ((flags & kPart) != 0) return;
  if (Counter* const counter = domain_.counter_of(key); counter != nullptr) counter->add(1);
  if (counters_.remote_write != nullptr) counters_.remote_write->add(1);
  if ((flags & kHasData) == 0 || receive_cq_ == nullptr) return;
  Completion event;
  event.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
  event.length = extra.length;
  event.data = extra.data;
  receive_cq_->push(event);
}

void Ep::on_read(const IncomingMessage& in, const RmaExtra& extra) {
  std::span<std::byte> memory;
  int error = domain_.locate(in.header.tag, extra.address, extra.length, FI_REMOTE_READ, memory);
  const bool is_small = sizeof(Header) + extra.length <= link_.peers().message_bytes(in.from.peer);
  if (error == 0 && extra.inbound == 0 && !is_small) error = EMSGSIZE;
  if (error != 0) return link_.sender().send_done(in.from, extra.request, error);
  const bool is_part = (in.header.flags & kPart) != 0;
  if (counters_.remote_read != nullptr && !is_part) counters_.remote_read->add(1);
  if (extra.inbound != 0) return link_.transfers().answer_read(in.from, extra, memory);
  reply(in.from, extra.request, memory);
}

void Ep::on_atomic(const IncomingMessage& in) {
  std::span<const std::byte> bytes = in.bytes;
  const auto extra = take<AtomicExtra>(bytes);
  if (!extra) return;
  const auto operation = static_cast<fi_op>(extra->operation);
  const auto datatype = static_cast<fi_datatype>(extra->datatype);
  const std::size_t each = atomic_bytes(extra->form, operation, datatype);
  const std::size_t length = each * extra->count;
  const std::size_t operands = (operation != FI_ATOMIC_READ ? length : 0) +
                               (extra->form == AtomicForm::Compare ? length : 0);
  std::span<std::byte> memory;
  int error = each == 0 || length == 0 || bytes.size() != operands ? EINVAL : 0;
  const bool fetches = extra->form != AtomicForm::Plain;
  if (error == 0 && fetches &&
      sizeof(Header) + length > link_.peers().message_bytes(in.from.peer)) {
    error = EMSGSIZE;
  }
  const std::uint64_t access =
      operation == FI_ATOMIC_READ ? FI_REMOTE_READ : std::uint64_t{FI_REMOTE_WRITE};
  if (error == 0) {
    error = domain_.locate(in.header.tag, extra->address, length, access, memory);
  }
  if (error != 0) return link_.sender().send_done(in.from, extra->request, error);
  const std::vector<std::byte> before(memory.begin(), memory.end());
  const std::size_t first = operation != FI_ATOMIC_READ ? length : 0;
  apply_atomic(operation, datatype, memory, bytes.first(first), bytes.subspan(first));
  if (Counter* const counter = domain_.counter_of(in.header.tag); counter != nullptr) {
    counter->add(1);
  }
  if (counters_.remote_write != nullptr) counters_.remote_write->add(1);
  if (fetches) return reply(in.from, extra->request, before);
  link_.sender().send_done(in.from, extra->request, 0);
}

// Sends bytes back, and copies them if they cannot leave now.
void Ep::reply(PortName to, std::uint32_t request, std::span<const std::byte> bytes) {
  const MessageHead head(header_to(to, MessageKind::Reply, request));
  const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  if (link_.sender().try_send(to.peer, head.span(), {&piece, 1}, bytes.size())) return;

  struct ReplyRequest final : LinkRequest {
    void finish(int) override {}
  };

  auto late = std::make_unique<ReplyRequest>();
  late->to = to;
  late->length = bytes.size();
  keep(*late, {&piece, 1}, bytes.size());
  late->set_head(head);
  link_.sender().submit(std::move(late));
}

}  // namespace score::pm::fi
