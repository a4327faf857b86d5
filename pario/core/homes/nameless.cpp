#include "pario/core/homes/nameless.hpp"

#include <algorithm>

namespace score::pario {

void NamelessFiles::add(FileId id, const Use& use) {
  if (uses_.size() >= kMostAsked && !uses_.contains(id)) return;
  std::vector<Use>& uses = uses_[id];
  const auto is_same = [&use](const Use& one) {
    return one.client == use.client && one.will_open == use.will_open;
  };
  const auto found = std::ranges::find_if(uses, is_same);
  if (found == uses.end()) {
    uses.push_back(use);
  } else {
    found->until = std::max(found->until, use.until);
  }
}

void NamelessFiles::asked(FileId id, Client client, bool will_open, std::int64_t now) {
  add(id, {client, will_open, now + (will_open ? kOpenNs : kAskedNs)});
}

void NamelessFiles::opened(FileId id, Client client, std::int64_t now) {
  add(id, {client, false, now + kOpenNs});
}

// A client that removes a name knows which files it has open itself, and gives them up when they
// are closed.
bool NamelessFiles::is_needed(FileId id, Client remover, std::int64_t now) const {
  const auto found = uses_.find(id);
  return found != uses_.end() && std::ranges::any_of(found->second, [&](const Use& use) {
           return use.until > now && (use.client != remover || use.will_open);
         });
}

std::vector<FileId> NamelessFiles::expired(std::size_t most, std::int64_t now) {
  for (auto at = uses_.begin(); at != uses_.end();) {
    std::erase_if(at->second, [now](const Use& use) { return use.until <= now; });
    at = at->second.empty() ? uses_.erase(at) : std::next(at);
  }
  std::vector<FileId> files;
  for (const FileId id : kept_) {
    if (files.size() == most) break;
    if (!uses_.contains(id)) files.push_back(id);
  }
  return files;
}

}  // namespace score::pario
