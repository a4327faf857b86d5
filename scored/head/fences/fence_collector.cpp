#include "scored/head/fences/fence_collector.hpp"

#include <algorithm>
#include <utility>

namespace score::head {
namespace {

Error beyond_whole() {
  return fail(Errc::TooLarge,
              "the PMI key-values of all jobs of this user exceed {} bytes on nodes of an older "
              "release",
              FenceCollector::kMaxWhole);
}

}  // namespace

void FenceCollector::open(AttemptId attempt, UserId user, std::size_t nodes) {
  for (const bool pmix : {false, true}) {
    const bool is_new = fences_.try_emplace({attempt, pmix}, Open{user, Fence(nodes)}).second;
    if (is_new) ++shares_[user].fences;
  }
}

FenceCollector::Actions FenceCollector::close(AttemptId attempt) {
  Actions actions;
  for (const bool pmix : {false, true}) {
    const auto found = fences_.find({attempt, pmix});
    if (found == fences_.end()) continue;
    const Open& open = found->second;
    const auto of_user = shares_.find(open.user);
    Share& share = of_user->second;
    share.held -= open.held;
    share.in_flight -= open.in_flight;
    std::erase(share.waiting, found->first);
    fences_.erase(found);
    start_waiting(share, actions);
    if (--share.fences == 0) shares_.erase(of_user);
  }
  return actions;
}

Result<FenceCollector::Open*> FenceCollector::find(Key key) {
  const auto found = fences_.find(key);
  if (found != fences_.end()) return &found->second;
  return fail(Errc::NotFound, "cannot enter a PMI barrier of attempt {}", key.attempt);
}

Result<FenceCollector::Actions> FenceCollector::enter(Key key, std::size_t node, FenceEntry entry) {
  const auto open = find(key);
  if (!open) return open.error();
  const Share& share = shares_[(*open)->user];
  const std::uint64_t held = share.held + entry.key_values.size();
  if (!entry.takes_pieces && held > kMaxWhole) {
    return beyond_whole();
  }
  if (entry.takes_pieces && held > kMaxHeld) entry.key_values.clear();
  return carry_on(key, **open, (*open)->fence.enter(node, std::move(entry)));
}

Result<FenceCollector::Actions> FenceCollector::piece(Key key, std::size_t node,
                                                      std::uint64_t sequence, std::uint64_t offset,
                                                      std::string data) {
  const auto open = find(key);
  if (!open) return open.error();
  return carry_on(key, **open, (*open)->fence.piece(node, sequence, offset, std::move(data)));
}

Result<FenceCollector::Actions> FenceCollector::taken(Key key, std::size_t node,
                                                      std::uint64_t sequence, std::uint64_t offset,
                                                      std::uint64_t total) {
  const auto open = find(key);
  if (!open) return open.error();
  return carry_on(key, **open, (*open)->fence.taken(node, sequence, offset, total));
}

FenceCollector::Actions FenceCollector::leave(AttemptId attempt, std::size_t node) {
  Actions actions;
  for (const bool pmix : {false, true}) {
    const Key key{attempt, pmix};
    const auto open = find(key);
    if (!open) continue;
    auto more = carry_on(key, **open, (*open)->fence.leave(node));
    if (more) std::ranges::move(*more, std::back_inserter(actions));
  }
  return actions;
}

void FenceCollector::link_lost(AttemptId attempt, std::size_t node) {
  for (const bool pmix : {false, true}) {
    if (const auto open = find({attempt, pmix})) (*open)->fence.link_lost(node);
  }
}

Result<FenceCollector::Actions> FenceCollector::carry_on(Key key, Open& open,
                                                         Result<FenceActions> actions) {
  if (!actions) return actions.error();
  Actions all;
  add(key, std::move(*actions), all);
  Share& share = shares_[open.user];
  account(open);
  if (open.fence.is_ready() && !open.waits) {
    if (open.fence.is_whole() && share.held + open.fence.total() > kMaxWhole) {
      return beyond_whole();
    }
    if (open.fence.total() == 0) {  // it takes no room
      add(key, open.fence.start(), all);
      account(open);
    } else {
      open.waits = true;
      share.waiting.push_back(key);
    }
  }
  start_waiting(share, all);
  return all;
}

void FenceCollector::account(Open& open) {
  Share& share = shares_[open.user];
  const Fence& fence = open.fence;
  const std::uint64_t result = fence.is_exchanging() && fence.is_whole() ? fence.total() : 0;
  const std::uint64_t held = fence.held_bytes() + result;
  share.held += held - std::exchange(open.held, held);
  if (!fence.is_exchanging()) share.in_flight -= std::exchange(open.in_flight, 0);
}

void FenceCollector::start_waiting(Share& share, Actions& actions) {
  while (!share.waiting.empty()) {
    const Key key = share.waiting.front();
    Open& open = fences_.at(key);
    const std::uint64_t bytes =
        std::min(open.fence.in_flight_bytes(), open.fence.total() * open.fence.size());
    if (share.in_flight > 0 && share.in_flight + bytes > kMaxInFlight) return;
    share.waiting.pop_front();
    open.waits = false;
    open.in_flight = bytes;
    share.in_flight += bytes;
    add(key, open.fence.start(), actions);
    account(open);
  }
}

void FenceCollector::add(Key key, FenceActions&& from, Actions& to) {
  for (FenceAction& action : from) to.push_back({key, std::move(action)});
}

std::uint64_t FenceCollector::held_bytes(UserId user) const {
  const auto found = shares_.find(user);
  return found == shares_.end() ? 0 : found->second.held;
}

}  // namespace score::head
