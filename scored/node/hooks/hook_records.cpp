#include "scored/node/hooks/hook_records.hpp"

#include "base/model/model.hpp"
#include "base/os/fd.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace score::node {

namespace {

constexpr mode_t kDirectoryMode = 0700;
constexpr mode_t kFileMode = 0600;

bool is_record(const std::string& bytes, hooks::HookRequest& record) {
  if (bytes.size() != sizeof record) return false;
  std::memcpy(&record, bytes.data(), sizeof record);
  return record.magic == hooks::kMagic && record.version == hooks::kVersion && record.attempt != 0;
}

}  // namespace

std::string HookRecords::path_of(AttemptId attempt) const {
  return fmt::format("{}/{}", directory_, attempt);
}

void HookRecords::load() {
  std::error_code ignored;
  std::vector<std::string> wrong;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, ignored)) {
    const std::string path = entry.path();
    const auto bytes = read_file(path, sizeof(hooks::HookRequest));
    hooks::HookRequest record;
    const bool is_sound =
        bytes && is_record(*bytes, record) && path == path_of(AttemptId(record.attempt));
    if (is_sound) {
      records_[AttemptId(record.attempt)] = record;
    } else {
      wrong.push_back(path);
    }
  }
  for (const std::string& path : wrong) unlink(path.c_str());
}

Status HookRecords::add(const hooks::HookRequest& request) {
  const AttemptId attempt(request.attempt);
  if (mkdir(directory_.c_str(), kDirectoryMode) != 0 && errno != EEXIST)
    return fail(errno_code(errno), "cannot make {}", directory_);
  const std::string_view bytes(reinterpret_cast<const char*>(&request), sizeof request);
  if (auto stored = replace_file(path_of(attempt), bytes, kFileMode); !stored) return stored;
  records_[attempt] = request;
  return {};
}

void HookRecords::remove(AttemptId attempt) {
  if (records_.erase(attempt) > 0) unlink(path_of(attempt).c_str());
}

const hooks::HookRequest* HookRecords::find(AttemptId attempt) const {
  const auto found = records_.find(attempt);
  return found == records_.end() ? nullptr : &found->second;
}

std::vector<AttemptId> HookRecords::all() const {
  std::vector<AttemptId> attempts;
  for (const auto& [attempt, record] : records_) attempts.push_back(attempt);
  return attempts;
}

bool HookRecords::has_other(AttemptId attempt) const {
  return std::ranges::any_of(records_, [attempt](const auto& entry) {
    return entry.first != attempt && job_of(entry.first) == job_of(attempt);
  });
}

}  // namespace score::node
