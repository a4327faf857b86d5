#include "pario/core/homes/directory_times.hpp"

namespace score::pario {

void DirectoryTimes::put(FileId directory, const Known& known) {
  if (known_.size() >= kMostDirectories && !known_.contains(directory)) clear();
  known_[directory] = known;
}

void DirectoryTimes::made(FileId directory) {
  put(directory, {++version_, 0, false});
}

void DirectoryTimes::reported(FileId directory) {
  put(directory, {++version_, time(directory), true});
}

bool DirectoryTimes::is_open(FileId directory) const {
  const auto found = known_.find(directory);
  return found == known_.end() || found->second.is_open;
}

std::uint64_t DirectoryTimes::version(FileId directory) const {
  const auto found = known_.find(directory);
  return found == known_.end() ? unknown_ : found->second.version;
}

void DirectoryTimes::settle(FileId directory, std::uint64_t version, std::int64_t time_ns) {
  if (version == this->version(directory)) put(directory, {version, time_ns, false});
}

std::int64_t DirectoryTimes::time(FileId directory) const {
  const auto found = known_.find(directory);
  return found == known_.end() ? 0 : found->second.time_ns;
}

void DirectoryTimes::set_time(FileId directory, std::int64_t time_ns) {
  const auto found = known_.find(directory);
  if (found != known_.end()) found->second = {++version_, time_ns, found->second.is_open};
}

// A version that was named before must not be taken for one of the state without knowledge.
void DirectoryTimes::clear() {
  known_.clear();
  unknown_ = ++version_;
}

}  // namespace score::pario
