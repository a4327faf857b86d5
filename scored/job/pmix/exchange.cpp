#include "scored/job/pmix/exchange.hpp"

#include "base/limits.hpp"

#include <algorithm>
#include <utility>

namespace score::pmix {

namespace {

using namespace std::chrono_literals;
using wire::PmixPeer;

constexpr base::Duration kRepeatAfter = 1s;
constexpr std::size_t kMaxBoardBytes = 4UL << 20U;
constexpr std::size_t kMaxWaiting = 4096;      // lookups and gets of other nodes
constexpr std::size_t kMaxUnpublished = 1024;  // answers that are kept
constexpr std::size_t kMaxSets = 1024;         // different sets of ranks that have fenced
constexpr std::uint64_t kMaxRounds = 16;  // how far nodes may be ahead of each other in one set

}  // namespace

Exchange::Exchange(std::uint32_t node, std::vector<std::uint32_t> nodes_of_ranks)
    : node_(node), nodes_of_ranks_(std::move(nodes_of_ranks)) {}

Exchange::Actions Exchange::take_actions() {
  return std::exchange(actions_, Actions());
}

std::vector<std::uint32_t> Exchange::nodes_of(const Ranks& ranks) const {
  std::vector<std::uint32_t> nodes;
  for (const std::uint32_t rank : ranks) {
    if (rank < nodes_of_ranks_.size()) nodes.push_back(nodes_of_ranks_[rank]);
  }
  std::ranges::sort(nodes);
  const auto repeats = std::ranges::unique(nodes);
  nodes.erase(repeats.begin(), repeats.end());
  return nodes;
}

// ---- requests

void Exchange::begin(PmixPeer message, const Pending& pending) {
  message.set_request(++last_request_);
  Pending& entry = pending_[last_request_] = pending;
  if (entry.node == node_) return handle(node_, message);
  entry.message = message;
  actions_.messages.push_back({entry.node, std::move(message)});
}

void Exchange::send(std::uint32_t node, const PmixPeer& message) {
  if (node == node_) return handle(node_, message);
  actions_.messages.push_back({node, message});
}

void Exchange::publish(Token token, std::vector<PublishedItem> items, base::TimePoint now) {
  PmixPeer message;
  message.set_kind(PmixPeer::PUBLISH);
  for (auto& item : items) {
    message.set_rank(item.owner);
    message.add_keys(std::move(item.key));
    message.add_values(std::move(item.value));
  }
  begin(std::move(message), {token, nodes_of_ranks_[0], {}, now, std::nullopt});
}

void Exchange::lookup(Token token, const std::vector<std::string>& keys, Options options,
                      base::TimePoint now) {
  PmixPeer message;
  message.set_kind(PmixPeer::LOOKUP);
  message.set_waits(options.waits);
  for (const auto& key : keys) message.add_keys(key);
  begin(std::move(message), {token, nodes_of_ranks_[0], {}, now, options.deadline});
}

void Exchange::unpublish(Token token, std::uint32_t rank, const std::vector<std::string>& keys,
                         base::TimePoint now) {
  PmixPeer message;
  message.set_kind(PmixPeer::UNPUBLISH);
  message.set_rank(rank);
  for (const auto& key : keys) message.add_keys(key);
  begin(std::move(message), {token, nodes_of_ranks_[0], {}, now, std::nullopt});
}

void Exchange::get(Token token, std::uint32_t rank, Options options, base::TimePoint now) {
  if (rank >= nodes_of_ranks_.size()) {
    actions_.answers.push_back({token, ExchangeOutcome::NotFound, "", {}});
    return;
  }
  PmixPeer message;
  message.set_kind(PmixPeer::GET);
  message.set_rank(rank);
  begin(std::move(message), {token, nodes_of_ranks_[rank], {}, now, options.deadline});
}

void Exchange::fence(Token token, std::vector<std::uint32_t> ranks, std::string data,
                     base::TimePoint now) {
  std::ranges::sort(ranks);
  const auto nodes = nodes_of(ranks);
  const bool is_new = !fences_.contains(ranks);
  if (nodes.empty() || (is_new && fences_.size() >= kMaxSets)) {
    actions_.answers.push_back({token, ExchangeOutcome::Refused, "", {}});
    return;
  }
  PmixPeer message;
  message.set_kind(PmixPeer::ENTER);
  message.set_sequence(++fences_[ranks].begun);
  message.set_data(std::move(data));
  for (const std::uint32_t rank : ranks) message.add_ranks(rank);
  begin(std::move(message), {token, nodes[0], {}, now, std::nullopt});
}

void Exchange::turn(base::TimePoint now) {
  std::vector<std::uint64_t> late;
  for (auto& [request, entry] : pending_) {
    if (entry.deadline && now >= *entry.deadline) {
      late.push_back(request);
    } else if (entry.node != node_ && now - entry.sent >= kRepeatAfter) {
      entry.sent = now;
      actions_.messages.push_back({entry.node, entry.message});
    }
  }
  for (const std::uint64_t request : late) {
    const std::uint32_t node = pending_[request].node;
    actions_.answers.push_back({pending_[request].token, ExchangeOutcome::TimedOut, "", {}});
    pending_.erase(request);
    PmixPeer no_more;  // a lookup of no keys replaces the one that waits there
    no_more.set_kind(PmixPeer::LOOKUP);
    no_more.set_request(request);
    send(node, no_more);
  }
}

// ---- incoming events

void Exchange::receive(std::uint32_t from, const PmixPeer& message) {
  if (std::ranges::find(nodes_of_ranks_, from) == nodes_of_ranks_.end()) return;
  handle(from, message);
}

void Exchange::handle(std::uint32_t from, const PmixPeer& message) {
  switch (message.kind()) {
    case PmixPeer::ANSWER:
      return on_answer(from, message);
    case PmixPeer::GET:
      return on_get(from, message);
    case PmixPeer::PUBLISH:
      return on_publish(from, message);
    case PmixPeer::LOOKUP:
      return on_lookup(from, message);
    case PmixPeer::UNPUBLISH:
      return on_unpublish(from, message);
    case PmixPeer::ENTER:
      return on_enter(from, message);
    default:
      return;  // the kind belongs to a later version
  }
}

void Exchange::answer(const Asker& asker, ExchangeOutcome outcome, PmixPeer message) {
  message.set_kind(PmixPeer::ANSWER);
  message.set_request(asker.second);
  message.set_outcome(static_cast<std::uint32_t>(outcome));
  send(asker.first, message);
}

void Exchange::on_answer(std::uint32_t from, const PmixPeer& message) {
  const auto found = pending_.find(message.request());
  if (found == pending_.end() || found->second.node != from) return;
  Answer out;
  out.token = found->second.token;
  const bool is_known = message.outcome() <= static_cast<std::uint32_t>(ExchangeOutcome::Refused);
  out.outcome =
      is_known ? static_cast<ExchangeOutcome>(message.outcome()) : ExchangeOutcome::Refused;
  out.data = message.data();
  const int items = std::min({message.keys_size(), message.values_size(), message.ranks_size()});
  for (int i = 0; i < items; ++i) {
    out.items.push_back({message.ranks(i), message.keys(i), message.values(i)});
  }
  pending_.erase(found);
  actions_.answers.push_back(std::move(out));
}

// ---- data of one rank

void Exchange::on_get(std::uint32_t from, const PmixPeer& message) {
  const Asker asker(from, message.request());
  const bool is_here =
      message.rank() < nodes_of_ranks_.size() && nodes_of_ranks_[message.rank()] == node_;
  if (!is_here) return answer(asker, ExchangeOutcome::NotFound, {});
  if (tickets_.contains(asker)) return;  // repeated while the library is searching
  if (tickets_.size() >= kMaxWaiting) return answer(asker, ExchangeOutcome::Refused, {});
  tickets_[asker] = ++last_ticket_;
  askers_[last_ticket_] = asker;
  actions_.asks.push_back({message.rank(), last_ticket_});
}

void Exchange::answered(std::uint64_t ticket, ExchangeOutcome outcome, std::string data) {
  const auto found = askers_.find(ticket);
  if (found == askers_.end()) return;
  const Asker asker = found->second;
  askers_.erase(found);
  tickets_.erase(asker);
  PmixPeer message;
  message.set_data(std::move(data));
  answer(asker, outcome, std::move(message));
}

// ---- names

void Exchange::on_publish(std::uint32_t from, const PmixPeer& message) {
  const Asker asker(from, message.request());
  const int items = std::min(message.keys_size(), message.values_size());
  std::size_t bytes = 0;
  for (int i = 0; i < items; ++i) {
    const auto found = collector_.find(message.keys(i));
    const bool is_again = found != collector_.end() && found->second.owner == message.rank() &&
                          found->second.value == message.values(i);
    if (found != collector_.end() && !is_again)
      return answer(asker, ExchangeOutcome::Duplicate, {});
    bytes += is_again ? 0 : message.keys(i).size() + message.values(i).size();
  }
  if (board_bytes_ + bytes > kMaxBoardBytes) return answer(asker, ExchangeOutcome::Refused, {});
  for (int i = 0; i < items; ++i) {
    const bool is_new =
        collector_.try_emplace(message.keys(i), Published{message.rank(), message.values(i)})
            .second;
    if (is_new) board_bytes_ += message.keys(i).size() + message.values(i).size();
  }
  answer(asker, ExchangeOutcome::Success, {});
  auto waiting = std::exchange(waiting_lookups_, {});
  for (auto& [waiter, lookup] : waiting) {
    if (!try_lookup(waiter, lookup, false)) waiting_lookups_[waiter] = std::move(lookup);
  }
}

void Exchange::on_lookup(std::uint32_t from, const PmixPeer& message) {
  const Asker asker(from, message.request());
  const bool may_wait = message.waits() && waiting_lookups_.size() < kMaxWaiting;
  if (try_lookup(asker, message, !may_wait)) {
    waiting_lookups_.erase(asker);
  } else {
    waiting_lookups_[asker] = message;
  }
}

// Answers if all keys exist, or if this is the last attempt. Returns false if it has not answered.
bool Exchange::try_lookup(const Asker& asker, const PmixPeer& message, bool is_last) {
  PmixPeer out;
  for (const auto& key : message.keys()) {
    const auto found = collector_.find(key);
    if (found == collector_.end()) continue;
    out.add_keys(key);
    out.add_values(found->second.value);
    out.add_ranks(found->second.owner);
  }
  const bool has_all = out.keys_size() == message.keys_size();
  if (!has_all && !is_last) return false;
  const auto some = out.keys_size() > 0 ? ExchangeOutcome::Partial : ExchangeOutcome::NotFound;
  answer(asker, has_all ? ExchangeOutcome::Success : some, std::move(out));
  return true;
}

void Exchange::on_unpublish(std::uint32_t from, const PmixPeer& message) {
  const Asker asker(from, message.request());
  const auto said =
      std::ranges::find(unpublished_, asker, &decltype(unpublished_)::value_type::first);
  if (said != unpublished_.end()) return answer(asker, said->second, {});
  std::size_t found = 0;
  const auto is_named = [&](const std::string& key) {
    return message.keys_size() == 0 ||
           std::ranges::find(message.keys(), key) != message.keys().end();
  };
  for (auto at = collector_.begin(); at != collector_.end();) {
    if (at->second.owner != message.rank() || !is_named(at->first)) {
      ++at;
      continue;
    }
    board_bytes_ -= at->first.size() + at->second.value.size();
    at = collector_.erase(at);
    ++found;
  }
  const bool is_good = found > 0 || message.keys_size() == 0;
  const auto outcome = is_good ? ExchangeOutcome::Success : ExchangeOutcome::NotFound;
  unpublished_.emplace_back(asker, outcome);
  if (unpublished_.size() > kMaxUnpublished) unpublished_.pop_front();
  answer(asker, outcome, {});
}

// ---- fences of some ranks

void Exchange::on_enter(std::uint32_t from, const PmixPeer& message) {
  const Ranks ranks(message.ranks().begin(), message.ranks().end());
  const auto nodes = nodes_of(ranks);
  const Asker asker(from, message.request());
  const bool is_mine = !nodes.empty() && nodes[0] == node_ && std::ranges::is_sorted(ranks);
  const bool is_known = fences_.contains(ranks) || fences_.size() < kMaxSets;
  if (!is_mine || !is_known || !std::ranges::binary_search(nodes, from)) {
    return answer(asker, ExchangeOutcome::Refused, {});
  }
  FenceState& state = fences_[ranks];
  PmixPeer out;
  if (message.sequence() <= state.done) {  // a repeat; only the last answer can have been lost
    out.set_data(state.last);
    return answer(asker, ExchangeOutcome::Success, std::move(out));
  }
  if (message.sequence() > state.done + kMaxRounds)
    return answer(asker, ExchangeOutcome::Refused, {});
  RankBarrier& round = state.rounds[message.sequence()];
  round.data[from] = message.data();
  round.requests[from] = message.request();
  if (round.data.size() < nodes.size()) return;
  RankBarrier whole = std::move(round);
  state.rounds.erase(message.sequence());
  state.done = message.sequence();
  state.last.clear();
  for (const auto& [node, data] : whole.data) state.last += data;
  out.set_data(state.last);
  for (const auto& [node, request] : whole.requests) {
    answer({node, request}, ExchangeOutcome::Success, out);
  }
}

std::optional<PmixPeer> answer_of_the_departed(const PmixPeer& message) {
  if (message.kind() == PmixPeer::ANSWER) return std::nullopt;
  PmixPeer out;
  out.set_kind(PmixPeer::ANSWER);
  out.set_request(message.request());
  out.set_outcome(static_cast<std::uint32_t>(ExchangeOutcome::NotFound));
  return out;
}

}  // namespace score::pmix
