// Sends a message at once, without a LinkRequest, if it fits one PM message. Otherwise it becomes a
// LinkRequest.
#include "pmlib/fi/endpoint/ep.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace score::pm::fi {

namespace {

constexpr std::uint64_t kWantsDoneFlags =
    FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE;

struct SendRequest final : LinkRequest {
  std::shared_ptr<Ep> ep;
  Ep::Report report;

  void finish(int error) override { ep->ended(report, error); }

  [[nodiscard]] bool is_cancellable(const void* endpoint, const void* context) const override {
    return ep.get() == endpoint && report.completion.context == context;
  }
};

std::size_t length_of(std::span<const iovec> iov) {
  std::size_t n = 0;
  for (const iovec& piece : iov) n += piece.iov_len;
  return n;
}

// Makes the request own its bytes, in one piece.
void copy_pieces(LinkRequest& request, std::span<const iovec> iov, std::size_t length) {
  request.copy = std::make_unique_for_overwrite<std::byte[]>(length);
  request.copied = length;
  std::byte* to = request.copy.get();
  for (const iovec& piece : iov) {
    if (piece.iov_len > 0) std::memcpy(to, piece.iov_base, piece.iov_len);
    to += piece.iov_len;
  }
}

MessageHead head_of(const Header& header, const Extra& extra) {
  MessageHead head(header);
  if (header.flags != 0) head.add(extra);
  return head;
}

}  // namespace

int Ep::resolve(fi_addr_t address, PortName& port) const {
  if (!is_enabled_ || av_ == nullptr) return -FI_EOPBADSTATE;
  return av_->find(address, port) ? 0 : -FI_EINVAL;
}

int Ep::check(std::uint64_t flags, std::span<const iovec> iov) const {
  if (iov.size() > kMaxIov || (iov.data() == nullptr && !iov.empty())) return -FI_EINVAL;
  return (flags & FI_FENCE) != 0 && order_ == nullptr ? -FI_EINVAL : 0;
}

// Returns true if too much is in flight; the caller must try again later.
bool Ep::is_full() {
  const auto has_room = [this] {
    const std::size_t held = order_ != nullptr ? order_->held_count() : 0;
    return link_.requests().waiting().requests + held < kMostRequests &&
           link_.requests().waiting().bytes < kMostCopied;
  };
  if (has_room()) return false;
  link_.progress();
  return !has_room();
}

Ep::Report Ep::report_of(void* context, std::uint64_t flags, bool is_silent,
                         std::uint64_t event) const {
  Report report;
  report.completion.context = context;
  report.completion.flags = event;
  report.reports = !is_silent && (!is_selective_send_ || (flags & FI_COMPLETION) != 0);
  report.counter = event & (FI_SEND | FI_READ | FI_WRITE);
  return report;
}

void Ep::ended(const Report& report, int error) {
  if (send_cq_ != nullptr) {
    if (error != 0) {
      send_cq_->push(CompletionError{report.completion, error, 0});
    } else if (report.reports) {
      send_cq_->push(report.completion);
    }
  }
  Counter* counter = counters_.send;
  if (report.counter == FI_READ) counter = counters_.read;
  if (report.counter == FI_WRITE) counter = counters_.write;
  if (counter != nullptr) {
    error != 0 ? counter->add_error(1) : counter->add(1);
  }
  part_ended(report);
}

void Ep::part_ended(const Report& report) {
  if (report.peer != Report::kUncounted && order_ != nullptr)
    order_->ended(report.peer, report.operation);
}

ssize_t Ep::send(const SendArgs& args) {
  if (const int error = check(args.flags, args.iov); error != 0) return error;
  Guard guard(link_);
  PortName to;
  if (const int error = resolve(args.to, to); error != 0) return error;
  const std::size_t length = length_of(args.iov);
  const bool injects = args.is_silent || (args.flags & FI_INJECT) != 0;
  if (injects && length > inject_bytes_) return -FI_EINVAL;
  Header header;
  header.kind = args.kind;
  header.flags = args.has_data ? kHasData : 0;
  header.from_port = port_;
  header.to_port = to.port;
  header.tag = args.tag;
  // A message of the inject functions has no completion that could wait for the peer.
  if (!args.is_silent && (args.flags & kWantsDoneFlags) != 0) header.flags |= kWantsDone;
  if ((header.flags & kWantsDone) == 0 && !must_wait(to, args.flags) &&
      sizeof(Header) + sizeof(Extra) + length <= link_.peers().message_bytes(to.peer)) {
    MessageHead head(header);
    if (args.has_data) head.add(Extra{args.data, length, 0, 0});
    if (link_.sender().try_send(to.peer, head.span(), args.iov, length)) {
      if (args.is_silent && counters_.send == nullptr) return 0;  // nothing to report
      const std::uint64_t event = FI_SEND | (args.kind == MessageKind::Tagged ? FI_TAGGED : FI_MSG);
      ended(report_of(args.context, args.flags, args.is_silent, event), 0);
      return 0;
    }
  }
  return send_slowly(args, to, header, length);
}

ssize_t Ep::send_slowly(const SendArgs& args, PortName to, Header header, std::size_t length) {
  if (is_full()) return -FI_EAGAIN;
  const std::uint64_t event = FI_SEND | (args.kind == MessageKind::Tagged ? FI_TAGGED : FI_MSG);
  auto request = std::make_unique<SendRequest>();
  request->ep = shared_from_this();
  request->report = report_of(args.context, args.flags, args.is_silent, event);
  request->to = to;
  const bool copies = args.is_silent || (args.flags & FI_INJECT) != 0;
  const bool is_long = !copies && length > link_.sender().eager_bytes(to.peer);
  const bool is_answered_anyway = !copies && (header.flags & kWantsDone) != 0;
  const bool is_unasked = (is_long || (is_answered_anyway && length > kUncopiedBytes)) &&
                          args.iov.size() == 1 && link_.sender().may_go_unasked(to.peer, length);
  const bool is_large = is_long && !is_unasked;
  const bool fits = sizeof(Header) + sizeof(Extra) + length <= link_.peers().message_bytes(to.peer);
  if (is_large) {
    header.flags |= kLarge;
  } else if (!fits) {
    header.flags |= kSplit;
  }
  if (is_unasked) {
    header.flags |= kWantsDone;
    request->unasked = length;
  }
  request->pieces.assign(args.iov.begin(), args.iov.end());
  request->length = length;
  const bool is_answered = is_large || (header.flags & kWantsDone) != 0;
  const Extra extra{args.data, length, 0, 0};
  request->set_head(head_of(header, extra));
  if (!is_answered && order_ == nullptr && link_.sender().send_at_once(*request)) {
    request->finish(0);
    return 0;
  }
  if (copies || (is_large && args.iov.size() > 1)) {
    copy_pieces(*request, args.iov, length);
    request->pieces = {{request->copy.get(), length}};
  }
  if (is_large) {
    request->large = {static_cast<const std::byte*>(request->pieces[0].iov_base), length};
    request->length = 0;
  }
  const Order::Operation operation{.is_fenced = (args.flags & FI_FENCE) != 0};
  launch(std::move(request), operation, [this, header, extra, is_answered](auto owned) {
    Extra named = extra;
    if (is_answered) {
      named.request = link_.requests().enter(*owned);
      owned->set_head(head_of(header, named));
    }
    link_.sender().submit(std::move(owned));
  });
  return 0;
}

}  // namespace score::pm::fi
