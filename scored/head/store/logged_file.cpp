#include "scored/head/store/logged_file.hpp"

#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "base/os/log.hpp"

#include <fmt/format.h>

#include <utility>

namespace score::head {
namespace {

constexpr std::size_t kMostWaitingChanges = 256;

}  // namespace

LoggedFile::LoggedFile(CommitLog& commits, const std::string& directory, std::string_view name)
    : commits_(commits),
      path_(fmt::format("{}/{}", directory, name)),
      key_(fmt::format("{}{}", kFilePrefix, name)) {}

void LoggedFile::share() {
  if (auto text = read_file(path_, limits::kMaxConfigBytes)) {
    commits_.add(SaveSetting{key_, *std::move(text)});
  }
}

void LoggedFile::change(Make make, CommitLog::Confirmed done) {
  if (waiting_.size() >= kMostWaitingChanges) {
    return done(fail(Errc::Busy, "too many changes at once; try again"));
  }
  waiting_.push_back({std::move(make), std::move(done)});
  if (waiting_.size() == 1) begin();
}

void LoggedFile::begin() {
  auto text = waiting_.front().make();
  if (!text) return finish(text.error());
  std::vector<Change> changes;
  changes.emplace_back(SaveSetting{key_, *text});
  commits_.confirm(std::move(changes), [this, text = *text](const Result<LogReceipt>& logged) {
    if (logged) write(text);
    finish(logged);
  });
}

void LoggedFile::finish(const Result<LogReceipt>& logged) {
  const CommitLog::Confirmed done = std::move(waiting_.front().done);
  done(logged);
  waiting_.pop_front();
  if (!waiting_.empty()) begin();
}

// The text is in the store, from which the next start writes the file.
void LoggedFile::write(const std::string& text) const {
  if (auto written = replace_file(path_, text, 0600); !written) {
    log_error("Cannot write a file that the store has", kv("err", written.error()));
  }
}

}  // namespace score::head
