// Orders changes to the data of files. A change that overlaps an earlier one waits until that has
// ended, so that both replicas carry them out in the same order.
#pragma once

#include "pario/core/layout.hpp"

#include <functional>
#include <list>
#include <unordered_map>
#include <utility>
#include <vector>

namespace score::pario {

class RangeGate {
 public:
  using Ticket = std::uint64_t;

  Ticket reserve() { return ++last_; }

  // Calls `go` when no earlier change overlaps: now, or in leave(). The extent of a whole file is
  // {0, kMaxOffset}.
  void enter(Ticket ticket, FileId file, const Extent& extent, std::function<void()> go) {
    std::list<Entry>& entries = files_[file];
    entries.push_back({ticket, extent, std::move(go), false});
    places_[ticket] = file;
    start(entries);
  }

  void leave(Ticket ticket) {
    const auto place = places_.find(ticket);
    if (place == places_.end()) return;
    const FileId file = place->second;
    places_.erase(place);
    const auto found = files_.find(file);
    found->second.remove_if([ticket](const Entry& entry) { return entry.ticket == ticket; });
    if (found->second.empty()) {
      files_.erase(found);
    } else {
      start(found->second);
    }
  }

  bool is_empty() const { return places_.empty(); }

 private:
  struct Entry {
    Ticket ticket = 0;
    Extent extent;
    std::function<void()> go;
    bool is_started = false;
  };

  static bool overlap(const Extent& a, const Extent& b) {
    return a.offset < b.offset + b.length && b.offset < a.offset + a.length;
  }

  // `go` may call leave() at once and change the list.
  void start(std::list<Entry>& entries) {
    std::vector<std::function<void()>> ready;
    for (auto at = entries.begin(); at != entries.end(); ++at) {
      if (at->is_started) continue;
      bool is_free = true;
      for (auto before = entries.begin(); before != at && is_free; ++before) {
        is_free = !overlap(before->extent, at->extent);
      }
      if (!is_free) continue;
      at->is_started = true;
      ready.push_back(std::move(at->go));
    }
    for (const auto& go : ready) go();
  }

  Ticket last_ = 0;
  std::unordered_map<FileId, std::list<Entry>> files_;
  std::unordered_map<Ticket, FileId> places_;
};

}  // namespace score::pario
