// Reports changes of entries here to the homes of their directories, which keep the times; see
// core/homes/directory_times.hpp. A change is answered when the home knows, so that whoever asks
// the home afterwards sees its time. If the home cannot be reached, the change is answered
// nevertheless: a home that was restarted asks all servers.
#pragma once

#include "pario/server/io/peers.hpp"
#include "pario/server/io/transfer.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

namespace score::pario {

class DirectoryReports {
 public:
  static constexpr std::size_t kMostDirectories = 100'000;
  // Changes do not wait for a home that has failed to answer until this time has passed.
  static constexpr std::int64_t kFailedMs = 1'000;

  // Requests of `peers` go to the leaders of parts. `answer` receives each transfer.
  DirectoryReports(Asker& peers, std::function<void(TransferPtr)> answer)
      : peers_(peers), answer_(std::move(answer)) {}

  // Answers a change, without `touched`, when the homes of those directories know of changes here.
  void run(TransferPtr transfer);

  // A client asks for the time of the directory here, so the next change is reported again.
  void asked(FileId directory) { reports_.erase(directory); }

  // The homes may have forgotten what was reported.
  void clear() { reports_.clear(); }

 private:
  struct Waiting {
    TransferPtr transfer;
    unsigned reports = 0;
  };

  struct Report {
    bool is_known = false;
    std::vector<std::shared_ptr<Waiting>> waiting;
  };

  bool has_failed(std::uint32_t home) const;
  std::shared_ptr<Report> send(FileId directory);
  void ended(FileId directory, const std::shared_ptr<Report>& report, int error);

  Asker& peers_;
  std::function<void(TransferPtr)> answer_;
  std::unordered_map<FileId, std::shared_ptr<Report>> reports_;
  std::unordered_map<std::uint32_t, std::int64_t> failed_until_ms_;  // by home
};

}  // namespace score::pario
