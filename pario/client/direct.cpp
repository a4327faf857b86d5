#include "pario/client/direct.hpp"

#include "pario/client/socket_calls.hpp"
#include "pario/core/quota.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <span>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace score::pario {
namespace {

constexpr std::size_t kMostOpen = 256;
constexpr std::uint64_t kLeaseBytes = std::uint64_t{64} << 20;

// A run joins extents that follow each other in the file into one call.
struct Run {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::vector<iovec> pieces;
};

std::vector<Run> runs_of(const Request& request, const std::vector<iovec>& memory) {
  constexpr std::size_t kMostPieces = 1'024;  // IOV_MAX of Linux
  std::vector<Run> runs;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const Extent& extent = request.extents[i];
    const bool follows = !runs.empty() &&
                         runs.back().offset + runs.back().length == extent.offset &&
                         runs.back().pieces.size() < kMostPieces;
    if (!follows) runs.push_back({extent.offset, 0, {}});
    runs.back().length += extent.length;
    runs.back().pieces.push_back(memory[i]);
  }
  return runs;
}

void skip_run_bytes(Run& run, std::uint64_t done) {
  run.offset += done;
  run.length -= done;
  std::size_t whole = 0;
  while (whole < run.pieces.size() && done >= run.pieces[whole].iov_len) {
    done -= run.pieces[whole++].iov_len;
  }
  run.pieces.erase(run.pieces.begin(), run.pieces.begin() + static_cast<std::ptrdiff_t>(whole));
  if (run.pieces.empty()) return;
  iovec& first = run.pieces.front();
  first.iov_base = static_cast<char*>(first.iov_base) + done;
  first.iov_len -= done;
}

// Returns the bytes up to the last one before the end of the data, as the server counts them.
std::uint64_t bytes_before(const Request& request, std::uint64_t size) {
  std::uint64_t before = 0;
  std::uint64_t used = 0;
  for (const Extent& extent : request.extents) {
    if (extent.offset < size) used = before + std::min(extent.length, size - extent.offset);
    before += extent.length;
  }
  return used;
}

}  // namespace

struct DirectFiles::File {
  explicit File(int opened) : fd(opened) {}

  File(const File&) = delete;
  File& operator=(const File&) = delete;

  ~File() { ::close(fd); }

  const int fd;
  std::mutex mutex;  // protects the lease
  std::uint64_t left = 0;
  std::uint64_t written = 0;  // since the lease was taken
  std::int64_t end_ms = 0;
  std::int64_t refused_until_ms = 0;
  std::mutex lock_mutex;
  unsigned writers = 0;  // threads
};

// The file is locked while it is written, from before the lease is checked. This process may be
// stopped in between for longer than the lease, and the server must see that a write is pending.
class DirectFiles::Writing {
 public:
  explicit Writing(File& file) : file_(file) {
    const std::scoped_lock lock(file.lock_mutex);
    holds_ = file.writers > 0 || ::flock(file.fd, LOCK_SH | LOCK_NB) == 0;
    if (holds_) ++file.writers;
  }

  ~Writing() {
    if (!holds_) return;
    const std::scoped_lock lock(file_.lock_mutex);
    if (--file_.writers == 0) ::flock(file_.fd, LOCK_UN);
  }

  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

  bool holds() const { return holds_; }

 private:
  File& file_;
  bool holds_ = false;
};

// The numbers of a process and a descriptor are valid only on one node, so the device and inode are
// compared.
std::unique_ptr<DirectFiles> DirectFiles::open(const DataPlace& place, TakeLease take_lease) {
  const std::string path =
      "/proc/" + std::to_string(place.process) + "/fd/" + std::to_string(place.directory);
  const int fd = ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  std::unique_ptr<DirectFiles> made(new DirectFiles(fd, std::move(take_lease)));

  struct stat found {};

  const bool is_it = ::fstat(fd, &found) == 0 && found.st_dev == place.device &&
                     found.st_ino == place.inode && found.st_uid == ::geteuid();
  return is_it ? std::move(made) : nullptr;
}

DirectFiles::~DirectFiles() {
  ::close(directory_);
}

DirectFiles::FilePtr DirectFiles::find(FileId id) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = files_.find(id); found != files_.end()) return found->second;
  const int fd = ::openat(directory_, data_path(id).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return nullptr;
  if (files_.size() >= kMostOpen) files_.erase(files_.begin());
  return files_.emplace(id, std::make_shared<File>(fd)).first->second;
}

void DirectFiles::forget(FileId id) {
  const std::scoped_lock lock(mutex_);
  files_.erase(id);
}

bool DirectFiles::run(const Request& request, const std::vector<iovec>& memory, Reply& reply) {
  const FilePtr file = find(request.id);
  if (!file || memory.size() != request.extents.size()) return false;
  const bool is_read = request.op == Op::Read;
  if (!(is_read ? read(*file, request, memory) : write(*file, request, memory))) return false;

  struct stat status {};

  if (::fstat(file->fd, &status) != 0 || status.st_nlink == 0) {  // removed in the meantime
    forget(request.id);
    return false;
  }
  reply = {.tag = request.tag, .number = 0};
  if (!is_read) return true;
  reply.number = static_cast<std::uint64_t>(status.st_size);
  reply.data_bytes = static_cast<std::uint32_t>(bytes_before(request, reply.number));
  return true;
}

bool DirectFiles::read(File& file, const Request& request, const std::vector<iovec>& memory) {
  for (Run& run : runs_of(request, memory)) {
    while (run.length > 0) {
      const ssize_t done =
          ::preadv2(file.fd, run.pieces.data(), static_cast<int>(run.pieces.size()),
                    static_cast<off_t>(run.offset), RWF_NOWAIT);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return false;  // not in memory
      if (done == 0) break;        // the end
      skip_run_bytes(run, static_cast<std::uint64_t>(done));
    }
    for (const iovec& piece : run.pieces) std::memset(piece.iov_base, 0, piece.iov_len);
  }
  return true;
}

bool DirectFiles::write(File& file, const Request& request, const std::vector<iovec>& memory) {
  std::uint64_t space = 0;
  for (const Extent& extent : request.extents) space += most_space(extent.length);
  const Writing writing(file);
  if (!writing.holds() || !has_lease(file, request.id, space)) return false;
  for (Run& run : runs_of(request, memory)) {
    while (run.length > 0) {
      const ssize_t done =
          ::pwritev(file.fd, run.pieces.data(), static_cast<int>(run.pieces.size()),
                    static_cast<off_t>(run.offset));
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return false;  // the server encounters the same error and reports it
      skip_run_bytes(run, static_cast<std::uint64_t>(done));
    }
  }
  return true;
}

// The lease is counted from before the request, so it ends here well before the server ends it.
bool DirectFiles::has_lease(File& file, FileId id, std::uint64_t bytes) {
  const std::scoped_lock lock(file.mutex);
  const std::int64_t now = monotonic_ms();
  if (now < file.refused_until_ms) return false;
  if (file.left < bytes || now >= file.end_ms) {
    std::uint64_t wanted = std::max(bytes, kLeaseBytes);
    int error = take_lease_(id, wanted, file.written);
    for (const std::uint64_t less : {kLeaseBytes / 16, bytes}) {
      if (error == ENOSPC && less < wanted)
        error = take_lease_(id, wanted = std::max(less, bytes), 0);
    }
    file.left = error == 0 ? wanted : 0;
    file.written = 0;
    file.end_ms = now + kLeaseMs / 2;
    if (error == EBUSY) file.refused_until_ms = file.end_ms;  // transactions use the file
    if (error != 0) return false;
  }
  file.left -= bytes;
  file.written += bytes;
  return true;
}

}  // namespace score::pario
