#include "pario/server/io/file_uses.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/stat.h>

namespace score::pario {
namespace {

constexpr std::size_t kMostExpired = 2'000;

}  // namespace

void FileUses::answered(const Request& request, const Answer& answer, std::uint64_t client,
                        std::int64_t now) {
  const bool has_number =
      request.op == Op::Lookup || request.op == Op::Create || request.op == Op::GetAttributes;
  Attributes given;
  if (!has_number || answer.error != 0 || !parse_body(answer.body, given)) return;
  if (given.mode == 0 || S_ISDIR(given.mode)) return;
  nameless_.asked(given.id, client, (request.flags & kWillOpen) != 0, now);
}

int FileUses::hold(std::string_view ids, std::uint64_t client, std::int64_t now) {
  if (ids.size() % sizeof(FileId) != 0) return EINVAL;
  for (; !ids.empty(); ids.remove_prefix(sizeof(FileId))) {
    FileId id = 0;
    std::memcpy(&id, ids.data(), sizeof id);
    nameless_.opened(id, client, now);
  }
  return 0;
}

bool FileUses::must_keep(const Request& request, FileId id, std::uint64_t client,
                         std::int64_t now) const {
  if ((request.flags & kForwarded) != 0) return (request.flags & kKept) != 0;
  // A client that replaces a name may be about to open the old file in a different thread.
  const bool is_replaced = request.op == Op::Remove && (request.flags & kNameless) == 0;
  const std::uint64_t remover = is_replaced ? 0 : client;
  return nameless_.is_needed(id, remover, now);
}

int FileUses::keep(FileId id, Inode& inode, std::int64_t now) {
  inode.links = 0;
  inode.changed_ns = now;
  nameless_.keep(id);
  const int error = store_.put(id, inode);
  return error != 0 ? error : store_.set_kept(id, true);
}

int FileUses::keep_open(FileId id, std::uint64_t client, std::int64_t now) {
  nameless_.keep(id);
  nameless_.opened(id, client, now);
  return store_.set_kept(id, true);
}

int FileUses::named(FileId id) {
  if (!nameless_.is_kept(id)) return 0;
  nameless_.forget(id);
  return store_.set_kept(id, false);
}

int FileUses::lock(const Request& request, std::string_view data, Answer& answer) {
  const bool drops = (request.mode & kDropClient) != 0;
  LockRequest wanted;
  if (data.size() != (drops ? 0 : sizeof wanted)) return EINVAL;
  if (!drops) std::memcpy(&wanted, data.data(), sizeof wanted);
  const std::uint32_t kind = request.mode & (kShared | kExclusiveLock | kWholeFile);
  if ((request.mode & ~kAllLockBits) != 0 || (!drops && wanted.begin >= wanted.end)) return EINVAL;
  std::vector<FileLock> locks;
  if (const int error = store_.get_locks(request.id, locks)) return error;
  const FileLock lock{request.number,
                      wanted.owner,
                      wanted.begin,
                      wanted.end,
                      static_cast<std::uint32_t>(wanted.process),
                      kind};
  if ((request.mode & kTestLock) != 0) {
    const FileLock* found = find_conflict(locks, lock);
    put(answer.body, found != nullptr ? *found : FileLock{});
    return 0;
  }
  const std::vector<FileLock> before = locks;
  const auto is_of_client = [&](const FileLock& one) { return one.client == request.number; };
  const int error = drops ? 0 : set_lock(locks, lock);
  if (drops) std::erase_if(locks, is_of_client);
  if (error != 0) return error;
  answer.number = static_cast<std::uint64_t>(std::ranges::count_if(locks, is_of_client));
  return locks == before ? 0 : store_.put_locks(request.id, locks);
}

std::vector<FileId> FileUses::expired(std::int64_t now) {
  return nameless_.expired(kMostExpired, now);
}

// Clients that have kept files open report them again soon.
int FileUses::load(std::int64_t now) {
  std::vector<FileId> files;
  if (const int error = store_.list_kept(files)) return error;
  nameless_.clear();
  for (const FileId id : files) {
    nameless_.keep(id);
    nameless_.opened(id, 0, now);
  }
  return 0;
}

}  // namespace score::pario
