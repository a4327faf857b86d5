#include "scored/head/streams/kept_outputs.hpp"

#include <algorithm>
#include <utility>

namespace score::head {

void KeptOutputs::add(JobId job, UserId user, Chunks chunks) {
  if (chunks.empty()) return;
  Kept kept{job, user, std::move(chunks), 0};
  for (const auto& chunk : kept.chunks) kept.bytes += chunk->data.size() + sizeof(OutputChunk);
  bytes_ += kept.bytes;
  bytes_of_[user] += kept.bytes;
  counts_.take(user);
  kept_.push_back(std::move(kept));
  while (is_over(user)) drop(std::ranges::find(kept_, user, &Kept::user));
  while (bytes_ > kMaxBytes || counts_.taken() > counts_.share().places) drop(kept_.begin());
}

bool KeptOutputs::is_over(UserId user) const {
  const auto bytes = bytes_of_.find(user);
  return counts_.taken_by(user) > counts_.share().per_user ||
         (bytes != bytes_of_.end() && bytes->second > kMaxBytesOfUser);
}

void KeptOutputs::drop(std::list<Kept>::iterator kept) {
  bytes_ -= kept->bytes;
  const auto bytes = bytes_of_.find(kept->user);
  bytes->second -= kept->bytes;
  if (bytes->second == 0) bytes_of_.erase(bytes);
  counts_.give_back(kept->user);
  kept_.erase(kept);
}

std::span<const std::shared_ptr<const OutputChunk>> KeptOutputs::of(JobId job) const {
  const auto found = std::ranges::find(kept_, job, &Kept::job);
  if (found == kept_.end()) return {};
  return found->chunks;
}

}  // namespace score::head
