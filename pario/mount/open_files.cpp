#include "pario/mount/open_files.hpp"

#include "pario/client/socket_calls.hpp"

#include <chrono>
#include <utility>

namespace score::pario {
namespace {

constexpr std::chrono::seconds kReportInterval{2};
constexpr std::size_t kMostThreads = 10'000;

}  // namespace

bool OpenFiles::has_open_files() {
  const std::scoped_lock lock(mutex_);
  return !files_.empty();
}

bool OpenFiles::is_open(FileId id) {
  const std::scoped_lock lock(mutex_);
  return files_.contains(id);
}

bool OpenFiles::keep(FileId id) {
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(id);
  if (found == files_.end()) return false;
  found->second.is_removed = true;
  return true;
}

void OpenFiles::opened(FileId id) {
  const std::scoped_lock lock(mutex_);
  ++files_[id].count;
}

bool OpenFiles::closed(FileId id) {
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(id);
  if (found == files_.end() || --found->second.count > 0) return false;
  const bool is_removed = found->second.is_removed;
  files_.erase(found);
  return is_removed;
}

std::vector<FileId> OpenFiles::all() {
  const std::scoped_lock lock(mutex_);
  std::vector<FileId> files;
  files.reserve(files_.size());
  for (const auto& [id, state] : files_) files.push_back(id);
  return files;
}

OpenFiles& open_files() {
  static OpenFiles files;
  return files;
}

void RepeatedOpens::add(pid_t thread, std::int64_t for_ms) {
  const std::scoped_lock lock(mutex_);
  if (until_ms_.size() >= kMostThreads) until_ms_.clear();
  until_ms_[thread] = monotonic_ms() + for_ms;
}

bool RepeatedOpens::contains(pid_t thread) {
  const std::scoped_lock lock(mutex_);
  const auto found = until_ms_.find(thread);
  return found != until_ms_.end() && monotonic_ms() < found->second;
}

bool RepeatedOpens::take(pid_t thread) {
  const std::scoped_lock lock(mutex_);
  const auto found = until_ms_.find(thread);
  if (found == until_ms_.end()) return false;
  const bool is_recent = monotonic_ms() < found->second;
  until_ms_.erase(found);
  return is_recent;
}

RepeatedOpens& repeated_opens() {
  static RepeatedOpens opens;
  return opens;
}

OpenFileReporter::OpenFileReporter(Volume& volume, std::function<bool()> has_ended)
    : volume_(volume), has_ended_(std::move(has_ended)), thread_([this] { run(); }) {}

OpenFileReporter::~OpenFileReporter() {
  {
    const std::scoped_lock lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
  for (auto& [server, report] : reports_) report.thread.join();
}

void OpenFileReporter::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kReportInterval, [this] { return is_stopped_; })) {
    if (has_ended_()) volume_.stop_waiting();
    std::map<std::uint32_t, std::vector<FileId>> by_server;
    for (const FileId id : open_files().all()) {
      if (home_of(id) < volume_.servers()) by_server[home_of(id)].push_back(id);
    }
    for (auto& [server, files] : by_server) {
      Report& report = reports_[server];
      report.files.swap(files);
      if (!report.thread.joinable()) {
        report.thread = std::thread([this, to = server] { send(to); });
      }
    }
    if (!by_server.empty()) changed_.notify_all();
  }
}

void OpenFileReporter::send(std::uint32_t server) {
  std::unique_lock lock(mutex_);
  Report& report = reports_[server];
  for (;;) {
    changed_.wait(lock, [&] { return is_stopped_ || !report.files.empty(); });
    if (is_stopped_) return;
    std::vector<FileId> files;
    files.swap(report.files);
    lock.unlock();
    volume_.hold(server, std::move(files));
    lock.lock();
  }
}

}  // namespace score::pario
