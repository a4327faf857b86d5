#include "pario/store/transaction_file.hpp"

#include "pmlib/wire/siphash.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <span>
#include <sys/stat.h>
#include <unistd.h>

namespace score::pario {
namespace {

constexpr const char* kName = "transactions";
constexpr const char* kNewName = "transactions.new";
constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;

int write_all(int fd, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return done < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
  return 0;
}

}  // namespace

int TransactionFile::open(int directory, const std::function<void(LogRecord)>& each) {
  directory_ = UniqueFd(::fcntl(directory, F_DUPFD_CLOEXEC, 0));
  if (!directory_) return errno;
  fd_ = UniqueFd(::openat(directory, kName, kFlags, 0600));
  if (!fd_) return errno;
  std::string log;
  if (const int error = read_all(log)) return error;
  std::string_view rest = log;
  for (;;) {
    LogRecord record;
    const std::size_t length = decode(rest, record);
    if (length == 0) break;
    each(std::move(record));
    rest.remove_prefix(length);
  }
  size_ = log.size() - rest.size();
  return ::ftruncate(fd_.get(), static_cast<off_t>(size_)) == 0 ? 0 : errno;
}

int TransactionFile::read_all(std::string& log) {
  struct stat status {};

  if (::fstat(fd_.get(), &status) != 0) return errno;
  log.resize(static_cast<std::size_t>(status.st_size));
  std::size_t at = 0;
  while (at < log.size()) {
    const ssize_t done =
        ::pread(fd_.get(), log.data() + at, log.size() - at, static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    if (done == 0) break;
    at += static_cast<std::size_t>(done);
  }
  log.resize(at);
  return 0;
}

int TransactionFile::append(std::string_view record) {
  const int error = write_all(fd_.get(), record, size_);
  if (error != 0) {
    return ::ftruncate(fd_.get(), static_cast<off_t>(size_)) == 0 ? error : errno;
  }
  size_ += record.size();
  return 0;
}

int TransactionFile::replace(std::string_view log) {
  UniqueFd made(::openat(directory_.get(), kNewName, kFlags | O_TRUNC, 0600));
  if (!made) return errno;
  if (const int error = write_all(made.get(), log, 0)) return error;
  if (::fdatasync(made.get()) != 0) return errno;
  if (::renameat(directory_.get(), kNewName, directory_.get(), kName) != 0) return errno;
  if (::fsync(directory_.get()) != 0) return errno;
  fd_ = std::move(made);
  size_ = log.size();
  return 0;
}

std::uint64_t boot_number() {
  const UniqueFd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  std::array<char, 64> text{};
  const ssize_t length = file ? ::read(file.get(), text.data(), text.size()) : 0;
  if (length <= 0) return 0;
  const std::span used(text.data(), static_cast<std::size_t>(length));
  return pm::SipHash({1, 2}).finish(std::as_bytes(used)) | 1;
}

}  // namespace score::pario
