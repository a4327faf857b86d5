#include "scored/head/streams/output_room.hpp"

#include <algorithm>

namespace score::head {

std::size_t OutputRoom::share(UserId user) const {
  return kHalf / std::max<std::size_t>(jobs(user), 1);
}

void OutputRoom::close(UserId user, JobId job) {
  const auto found = users_.find(user);
  if (found == users_.end()) return;
  const auto is_of_job = [&](const Place& place) { return place.job == job; };
  std::erase_if(found->second.refused, is_of_job);
  std::erase_if(found->second.asked, is_of_job);
  if (--found->second.jobs == 0) users_.erase(found);
}

std::size_t OutputRoom::room(UserId user, std::size_t held) const {
  const auto found = users_.find(user);
  if (found == users_.end()) return kHalf;
  const std::size_t common = kHalf - std::min(kHalf, found->second.held);
  const std::size_t own = share(user) - std::min(share(user), held);
  return std::max(common, own);
}

void OutputRoom::change(UserId user, std::size_t before, std::size_t now) {
  const auto found = users_.find(user);
  if (found != users_.end()) found->second.held += now - before;
}

void OutputRoom::refuse(UserId user, const Place& place) {
  User& of = users_[user];
  of.asked.erase(place);
  if (std::ranges::find(of.refused, place) == of.refused.end()) of.refused.push_back(place);
}

void OutputRoom::came(UserId user, const Place& place) {
  const auto found = users_.find(user);
  if (found != users_.end()) found->second.asked.erase(place);
}

void OutputRoom::forget(UserId user, const Place& place) {
  const auto found = users_.find(user);
  if (found == users_.end()) return;
  found->second.asked.erase(place);
  std::erase(found->second.refused, place);
}

std::vector<OutputRoom::Place> OutputRoom::take_due(UserId user) {
  std::vector<Place> due;
  const auto found = users_.find(user);
  if (found == users_.end()) return due;
  User& of = found->second;
  const auto may_ask = [&] {
    return of.held + (of.asked.size() + 1) * limits::kIoWindowBytes <= kHalf;
  };
  while (!of.refused.empty() && may_ask()) {
    due.push_back(of.refused.front());
    of.asked.insert(of.refused.front());
    of.refused.pop_front();
  }
  return due;
}

std::vector<OutputRoom::Place> OutputRoom::take_all(UserId user, JobId job) {
  std::vector<Place> all;
  const auto found = users_.find(user);
  if (found == users_.end()) return all;
  std::erase_if(found->second.refused, [&](const Place& place) {
    if (place.job == job) all.push_back(place);
    return place.job == job;
  });
  found->second.asked.insert(all.begin(), all.end());
  return all;
}

std::size_t OutputRoom::jobs(UserId user) const {
  const auto found = users_.find(user);
  return found == users_.end() ? 0 : found->second.jobs;
}

std::size_t OutputRoom::held(UserId user) const {
  const auto found = users_.find(user);
  return found == users_.end() ? 0 : found->second.held;
}

}  // namespace score::head
