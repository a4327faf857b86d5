#include "scored/control/timetables.hpp"

#include "base/limits.hpp"
#include "proto/frames/parse.hpp"
#include "scored/control/wire_ranges.hpp"

#include <utility>

namespace score::control {

namespace {

constexpr Duration kNoTimetableDue = std::chrono::seconds{10};
// The limit leaves room for the number of the bundle.
constexpr gang::TimetableRelay::Limits kLimits{.bundle_bytes = 1'200, .tries = 4};
static_assert(kLimits.bundle_bytes + 16 <= kMostMessageBytes);
static_assert((1 + 2) * kLimits.retry < limits::kMinTimetableLead,
              "a timetable that is lost twice on one hop is in time everywhere");

}  // namespace

wire::ControlTimetables to_wire(const gang::TimetableRelay::Bundle& bundle) {
  wire::ControlTimetables message;
  message.set_id(bundle.id);
  for (const auto& part : bundle.parts) {
    auto& out = *message.add_parts();
    add_ranges(part.to, part.to.ranges().size(), *out.mutable_to());
    out.set_timetable(part.body);
    out.mutable_tags()->Add(part.tags.begin(), part.tags.end());
  }
  return message;
}

wire::ControlTimetablesTaken to_wire(const gang::TimetableRelay::Ack& ack) {
  wire::ControlTimetablesTaken message;
  message.set_id(ack.id);
  message.set_is_confirmed(ack.is_confirmed);
  add_ranges(ack.missing, ack.missing.ranges().size(), *message.mutable_missing());
  message.set_proof(ack.proof);
  return message;
}

gang::TimetableRelay::Bundle from_wire(const wire::ControlTimetables& message) {
  gang::TimetableRelay::Bundle bundle{message.id(), {}};
  for (const auto& part : message.parts()) {
    bundle.parts.push_back(
        {ranges_of(part.to()), part.timetable(), {part.tags().begin(), part.tags().end()}});
  }
  return bundle;
}

gang::TimetableRelay::Ack from_wire(const wire::ControlTimetablesTaken& message) {
  return {message.id(), message.is_confirmed(), ranges_of(message.missing()), message.proof()};
}

// The first number is the time, because a node may join the same roster twice. It sends less than
// one bundle per nanosecond.
Timetables::Tree::Tree(const ControlNetwork& network, TimePoint now)
    : keys(network.keys()),
      positions(network.roster()),
      shape(positions.count(), network.roster().fanout),
      relay(shape, *positions.of_rank(network.rank()), kLimits,
            {[this](const std::string& body, std::optional<std::uint64_t> tag) {
               return accept(body, tag);
             },
             [this](gang::Position position, const std::string& body) {
               return keys.tag_from(positions.rank_of(position), receipt_of(digest_of(body)));
             }},
            static_cast<std::uint64_t>(now.time_since_epoch().count())) {}

// Without keys the head is an older one, and the member takes timetables only over TLS.
std::optional<std::uint64_t> Timetables::Tree::accept(const std::string& body,
                                                      std::optional<std::uint64_t> tag) {
  const proto::Digest& digest = digest_of(body);
  if (!keys.has(kHeadRank) || tag != keys.tag_from(kHeadRank, order_of(digest))) {
    return std::nullopt;
  }
  return keys.tag_to(kHeadRank, receipt_of(digest));
}

const proto::Digest& Timetables::Tree::digest_of(const std::string& body) {
  if (body != last_body || body.empty()) {
    last_body = body;
    last_digest = proto::digest_of(body);
  }
  return last_digest;
}

// Positions and ranks have the same order.
void Timetables::Tree::add_tags(gang::TimetableRelay::Part& part) {
  const TimetableBytes order = order_of(digest_of(part.body));
  for (const gang::PositionRange& range : part.to.ranges()) {
    for (gang::Position p = range.begin; p < range.end; ++p) {
      part.tags.push_back(keys.tag_to(positions.rank_of(p), order));
    }
  }
}

Timetables::Timetables(asio::any_io_executor io, Clock& clock, ControlNetwork& network,
                       Handlers handlers)
    : clock_(clock),
      network_(network),
      handlers_(std::move(handlers)),
      alarm_(std::move(io), clock) {}

void Timetables::roster_changed() {
  tree_.reset();
  for (const auto& [number, publication] : std::exchange(pending_, {})) {
    send_all_by_tls(publication);
  }
  if (!network_.is_joined() || !network_.roster().has(kHeadRank)) return;
  tree_ = std::make_unique<Tree>(network_, clock_.now());
}

void Timetables::send_all_by_tls(const Publication& publication) const {
  for (const auto& [timetable, ranks] : publication) {
    for (const std::uint32_t rank : ranks) handlers_.send_by_tls(rank, timetable);
  }
}

void Timetables::publish(Publication publication) {
  if (publication.empty()) return;
  if (!tree_) return send_all_by_tls(publication);
  const gang::Positions unheard = handlers_.unheard();
  std::vector<gang::TimetableRelay::Part> parts;
  for (auto& [timetable, ranks] : publication) {
    gang::TimetableRelay::Part part{{}, timetable};
    std::erase_if(ranks, [&, &timetable = timetable](std::uint32_t rank) {
      const auto to = tree_->positions.of_rank(rank);
      const bool is_heard = to && !unheard.contains(*to);
      if (is_heard) part.to.add({*to, *to + 1});
      if (!is_heard) handlers_.send_by_tls(rank, timetable);
      return !is_heard;
    });
    if (ranks.empty()) continue;
    tree_->add_tags(part);
    parts.push_back(std::move(part));
  }
  if (parts.empty()) return;
  const std::uint32_t number = ++last_number_;
  pending_[number] = std::move(publication);
  carry_out(tree_->relay.publish(number, parts, unheard, clock_.now()));
}

bool Timetables::handle(std::uint32_t source, const Message& message) {
  const bool is_bundle = message.type == proto::FrameType::ControlTimetables;
  if (!is_bundle && message.type != proto::FrameType::ControlTimetablesTaken) return false;
  const auto from = tree_ ? tree_->positions.of_rank(source) : std::nullopt;
  if (!from) return true;
  const TimePoint now = clock_.now();
  if (is_bundle) {
    const auto bundle = proto::parse<wire::ControlTimetables>(message.payload, "timetables");
    if (bundle) {
      carry_out(tree_->relay.hear(*from, from_wire(*bundle), handlers_.unheard(), now));
    }
  } else {
    const auto ack = proto::parse<wire::ControlTimetablesTaken>(message.payload, "confirmation");
    if (ack) carry_out(tree_->relay.hear(*from, from_wire(*ack), now));
    alarm_.again();  // without the deadline of the next try
  }
  return true;
}

// Delivers last, because handling a timetable may change the roster.
void Timetables::carry_out(const gang::TimetableRelay::Actions& actions) {
  for (const auto& [to, bundle] : actions.bundles) {
    network_.send(tree_->positions.rank_of(to), to_wire(bundle));
  }
  for (const auto& [to, ack] : actions.acks) {
    network_.send(tree_->positions.rank_of(to), to_wire(ack));
  }
  alarm_.at(tree_->relay.next_deadline());
  for (const auto& [number, missing] : actions.missing) {
    for (const auto& [timetable, ranks] : pending_[number]) {
      for (const std::uint32_t rank : ranks) {
        if (missing.contains(*tree_->positions.of_rank(rank))) {
          handlers_.send_by_tls(rank, timetable);
        }
      }
    }
  }
  for (const std::uint32_t number : actions.ended) pending_.erase(number);
  for (const std::string& timetable : actions.deliver) handlers_.deliver(timetable);
}

asio::awaitable<void> Timetables::run() {
  for (;;) {
    const TimePoint now = clock_.now();
    const auto due = tree_ ? tree_->relay.next_deadline() : std::nullopt;
    if (due && now >= *due) carry_out(tree_->relay.advance(now));
    const auto next = tree_ ? tree_->relay.next_deadline() : std::nullopt;
    co_await alarm_.sleep_until(next.value_or(now + kNoTimetableDue));
  }
}

}  // namespace score::control
