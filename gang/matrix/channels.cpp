#include "gang/matrix/channels.hpp"

#include "base/errc.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace score::gang {

namespace {

struct Overlap {
  bool is_on_common_node = false;
  bool is_on_common_core = false;  // then they never run at the same time, on any node
};

Overlap overlap_of(const NetworkPlace& a, const NetworkPlace& b) {
  Overlap overlap;
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    const auto other = std::find(b.nodes.begin(), b.nodes.end(), a.nodes[i]);
    if (other == b.nodes.end()) continue;
    overlap.is_on_common_node = true;
    if (a.gang != JobId{0} && a.gang == b.gang) return overlap;
    const auto& cores = b.cores[static_cast<std::size_t>(other - b.nodes.begin())];
    const auto is_shared = [&](std::uint32_t core) {
      return std::find(cores.begin(), cores.end(), core) != cores.end();
    };
    if (std::any_of(a.cores[i].begin(), a.cores[i].end(), is_shared)) {
      overlap.is_on_common_core = true;
      return overlap;
    }
  }
  return overlap;
}

}  // namespace

base::Result<std::uint16_t> Channels::assign(AttemptId attempt, NetworkPlace place) {
  if (const auto found = holders_.find(attempt); found != holders_.end()) {
    return found->second.channel;
  }
  std::vector<std::size_t> users(count_, 0);
  std::vector<bool> is_barred(count_, false);
  for (const auto& [other, holder] : holders_) {
    const Overlap overlap = overlap_of(place, holder.place);
    if (holder.channel >= count_ || !overlap.is_on_common_node) continue;
    ++users[holder.channel];
    if (!overlap.is_on_common_core) is_barred[holder.channel] = true;
  }
  std::optional<std::uint16_t> best;
  for (std::uint32_t channel = 0; channel < count_; ++channel) {
    if (is_barred[channel] || (best && users[channel] >= users[*best])) continue;
    best = static_cast<std::uint16_t>(channel);
  }
  if (!best) {
    return base::fail(base::Errc::Busy,
                      "all {} channels are in use by jobs that may run at the same time", count_);
  }
  holders_[attempt] = {std::move(place), *best};
  return *best;
}

void Channels::claim(AttemptId attempt, NetworkPlace place, std::uint16_t channel) {
  holders_[attempt] = {std::move(place), channel};
}

void Channels::release(AttemptId attempt) {
  holders_.erase(attempt);
}

std::vector<AttemptId> Channels::sharers(AttemptId attempt) const {
  const auto found = holders_.find(attempt);
  if (found == holders_.end()) return {};
  std::vector<AttemptId> sharers;
  for (const auto& [other, holder] : holders_) {
    if (other == attempt || holder.channel != found->second.channel) continue;
    if (overlap_of(found->second.place, holder.place).is_on_common_node) sharers.push_back(other);
  }
  return sharers;
}

}  // namespace score::gang
