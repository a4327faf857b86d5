#include "monitor/model/hub.hpp"

#include <algorithm>
#include <utility>

namespace score::monitor {

void Hub::deliver(Viewer& viewer, const Frame& frame) {
  ++counters_.delivered;
  counters_.bytes += frame->size();
  if (!viewer.deliver(frame)) ++counters_.skipped;
}

Result<ViewerId> Hub::add(const ViewerOptions& options, const Sight& sight, Deliver deliver_to) {
  Key key{options.ticks, options.filter, sight};
  if (viewers_.size() >= kMaxViewers) return fail(Errc::Busy, "too many viewers");
  if (!groups_.contains(key) && groups_.size() >= kMaxGroups) {
    return fail(Errc::Busy, "too many different filters");
  }
  Group& group = groups_[key];
  ++group.members;
  ++group.viewers;
  const ViewerId id{++last_id_};
  Viewer& viewer = viewers_[id];
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
  const bool leaves_room = groups_.find(viewer.key)->second.viewers == 1;
  if (!groups_.contains(key) && groups_.size() >= kMaxGroups && !leaves_room) {
    return fail(Errc::Busy, "too many different filters");
  }
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
