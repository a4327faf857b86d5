#include "gang/state/calendar.hpp"

#include "base/limits.hpp"

#include <algorithm>
#include <utility>

namespace score::gang {

namespace {

// More jobs may share a core, but a job that had to wait for so long would never start.
constexpr std::uint32_t kAssumedSharing = base::limits::kDefaultSlots;

}  // namespace

std::optional<Duration> longest_of(const base::ResourceRequest& request, std::uint32_t slots) {
  std::optional<Duration> longest;
  if (request.wall_limit > Duration::zero()) longest = request.wall_limit;
  if (request.scheduled_limit > Duration::zero()) {
    slots = std::min(slots, kAssumedSharing);
    const bool is_endless = request.scheduled_limit > Duration::max() / slots;
    const Duration shared = is_endless ? Duration::max() : request.scheduled_limit * slots;
    longest = std::min(longest.value_or(shared), shared);
  }
  return longest;
}

void Calendar::set(std::vector<Reservation> all, const NodeTable& nodes) {
  all_ = std::move(all);
  on_node_.clear();
  for (std::size_t i = 0; i < all_.size(); ++i) {
    for (const NodeId id : all_[i].nodes) {
      const auto node = nodes.find(id);
      if (!node) continue;
      if (*node >= on_node_.size()) on_node_.resize(*node + std::size_t{1});
      on_node_[*node].push_back(i);
    }
  }
  is_changed_ = true;
}

bool Calendar::advance(TimePoint now) {
  const TimePoint before = std::exchange(now_, std::max(now_, now));
  const auto is_passed = [&](TimePoint at) { return before < at && at <= now_; };
  const bool is_edge = std::any_of(all_.begin(), all_.end(), [&](const Reservation& r) {
    return is_passed(r.start) || is_passed(r.end);
  });
  return std::exchange(is_changed_, false) || is_edge;
}

const Reservation* Calendar::find(std::string_view name) const {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const Reservation& r) {
    return r.name == name && now_ < r.end;
  });
  return found == all_.end() ? nullptr : &*found;
}

const std::vector<std::size_t>& Calendar::of_node(NodeIndex node) const {
  static const std::vector<std::size_t> kNone;
  return node < on_node_.size() ? on_node_[node] : kNone;
}

const Reservation* Calendar::on(NodeIndex node) const {
  for (const std::size_t i : of_node(node)) {
    if (all_[i].start <= now_ && now_ < all_[i].end) return &all_[i];
  }
  return nullptr;
}

bool Calendar::admits(const Reservation& r, const Occupant& job) const {
  return job.reservation == r.name &&
         (r.users.contains(job.user) || r.accounts.contains(std::string(job.account)));
}

bool Calendar::may_use(const Occupant& job, NodeIndex node, TimePoint at) const {
  if (blocking(job, node, at) != nullptr) return false;
  if (job.reservation.empty()) return true;
  const auto& here = of_node(node);
  return std::any_of(here.begin(), here.end(), [&](std::size_t i) {
    return all_[i].start <= at && at < all_[i].end && admits(all_[i], job);
  });
}

const Reservation* Calendar::blocking(const Occupant& job, NodeIndex node, TimePoint at) const {
  for (const std::size_t i : of_node(node)) {
    const Reservation& r = all_[i];
    if (r.end <= at || admits(r, job)) continue;
    if (r.start <= at || !job.bound || *job.bound > r.start - at) return &r;
  }
  return nullptr;
}

std::optional<TimePoint> Calendar::next_change() const {
  std::optional<TimePoint> next;
  for (const Reservation& r : all_) {
    for (const TimePoint at : {r.start, r.end}) {
      if (at > now_ && (!next || at < *next)) next = at;
    }
  }
  return next;
}

}  // namespace score::gang
