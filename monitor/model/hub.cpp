#include "monitor/model/hub.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace score::monitor {

void Hub::deliver(Viewer& viewer, const Frame& frame) {
  ++counters_.delivered;
  counters_.bytes += frame->size();
  if (!viewer.deliver(frame)) ++counters_.skipped;
}

Status Hub::check_viewers(const std::string& owner) const {
  if (viewers_.size() >= kMaxViewers) return fail(Errc::Busy, "too many viewers");
  const auto owned = std::ranges::count(
      viewers_, owner, [](const auto& entry) -> const auto& { return entry.second.owner; });
  if (static_cast<std::size_t>(owned) < kMaxViewersOfOwner) return {};
  return fail(Errc::Busy, "too many viewers of {}: at most {}", owner, kMaxViewersOfOwner);
}

Status Hub::check_groups(const std::string& owner, const Key& key,
                         std::optional<ViewerId> leaves) const {
  std::set<Key> owned{key};
  std::size_t others = 0;  // in the group that the viewer leaves
  for (const auto& [id, viewer] : viewers_) {
    if (viewer.owner == owner && id != leaves) owned.insert(viewer.key);
    if (leaves && id != *leaves && viewer.key == viewers_.at(*leaves).key) ++others;
  }
  const bool frees_group = leaves && others == 0;
  if (!groups_.contains(key) && groups_.size() >= kMaxGroups + (frees_group ? 1 : 0)) {
    return fail(Errc::Busy, "too many different filters");
  }
  if (owned.size() <= kMaxGroupsOfOwner) return {};
  return fail(Errc::Busy, "too many different filters of {}: at most {}", owner, kMaxGroupsOfOwner);
}

Result<ViewerId> Hub::add(const std::string& owner, const ViewerOptions& options,
                          const Sight& sight, Deliver deliver_to) {
  Key key{options.ticks, options.filter, sight};
  if (auto checked = check_viewers(owner); !checked) return checked.error();
  if (auto checked = check_groups(owner, key, std::nullopt); !checked) return checked.error();
  Group& group = groups_[key];
  ++group.members;
  ++group.viewers;
  const ViewerId id{++last_id_};
  Viewer& viewer = viewers_[id];
  viewer.owner = owner;
  viewer.key = std::move(key);
  viewer.deliver = std::move(deliver_to);
  if (group.newest) deliver(viewer, group.newest);
  return id;
}

void Hub::leave(const Key& key, bool paused) {
  const auto found = groups_.find(key);
  if (!paused) --found->second.members;
  if (--found->second.viewers == 0) groups_.erase(found);
}

Status Hub::change(ViewerId id, const ViewerOptions& options) {
  const auto found = viewers_.find(id);
  if (found == viewers_.end()) return fail(Errc::NotFound, "no such viewer");
  Viewer& viewer = found->second;
  const Key key{options.ticks, options.filter, viewer.key.sight};
  if (key == viewer.key) return {};
  if (auto checked = check_groups(viewer.owner, key, id); !checked) return checked;
  leave(viewer.key, viewer.paused);
  Group& group = groups_[key];
  ++group.viewers;
  if (!viewer.paused) ++group.members;
  viewer.key = key;
  return {};
}

void Hub::pause(ViewerId id, bool paused) {
  const auto found = viewers_.find(id);
  if (found == viewers_.end() || found->second.paused == paused) return;
  found->second.paused = paused;
  Group& group = groups_.find(found->second.key)->second;
  group.members = paused ? group.members - 1 : group.members + 1;
}

void Hub::remove(ViewerId id) {
  const auto found = viewers_.find(id);
  if (found == viewers_.end()) return;
  leave(found->second.key, found->second.paused);
  viewers_.erase(found);
}

void Hub::tick(std::uint64_t number, const Encode& encode) {
  std::map<Key, Frame> made;
  for (auto& [key, group] : groups_) {
    if (number % key.ticks != 0 || group.members == 0) continue;
    ViewerOptions options;
    options.ticks = key.ticks;
    options.filter = key.filter;
    group.newest = encode(options, key.sight, group.sequence++);
    ++counters_.encoded;
    made.emplace(key, group.newest);
  }
  for (auto& [id, viewer] : viewers_) {
    const auto frame = made.find(viewer.key);
    if (frame != made.end() && !viewer.paused) deliver(viewer, frame->second);
  }
}

bool Hub::wants(Part part) const {
  return std::any_of(groups_.begin(), groups_.end(), [&](const auto& group) {
    return group.second.members > 0 && group.first.filter.has(part);
  });
}

std::uint32_t Hub::shortest_ticks() const {
  std::uint32_t shortest = 0;
  for (const auto& [key, group] : groups_) {
    if (group.members > 0 && (shortest == 0 || key.ticks < shortest)) shortest = key.ticks;
  }
  return shortest;
}

}  // namespace score::monitor
