// Implements the endpoint's part of the fast path of short messages: a send that injects at most 1
// KB, and a receive of one piece that the message fits, with no counter to advance. It skips the
// steps that these never need: splitting, announcing, several pieces, requests that wait, reports
// of a send's end. Everything else takes ep_send.cpp and ep_receive.cpp. If a function here returns
// false, it has done nothing.
//
// provider_fast_test.cpp plays one sequence of receives with and without the fast path and compares
// the completions. docs/adr/0038 explains the gain.
#include "pmlib/fi/endpoint/ep.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace score::pm::fi {

namespace {

constexpr std::size_t kShortBytes = 1024;  // chosen

}  // namespace

bool Ep::send_fast(const Short& m, const void* buffer, std::size_t length) {
  PortName to;
  const bool is_plain =
      m.data <= UINT16_MAX && length <= std::min(kShortBytes, inject_bytes_) && is_enabled_;
  if (!is_plain || !av_->find(m.peer, to) || must_wait(to, 0)) return false;
  std::byte* const at = link_.sender().lend(to.peer, sizeof(Header) + length);
  if (at == nullptr) return false;
  const std::uint8_t flags = m.has_data ? kSmallData : 0;
  const Header header{m.kind, flags, port_, to.port, static_cast<std::uint16_t>(m.data), m.tag};
  std::memcpy(at, &header, sizeof header);
  if (length == sizeof(std::uint64_t)) {  // a number: copied without a call
    std::memcpy(at + sizeof header, buffer, sizeof(std::uint64_t));
  } else if (length > 0) {
    std::memcpy(at + sizeof header, buffer, length);
  }
  return link_.sender().send_lent();
}

ssize_t Ep::inject(const Short& m, const void* buffer, std::size_t length) {
  {
    Guard guard(link_);
    if (counters_.send == nullptr && send_fast(m, buffer, length)) [[likely]]
      return 0;
  }
  const iovec iov{const_cast<void*>(buffer), length};
  SendArgs args;
  args.kind = m.kind;
  args.iov = {&iov, 1};
  args.to = m.peer;
  args.tag = m.tag;
  args.data = m.data;
  args.has_data = m.has_data;
  args.is_silent = true;
  args.flags = send_flags_;
  return send(args);
}

// Does the work of claim(), scatter() and received() for such a message.
bool Ep::take_fast(const IncomingMessage& in) {
  MatchTable& table = table_of(in.header.kind);
  const std::size_t length = in.bytes.size();
  auto* const r = static_cast<Receive*>(table.find_receive(in.from.number(), in.header.tag));
  const bool is_plain = r != nullptr && length <= r->length && r->iov_count == 1 && !r->is_multi &&
                        receive_cq_ != nullptr && counters_.receive == nullptr &&
                        !reports_unknown_senders_;
  if (!is_plain) return false;
  table.remove(*r);
  r->own.unlink();
  r->is_posted = false;
  void* const buffer = r->iov[0].iov_base;
  if (length == sizeof(std::uint64_t)) {  // a number: copied without a call
    std::memcpy(buffer, in.bytes.data(), sizeof(std::uint64_t));
  } else if (length > 0) {
    std::memcpy(buffer, in.bytes.data(), length);
  }
  free_receive(*r);
  if (!r->reports) return true;
  const bool has_data = in.header.flags != 0;
  receive_cq_->push(Completion{.context = r->context,
                               .flags = r->flags | (has_data ? FI_REMOTE_CQ_DATA : 0),
                               .length = length,
                               .buffer = buffer,
                               .data = has_data ? in.header.status : std::uint64_t{0},
                               .tag = in.header.tag,
                               .from = in.from,
                               .av = av_});
  return true;
}

ssize_t Ep::receive_one(const Short& wanted, std::uint64_t ignore, const iovec& to, void* context) {
  const std::uint64_t flags = receive_flags_;
  {
    Guard guard(link_);
    PortName from;
    const bool is_directed = wanted.peer != FI_ADDR_UNSPEC && (caps_ & FI_DIRECTED_RECV) != 0;
    const bool is_easy = is_enabled_ && tagged_.early_count() == 0 && !spare_.empty() &&
                         (flags & ~(FI_COMPLETION | FI_MULTI_RECV)) == 0;
    if (is_easy && (!is_directed || av_->find(wanted.peer, from))) [[likely]] {
      Receive& r = *spare_.back();
      spare_.pop_back();
      r.source = is_directed ? from.number() : kAnySource;
      r.tag = wanted.tag;
      r.ignore = ignore;
      r.iov[0] = to;
      r.iov_count = 1;
      r.length = to.iov_len;
      r.context = context;
      r.flags = FI_RECV | FI_TAGGED;
      r.reports = !is_selective_receive_ || (flags & FI_COMPLETION) != 0;
      r.is_posted = true;
      r.is_multi = false;
      r.used = r.unfinished = 0;
      tagged_.post(r);
      receives_.append(r.own);
      return 0;
    }
  }
  return receive({MessageKind::Tagged, {&to, 1}, wanted.peer, wanted.tag, ignore, context, flags});
}

}  // namespace score::pm::fi
