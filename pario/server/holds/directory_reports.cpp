#include "pario/server/holds/directory_reports.hpp"

#include "pario/client/socket_calls.hpp"

#include <utility>

namespace score::pario {

void DirectoryReports::run(TransferPtr transfer) {
  const auto waiting = std::make_shared<Waiting>();
  for (const FileId directory : std::exchange(transfer->touched, {})) {
    if (directory == 0 || has_failed(home_of(directory))) continue;
    const auto found = reports_.find(directory);
    const auto report = found != reports_.end() ? found->second : send(directory);
    if (report->is_known) continue;
    report->waiting.push_back(waiting);
    ++waiting->reports;
  }
  if (waiting->reports == 0) return answer_(std::move(transfer));
  waiting->transfer = std::move(transfer);
}

bool DirectoryReports::has_failed(std::uint32_t home) const {
  const auto failed = failed_until_ms_.find(home);
  return failed != failed_until_ms_.end() && monotonic_ms() < failed->second;
}

// It counts as reported from now on: if a client asks meanwhile, the next change is reported again.
std::shared_ptr<DirectoryReports::Report> DirectoryReports::send(FileId directory) {
  if (reports_.size() >= kMostDirectories) reports_.clear();
  auto report = std::make_shared<Report>();
  reports_[directory] = report;
  peers_.ask(
      home_of(directory), {.op = Op::ReportChange, .id = directory},
      [this, directory, report](int error, const Reply&) { ended(directory, report, error); });
  return report;
}

void DirectoryReports::ended(FileId directory, const std::shared_ptr<Report>& report, int error) {
  report->is_known = error == 0;
  if (error == 0) {
    failed_until_ms_.erase(home_of(directory));
  } else {
    failed_until_ms_[home_of(directory)] = monotonic_ms() + kFailedMs;
    const auto found = reports_.find(directory);
    if (found != reports_.end() && found->second == report) reports_.erase(found);
  }
  for (const auto& waiting : std::exchange(report->waiting, {})) {
    if (--waiting->reports == 0) answer_(std::move(waiting->transfer));
  }
}

}  // namespace score::pario
