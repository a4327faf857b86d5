#include "gang/resources/licenses.hpp"

#include "base/text.hpp"
#include "base/text/plain.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace score::gang {

using base::Errc;
using base::fail;
using base::License;
using base::Result;

void Licenses::set(const std::vector<License>& totals, bool release_suspended) {
  release_suspended_ = release_suspended;
  for (auto& [name, count] : counts_) count.total = 0;
  for (const License& one : totals) counts_[one.name].total = one.count;
  std::erase_if(counts_, [](const auto& one) { return one.second == Count(); });
}

Result<void> Licenses::check(const base::ResourceRequest& request) const {
  if (request.licenses.empty()) return {};
  if (request.inside != JobId{0}) {
    return fail(Errc::Unsupported, "a step uses the licenses of its job; ask for them there");
  }
  if (request.overlay) return fail(Errc::Unsupported, "a job that takes no cores gets no licenses");
  std::vector<std::string> known;
  for (const auto& [name, count] : counts_) {
    if (count.total > 0) known.push_back(name);
  }
  for (const License& wanted : request.licenses) {
    const auto found = counts_.find(wanted.name);
    if (found == counts_.end() || found->second.total == 0) {
      return fail(Errc::NotFound, "no license '{}': {}", base::escape_terminal(wanted.name, 80),
                  known.empty() ? "this cluster has no licenses"
                                : fmt::format("there are {}", fmt::join(known, ", ")));
    }
    if (wanted.count > found->second.total) {
      return fail(Errc::TooLarge, "requested {} of license {}; the cluster has {}", wanted.count,
                  wanted.name, found->second.total);
    }
  }
  return {};
}

std::uint64_t Licenses::free(const std::string& name) const {
  const auto found = counts_.find(name);
  if (found == counts_.end() || found->second.used >= found->second.total) return 0;
  return found->second.total - found->second.used;
}

const Licenses::Awaited* Licenses::kept_from(const Job& job, const std::string& name) const {
  const auto found = awaited_.find(name);
  return found != awaited_.end() && found->second.wait < job.wait ? &found->second : nullptr;
}

bool Licenses::has_room(const Job& job) const {
  if (!job.has_row() || held_.contains(job.id)) return true;
  return std::ranges::all_of(job.request.licenses, [&](const License& wanted) {
    const Awaited* kept = kept_from(job, wanted.name);
    const std::uint64_t needed = std::uint64_t{wanted.count} + (kept != nullptr ? kept->count : 0);
    return needed <= free(wanted.name);
  });
}

void Licenses::take(const Job& job) {
  if (!job.has_row() || job.request.licenses.empty()) return;
  if (!held_.emplace(job.id, job.request.licenses).second) return;
  for (const License& one : job.request.licenses) counts_[one.name].used += one.count;
}

void Licenses::give_back(JobId job) {
  const auto found = held_.find(job);
  if (found == held_.end()) return;
  for (const License& one : found->second) {
    const auto count = counts_.find(one.name);
    count->second.used -= one.count;
    if (count->second == Count()) counts_.erase(count);
  }
  held_.erase(found);
}

bool Licenses::suspended(const Job& job) {
  if (!release_suspended_ || !held_.contains(job.id)) return false;
  give_back(job.id);
  return true;
}

Result<void> Licenses::check_resume(const Job& job) const {
  if (!job.has_row() || held_.contains(job.id)) return {};
  for (const License& wanted : job.request.licenses) {
    if (wanted.count <= free(wanted.name)) continue;
    return fail(Errc::Busy,
                "job {} gave back its licenses when it was suspended: it needs {} of {}, and {} {} "
                "free; try again later",
                job.id, wanted.count, wanted.name, free(wanted.name),
                free(wanted.name) == 1 ? "is" : "are");
  }
  return {};
}

void Licenses::await(const Job& job) {
  if (!job.has_row()) return;
  for (const License& wanted : job.request.licenses) {
    const auto [found, is_new] = awaited_.try_emplace(wanted.name, job.wait, wanted.count);
    if (!is_new && job.wait < found->second.wait) found->second = {job.wait, wanted.count};
  }
}

bool Licenses::forget(JobId job) {
  return std::erase_if(awaited_, [job](const auto& one) { return one.second.wait.job == job; }) > 0;
}

std::vector<std::string> Licenses::why_short(const Job& job) const {
  std::vector<std::string> out;
  if (has_room(job)) return out;
  for (const License& wanted : job.request.licenses) {
    const auto count = counts_.find(wanted.name);
    if (count == counts_.end() || count->second.total == 0) {
      out.push_back(fmt::format("license {} was removed from the configuration", wanted.name));
    } else if (wanted.count > count->second.total) {
      out.push_back(fmt::format("license {}: needs {}, the cluster now has {}", wanted.name,
                                wanted.count, count->second.total));
    } else if (wanted.count > free(wanted.name)) {
      out.push_back(fmt::format("license {}: needs {}, {} of {} free", wanted.name, wanted.count,
                                free(wanted.name), count->second.total));
    } else if (const Awaited* kept = kept_from(job, wanted.name);
               kept != nullptr && wanted.count + kept->count > free(wanted.name)) {
      out.push_back(fmt::format("license {}: {} kept for job {}, which is ahead in the queue",
                                wanted.name, kept->count, kept->wait.job));
    }
  }
  return out;
}

Result<void> Licenses::check() const {
  std::map<std::string, std::uint64_t> used;
  for (const auto& [job, licenses] : held_) {
    for (const License& one : licenses) used[one.name] += one.count;
  }
  for (const auto& [name, count] : counts_) {
    if (count.used != used[name]) {
      return fail(Errc::WrongState, "license {} is counted wrongly", name);
    }
    used.erase(name);
  }
  if (used.empty()) return {};
  return fail(Errc::WrongState, "license {} is held but not counted", used.begin()->first);
}

}  // namespace score::gang
