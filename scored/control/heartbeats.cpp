#include "scored/control/heartbeats.hpp"

#include "proto/frames/parse.hpp"
#include "scored/control/relayed_clock.hpp"
#include "scored/control/wire_ranges.hpp"

#include <algorithm>
#include <array>

namespace score::control {

namespace {

constexpr gang::BeatTiming kTiming{};
constexpr Duration kNothingDue = std::chrono::seconds{10};
// The limit lets a heartbeat fit its datagram. Members of further ranges count as heard in the
// meantime.
constexpr std::size_t kMostRanges = 90;

std::int64_t number(TimePoint time) {
  return time.time_since_epoch().count();
}

TimePoint time(std::int64_t number) {
  return TimePoint(Duration(number));
}

// Returns the next whole period of the machine's clock, at which the node does its other regular
// work too, a little earlier. Asio sets the kernel's timer only for a new first deadline. So when
// the answer has arrived, the wake-up for the next try is dropped.
TimePoint next_period(TimePoint now) {
  constexpr Duration kFirst = std::chrono::microseconds{1};
  const auto periods = (now + kFirst).time_since_epoch() / kTiming.period;
  return TimePoint((periods + 1) * kTiming.period) - kFirst;
}

wire::ControlAnswer answer_to(const wire::ControlBeat& beat,
                              const gang::BeatListener::Reply& reply) {
  wire::ControlAnswer answer;
  answer.set_node_sent_ns(beat.node_sent_ns());
  if (reply.go_back) answer.set_go_back(*reply.go_back + 1);
  return answer;
}

gang::Positions unheard_of(const gang::SubtreeSummary& summary) {
  gang::Positions all = summary.silent;
  all.add(summary.unknown);
  return all;
}

void append_ranks(const gang::Positions& some, const Positions& positions,
                  std::vector<std::uint32_t>& ranks) {
  for (const auto& range : some.ranges()) {
    for (gang::Position p = range.begin; p < std::min(range.end, positions.count()); ++p) {
      ranks.push_back(positions.rank_of(p));
    }
  }
}

}  // namespace

void to_wire(const gang::SubtreeSummary& summary, wire::ControlBeat& beat) {
  add_ranges(summary.silent, kMostRanges, *beat.mutable_silent());
  add_ranges(summary.unknown, kMostRanges, *beat.mutable_unknown());
}

gang::SubtreeSummary from_wire(const wire::ControlBeat& beat) {
  return {ranges_of(beat.silent()), ranges_of(beat.unknown())};
}

// ---- The node -----------------------------------------------------------------------------------

NodeHeartbeats::Tree::Tree(const Roster& roster, std::uint32_t rank, TimePoint now)
    : positions(roster),
      shape(positions.count(), roster.fanout),
      self(*positions.of_rank(rank)),
      sender(shape, self, kTiming, next_period(now)),
      listener(shape, self, kTiming, now) {
  sender.hasten(now);
}

NodeHeartbeats::NodeHeartbeats(asio::any_io_executor io, Clock& clock, ControlNetwork& network,
                               const gang::ClockFilter& cluster_clock, Handlers handlers)
    : clock_(clock),
      network_(network),
      cluster_clock_(cluster_clock),
      handlers_(std::move(handlers)),
      alarm_(std::move(io), clock) {}

void NodeHeartbeats::roster_changed() {
  tree_.reset();
  hears_nothing_ = false;
  const bool has_head = network_.is_joined() && network_.roster().has(kHeadRank);
  if (!has_head || network_.rank() == kHeadRank) return;
  tree_ = std::make_unique<Tree>(network_.roster(), network_.rank(), clock_.now());
  advance();
}

void NodeHeartbeats::advance() {
  if (!tree_) return;
  const TimePoint now = clock_.now();
  gang::BeatSender& sender = tree_->sender;
  if (tree_->listener.advance(now)) sender.hasten(now);
  if (now >= sender.next_deadline()) {
    const auto actions = sender.advance(now);
    if (actions.beat) send_beat(tree_->positions.rank_of(actions.beat->to), actions.beat->sent);
    if (actions.beat_by_tls) handlers_.beat_by_tls();
    if (actions.doubts) doubt(now);
  }
  TimePoint next = sender.next_deadline();
  if (const auto other = tree_->listener.next_deadline()) next = std::min(next, *other);
  alarm_.at(next);
}

void NodeHeartbeats::send_beat(std::uint32_t rank, TimePoint sent) {
  wire::ControlBeat beat;
  beat.set_node_sent_ns(number(sent));
  beat.set_is_deaf(tree_->sender.is_deaf() || hears_nothing_);
  beat.set_hears_nothing(hears_nothing_);
  to_wire(tree_->listener.summary(), beat);
  network_.send(rank, beat);
}

// The route to the head may work although the route back is cut, so the head is notified at once,
// past the tree.
void NodeHeartbeats::doubt(TimePoint now) {
  hears_nothing_ = handlers_.hears_nothing();
  if (hears_nothing_) send_beat(kHeadRank, now);
}

bool NodeHeartbeats::handle(std::uint32_t source, const Message& message) {
  const TimePoint received = clock_.now();
  const bool is_beat = message.type == proto::FrameType::ControlBeat;
  if (!is_beat && message.type != proto::FrameType::ControlAnswer) return false;
  const auto from = tree_ ? tree_->positions.of_rank(source) : std::nullopt;
  if (!from) return true;
  if (is_beat) {
    const auto beat = proto::parse<wire::ControlBeat>(message.payload, "heartbeat");
    if (beat) on_beat(*from, *beat, received);
  } else {
    const auto answer = proto::parse<wire::ControlAnswer>(message.payload, "answer");
    if (answer) on_answer(*from, *answer, received);
    alarm_.again();  // without the deadline of the next try
  }
  advance();
  return true;
}

void NodeHeartbeats::on_beat(gang::Position from, const wire::ControlBeat& beat,
                             TimePoint received) {
  if (!tree_->shape.is_below(from, tree_->self)) return;
  const std::optional<gang::BeatListener::Reply> reply =
      beat.is_deaf() ? gang::BeatListener::Reply()
                     : tree_->listener.hear(from, from_wire(beat), received);
  if (!reply) return;
  wire::ControlAnswer answer = answer_to(beat, *reply);
  answer.set_is_linked(tree_->sender.is_linked());
  if (cluster_clock_.synchronised()) {
    const TimePoint sent = clock_.now();
    answer.set_received_ns(number(cluster_clock_.to_cluster(received)));
    answer.set_sent_ns(number(cluster_clock_.to_cluster(sent)));
    answer.set_error_ns(cluster_clock_.error_bound(sent).count());
  }
  network_.send(tree_->positions.rank_of(from), answer);
}

void NodeHeartbeats::on_answer(gang::Position from, const wire::ControlAnswer& answer,
                               TimePoint received) {
  gang::BeatSender::Answer said{time(answer.node_sent_ns()), answer.is_linked(), std::nullopt};
  if (answer.go_back() != 0) said.go_back = answer.go_back() - 1;
  const bool is_first = tree_->sender.answered(from, said, received);
  if (is_first && std::exchange(hears_nothing_, false)) {
    send_beat(kHeadRank, received);
    handlers_.beat_by_tls();
  }
  if (!is_first || answer.sent_ns() == 0) return;
  const gang::ClockSample sample{said.sent, time(answer.received_ns()), time(answer.sent_ns()),
                                 received, Duration(answer.error_ns())};
  const bool is_of_head = tree_->positions.rank_of(from) == kHeadRank;
  if (!is_of_head && contradicts(cluster_clock_, sample)) return handlers_.beat_by_tls();
  handlers_.clock(sample);
}

gang::Positions NodeHeartbeats::unheard() const {
  return tree_ ? unheard_of(tree_->listener.summary()) : gang::Positions();
}

asio::awaitable<void> NodeHeartbeats::run() {
  for (;;) {
    advance();
    TimePoint next = clock_.now() + kNothingDue;
    if (tree_) {
      next = tree_->sender.next_deadline();
      if (const auto other = tree_->listener.next_deadline()) next = std::min(next, *other);
    }
    co_await alarm_.sleep_until(next);
  }
}

// ---- The head -----------------------------------------------------------------------------------

HeadHeartbeats::Tree::Tree(const Roster& roster, TimePoint now)
    : positions(roster), shape(positions.count(), roster.fanout), verdicts(shape, kTiming, now) {}

HeadHeartbeats::HeadHeartbeats(asio::any_io_executor io, Clock& clock, ControlNetwork& network,
                               Handler handler)
    : clock_(clock),
      network_(network),
      handler_(std::move(handler)),
      alarm_(std::move(io), clock) {}

void HeadHeartbeats::roster_changed() {
  tree_.reset();
  if (!network_.is_joined() || !network_.roster().has(kHeadRank)) return;
  tree_ = std::make_unique<Tree>(network_.roster(), clock_.now());
  alarm_.at(tree_->verdicts.next_deadline());
}

bool HeadHeartbeats::handle(std::uint32_t source, const Message& message) {
  const TimePoint received = clock_.now();
  if (message.type != proto::FrameType::ControlBeat) return false;
  const auto from = tree_ ? tree_->positions.of_rank(source) : std::nullopt;
  const auto beat = proto::parse<wire::ControlBeat>(message.payload, "heartbeat");
  if (!from || !beat) return true;
  gang::TreeVerdicts::Findings findings;
  gang::BeatListener::Reply reply;
  News news;
  (beat->is_deaf() ? news.deaf : news.hearing) = source;
  if (beat->is_deaf() && !beat->hears_nothing()) news.deaf.reset();  // TLS may still work
  if (!beat->is_deaf()) {
    const auto heard = tree_->verdicts.hear(*from, from_wire(*beat), received, findings);
    if (!heard) return true;
    reply = *heard;
  }
  wire::ControlAnswer answer = answer_to(*beat, reply);
  answer.set_is_linked(true);
  answer.set_received_ns(number(received));
  answer.set_sent_ns(number(clock_.now()));
  network_.send(source, answer);
  alarm_.at(tree_->verdicts.next_deadline());
  report(findings, std::move(news));
  return true;
}

void HeadHeartbeats::report(const gang::TreeVerdicts::Findings& findings, News news) {
  if (findings.alive.empty() && findings.silent.empty() && !news.deaf && !news.hearing) return;
  append_ranks(findings.alive, tree_->positions, news.alive);
  append_ranks(findings.silent, tree_->positions, news.silent);
  handler_(news);
}

gang::Positions HeadHeartbeats::unheard() const {
  return tree_ ? unheard_of(tree_->verdicts.summary()) : gang::Positions();
}

asio::awaitable<void> HeadHeartbeats::run() {
  for (;;) {
    TimePoint next = clock_.now() + kNothingDue;
    if (tree_) {
      gang::TreeVerdicts::Findings findings;
      tree_->verdicts.advance(clock_.now(), findings);
      next = std::min(next, tree_->verdicts.next_deadline().value_or(next));
      report(findings);
    }
    co_await alarm_.sleep_until(next);
  }
}

}  // namespace score::control
