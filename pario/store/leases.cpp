#include "pario/store/leases.hpp"

#include <cerrno>

namespace score::pario {

int Leases::take(const void* holder, std::shared_ptr<DataFile> file, std::uint64_t bytes,
                 std::int64_t now_ms) {
  const auto key = std::pair(holder, file->id);
  if (const auto found = leases_.find(key); found != leases_.end()) {
    files_.settle(*found->second.file, found->second.bytes);
    leases_.erase(found);
  }
  if (bytes == 0) return 0;
  if (leases_.size() >= kMost) return ENOBUFS;
  if (!files_.set_aside(bytes)) return ENOSPC;
  leases_.emplace(key, Lease{std::move(file), bytes, now_ms});
  return 0;
}

void Leases::leave(const void* holder) {
  end_if([holder](const void* other, const Lease&) { return other == holder; });
}

void Leases::count() {
  for (const auto& [key, lease] : leases_) files_.settle(*lease.file, 0);
}

void Leases::tick(std::int64_t now_ms) {
  end_if([now_ms](const void*, const Lease& lease) { return now_ms - lease.since_ms >= kLeaseMs; });
}

}  // namespace score::pario
