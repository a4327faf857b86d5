#include "pario/scio/copy.hpp"

#include "pario/client/handles.hpp"
#include "pario/client/pario.hpp"
#include "pmlib/wire/siphash.hpp"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <span>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace score::pario {
namespace {

constexpr std::size_t kRound = std::size_t{16} << 20;  // a multiple of 8, as the checksum needs

struct LocalFile {
  explicit LocalFile(int number) : fd(number) {}

  ~LocalFile() {
    if (fd >= 0) ::close(fd);
  }

  LocalFile(const LocalFile&) = delete;
  LocalFile& operator=(const LocalFile&) = delete;
  int fd;
};

[[noreturn]] void fail(const std::string& path, ssize_t error) {
  throw path + ": " + std::strerror(static_cast<int>(error < 0 ? -error : errno));
}

::pario::File open_in(pario_volume* volume, const std::string& path, int flags) {
  pario_file* file = nullptr;
  const int result = pario_open(volume, path.c_str(), flags, 0644, &file);
  if (result < 0) fail(path, result);
  return ::pario::File(file);
}

// The checksum takes a file in whole words except at its end.
class Checksum {
 public:
  void add(const char* bytes, std::size_t length) {
    const auto part = std::as_bytes(std::span(bytes, length));
    result_.bytes += length;
    if (length == kRound) {
      hash_.add(part);
    } else {
      result_.checksum = hash_.finish(part);
      is_finished_ = true;
    }
  }

  CopyResult finish() {
    if (!is_finished_) result_.checksum = hash_.finish({});
    return result_;
  }

 private:
  pm::SipHash hash_{pm::SipKey{1, 2}};
  CopyResult result_;
  bool is_finished_ = false;
};

// Shows progress in one line, only on a terminal.
class Progress {
 public:
  explicit Progress(std::uint64_t size) : size_(size), is_shown_(::isatty(STDERR_FILENO) == 1) {}

  ~Progress() {
    if (is_shown_) std::fputs("\r\033[K", stderr);
  }

  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::uint64_t done) const {
    if (!is_shown_) return;
    const std::uint64_t percent =
        size_ == 0 ? 100 : std::min<std::uint64_t>(done, size_) * 100 / size_;
    std::fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " MB, %" PRIu64 " %%", done >> 20, size_ >> 20,
                 percent);
  }

 private:
  std::uint64_t size_;
  bool is_shown_;
};

std::size_t read_local(int fd, char* bytes, std::size_t length, const std::string& path) {
  std::size_t done = 0;
  while (done < length) {
    const ssize_t result = ::read(fd, bytes + done, length - done);
    if (result < 0 && errno == EINTR) continue;
    if (result < 0) fail(path, 0);
    if (result == 0) break;
    done += static_cast<std::size_t>(result);
  }
  return done;
}

void write_local(int fd, const char* bytes, std::size_t length, const std::string& path) {
  while (length > 0) {
    const ssize_t result = ::write(fd, bytes, length);
    if (result < 0 && errno == EINTR) continue;
    if (result < 0) fail(path, 0);
    bytes += result;
    length -= static_cast<std::size_t>(result);
  }
}

}  // namespace

CopyResult copy_in(pario_volume* volume, const std::string& local, const std::string& path) {
  const LocalFile source(::open(local.c_str(), O_RDONLY | O_CLOEXEC));
  if (source.fd < 0) fail(local, 0);
  const ::pario::File file = open_in(volume, path, O_WRONLY | O_CREAT | O_TRUNC);

  struct stat status {};

  ::fstat(source.fd, &status);
  const Progress progress(static_cast<std::uint64_t>(status.st_size));
  std::vector<char> memory(kRound);
  Checksum checksum;
  for (std::uint64_t offset = 0;;) {
    const std::size_t length = read_local(source.fd, memory.data(), kRound, local);
    if (length == 0) break;
    const ssize_t result = pario_pwrite(file.get(), memory.data(), length, offset);
    if (result < 0) fail(path, result);
    checksum.add(memory.data(), length);
    offset += length;
    progress.show(offset);
    if (length < kRound) break;
  }
  if (const int result = pario_fsync(file.get())) fail(path, result);
  return checksum.finish();
}

std::uint64_t copy_inside(pario_volume* volume, const std::string& from, const std::string& to) {
  const ::pario::File source = open_in(volume, from, O_RDONLY);

  struct stat status {};

  struct stat there {};

  if (const int result = pario_fstat(source.get(), &status)) fail(from, result);
  if (S_ISDIR(status.st_mode)) fail(from, -EISDIR);
  const bool exists = pario_stat(volume, to.c_str(), &there) == 0;
  if (exists && there.st_ino == status.st_ino) throw to + ": is the same file as " + from;
  const ::pario::File target = open_in(volume, to, O_WRONLY | O_CREAT | O_TRUNC);
  const Progress progress(static_cast<std::uint64_t>(status.st_size));
  Volume& own = *volume->volume;
  std::uint64_t done = 0;
  for (;;) {
    const Extent rest{done, kMaxOffset - done};
    const ssize_t result = own.copy(source.get()->file, done, target.get()->file, rest);
    if (result < 0) fail(to, result);
    if (result == 0) break;
    done += static_cast<std::uint64_t>(result);
    progress.show(done);
  }
  if (const int result = pario_fsync(target.get())) fail(to, result);
  return done;
}

CopyResult copy_out(pario_volume* volume, const std::string& path, const std::string& local) {
  const ::pario::File file = open_in(volume, path, O_RDONLY);
  const LocalFile target(::open(local.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (target.fd < 0) fail(local, 0);

  struct stat status {};

  if (const int result = pario_fstat(file.get(), &status)) fail(path, result);
  const Progress progress(static_cast<std::uint64_t>(status.st_size));
  std::vector<char> memory(kRound);
  Checksum checksum;
  for (std::uint64_t offset = 0;;) {
    const ssize_t result = pario_pread(file.get(), memory.data(), kRound, offset);
    if (result < 0) fail(path, result);
    const auto length = static_cast<std::size_t>(result);
    write_local(target.fd, memory.data(), length, local);
    if (length > 0) checksum.add(memory.data(), length);
    offset += length;
    progress.show(offset);
    if (length < kRound) break;
  }
  return checksum.finish();
}

}  // namespace score::pario
