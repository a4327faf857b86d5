// Tracks by file the applied transactions that a loss of power may still remove from the files. An
// fsync of a file ends that. Before the fsync is answered, the log records it
// (LogRecord::Kind::Flushed), so that the transactions are not applied again over later changes
// that the fsync has made safe. This class is pure.
#pragma once

#include "pario/core/transaction_log.hpp"

#include <map>
#include <string>
#include <unordered_set>
#include <vector>

namespace score::pario {

class Unflushed {
 public:
  // Records that the part's writes are in the files now.
  void applied(const TransactionPart& part) {
    for (const WriteAccess& write : part.writes) {
      std::vector<TransactionId>& ids = ids_[write.file];
      if (ids.empty() || ids.back() != part.id) ids.push_back(part.id);
    }
  }

  // Returns the transactions that a flush of the file that begins now puts on the disk.
  std::vector<TransactionId> of(FileId file) const {
    const auto found = ids_.find(file);
    return found == ids_.end() ? std::vector<TransactionId>() : found->second;
  }

  // Returns the records that the log must have on the disk when that flush is answered.
  static std::string records(FileId file, const std::vector<TransactionId>& ids) {
    std::string bytes;
    for (const TransactionId id : ids) {
      LogRecord record{.kind = LogRecord::Kind::Flushed, .part = {}, .file = file};
      record.part.id = id;
      bytes += encode(record);
    }
    return bytes;
  }

  // Call this when the log has the records. Other transactions may have been applied in the
  // meantime.
  void flushed(FileId file, const std::vector<TransactionId>& ids) {
    const auto found = ids_.find(file);
    if (found == ids_.end()) return;
    const std::unordered_set<TransactionId> known(ids.begin(), ids.end());
    std::erase_if(found->second, [&known](TransactionId id) { return known.contains(id); });
    if (found->second.empty()) ids_.erase(found);
  }

  // Call this when all files are on the disk, or the log is empty.
  void clear() { ids_.clear(); }

 private:
  std::map<FileId, std::vector<TransactionId>> ids_;
};

}  // namespace score::pario
