#include "scored/shared/leases/lease_wire.hpp"

#include "base/text.hpp"
#include "proto/frames/parse.hpp"

#include <fmt/format.h>

#include <vector>

namespace score::leases {
namespace {

constexpr std::uint64_t kMostCount = std::uint64_t{1} << 60U;
constexpr std::uint32_t kAllHeads = (1U << gang::kHeads) - 1;

wire::LogMark mark_to_wire(const gang::LogMark& mark) {
  wire::LogMark out;
  out.set_term(mark.term.value());
  out.set_version(mark.version);
  out.set_heads(mark.heads);
  return out;
}

bool is_sane(const wire::LogMark& mark) {
  return mark.term() < kMostCount && mark.version() < kMostCount && mark.heads() <= kAllHeads;
}

bool is_sane(const wire::LogPosition& position) {
  return position.term() < kMostCount && position.sequence() < kMostCount;
}

gang::LogMark mark_from_wire(const wire::LogMark& mark) {
  return {Epoch(mark.term()), mark.version(), mark.heads()};
}

gang::LogPosition position_from_wire(const wire::LogPosition& position) {
  return {Epoch(position.term()), position.sequence()};
}

}  // namespace

wire::LogPosition to_wire(gang::LogPosition position) {
  wire::LogPosition out;
  out.set_term(position.term.value());
  out.set_sequence(position.sequence);
  return out;
}

wire::LeaseRequest to_wire(const gang::LeaseRequest& request) {
  wire::LeaseRequest out;
  out.set_head(request.head);
  out.set_term(request.term.value());
  out.set_wants(request.wants);
  *out.mutable_mark() = mark_to_wire(request.mark);
  *out.mutable_position() = to_wire(request.position);
  out.set_sent_ns(request.sent.time_since_epoch().count());
  return out;
}

wire::LeaseReply to_wire(const gang::LeaseReply& reply) {
  wire::LeaseReply out;
  out.set_granted(reply.granted);
  out.set_is_free(reply.is_free);
  out.set_term(reply.term.value());
  out.set_asked_term(reply.asked.value());
  *out.mutable_mark() = mark_to_wire(reply.mark);
  *out.mutable_position() = to_wire(reply.position);
  out.set_sent_ns(reply.sent.time_since_epoch().count());
  return out;
}

Result<gang::LeaseRequest> read_request(const proto::InFrame& frame) {
  const auto message = proto::parse<wire::LeaseRequest>(frame);
  if (!message) return message.error();
  if (message->head() >= gang::kHeads || message->term() >= kMostCount ||
      !is_sane(message->mark()) || !is_sane(message->position())) {
    return fail(Errc::Malformed, "LeaseRequest: a number is out of range");
  }
  gang::LeaseRequest request;
  request.head = message->head();
  request.term = Epoch(message->term());
  request.wants = message->wants();
  request.mark = mark_from_wire(message->mark());
  request.position = position_from_wire(message->position());
  request.sent = TimePoint(Duration(message->sent_ns()));
  return request;
}

Result<gang::LeaseReply> read_reply(const proto::InFrame& frame) {
  const auto message = proto::parse<wire::LeaseReply>(frame);
  if (!message) return message.error();
  if (message->term() >= kMostCount || message->asked_term() >= kMostCount ||
      !is_sane(message->mark()) || !is_sane(message->position())) {
    return fail(Errc::Malformed, "LeaseReply: a number is out of range");
  }
  gang::LeaseReply reply;
  reply.granted = message->granted();
  reply.is_free = message->is_free();
  reply.term = Epoch(message->term());
  reply.asked = Epoch(message->asked_term());
  reply.mark = mark_from_wire(message->mark());
  reply.position = position_from_wire(message->position());
  reply.sent = TimePoint(Duration(message->sent_ns()));
  return reply;
}

Result<gang::LogPosition> from_wire(const wire::LogPosition& position) {
  if (!is_sane(position)) return fail(Errc::Malformed, "a log position is out of range");
  return position_from_wire(position);
}

std::string format_grant(const StoredGrant& grant) {
  const std::string holder = grant.holder ? std::to_string(*grant.holder) : "-";
  return fmt::format("{} {} {} {} {}\n", grant.term, holder, grant.mark.term, grant.mark.version,
                     grant.mark.heads);
}

Result<StoredGrant> parse_grant(std::string_view text) {
  const auto words = split(trim(text), ' ');
  if (words.size() != 5) return fail(Errc::Malformed, "not five words");
  const auto number = [](std::string_view word, std::uint64_t below) -> std::uint64_t {
    const auto value = parse_number<std::uint64_t>(word);
    return value && *value < below ? *value : below;
  };
  StoredGrant grant;
  const std::uint64_t term = number(words[0], kMostCount);
  const std::uint64_t mark_term = number(words[2], kMostCount);
  const std::uint64_t version = number(words[3], kMostCount);
  const std::uint64_t heads = number(words[4], kAllHeads + 1);
  const bool has_holder = words[1] != "-";
  const std::uint64_t holder = has_holder ? number(words[1], gang::kHeads) : 0;
  if (term == kMostCount || mark_term == kMostCount || version == kMostCount || heads > kAllHeads ||
      holder == gang::kHeads) {
    return fail(Errc::Malformed, "a number is out of range");
  }
  grant.term = Epoch(term);
  if (has_holder) grant.holder = static_cast<gang::HeadIndex>(holder);
  grant.mark = {Epoch(mark_term), version, static_cast<std::uint32_t>(heads)};
  return grant;
}

}  // namespace score::leases
