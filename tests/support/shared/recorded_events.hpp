#pragma once
// Records, for tests, the events that are reported during its lifetime.

#include "scored/shared/journal/event.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace score {

using JournalEntry = std::map<std::string, std::string>;

struct RecordedEvents {
  RecordedEvents() {
    set_journal_sink([this](std::span<const JournalField> fields) {
      entries.emplace_back(fields.begin(), fields.end());
      return true;
    });
  }

  RecordedEvents(const RecordedEvents&) = delete;
  RecordedEvents& operator=(const RecordedEvents&) = delete;

  ~RecordedEvents() { set_journal_sink({}); }

  // Returns how many entries have this value.
  [[nodiscard]] long count(const std::string& field, const std::string& value) const {
    return std::ranges::count_if(entries, [&](const JournalEntry& entry) {
      const auto found = entry.find(field);
      return found != entry.end() && found->second == value;
    });
  }

  std::vector<JournalEntry> entries;
};

}  // namespace score
