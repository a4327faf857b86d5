// libpario for C++ provides owners for the handles of pario.h, and errors as exceptions. It is
// header-only and needs C++20.
#pragma once

#include "pario.h"

#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>

namespace pario {

// Throws std::system_error for a negative result.
template <typename T>
T check(T result, const std::string& what) {
  if (result < 0) {
    throw std::system_error(static_cast<int>(-result), std::generic_category(), what);
  }
  return result;
}

// Represents a read or write in progress. The destructor waits for its end.
class Transfer {
 public:
  explicit Transfer(pario_transfer* transfer) : transfer_(transfer) {}

  Transfer(Transfer&& other) noexcept : transfer_(std::exchange(other.transfer_, nullptr)) {}

  Transfer& operator=(Transfer&&) = delete;

  ~Transfer() {
    if (transfer_ != nullptr) pario_wait(transfer_);
  }

  // Returns the number of bytes. Call it once.
  std::size_t wait() {
    return static_cast<std::size_t>(
        check(pario_wait(std::exchange(transfer_, nullptr)), "pario_wait"));
  }

 private:
  pario_transfer* transfer_;
};

class File {
 public:
  // Takes ownership of a pario_file; see pario_open().
  explicit File(pario_file* file) : file_(file, &pario_close) {}

  std::size_t read(std::span<char> into, std::uint64_t offset) {
    return size(pario_pread(get(), into.data(), into.size(), offset), "read");
  }

  std::size_t write(std::span<const char> from, std::uint64_t offset) {
    return size(pario_pwrite(get(), from.data(), from.size(), offset), "write");
  }

  // `memory` holds the bytes of all extents, and must live until the transfer has ended.
  Transfer start_read(std::span<const pario_extent> extents, char* memory) {
    pario_transfer* made = nullptr;
    check(pario_start_read(get(), extents.data(), extents.size(), memory, &made), "read");
    return Transfer(made);
  }

  Transfer start_write(std::span<const pario_extent> extents, const char* memory) {
    pario_transfer* made = nullptr;
    check(pario_start_write(get(), extents.data(), extents.size(), memory, &made), "write");
    return Transfer(made);
  }

  std::size_t read(const pario_view& view, std::span<char> into, std::uint64_t offset) {
    return size(pario_read_view(get(), &view, into.data(), into.size(), offset), "read");
  }

  std::size_t write(const pario_view& view, std::span<const char> from, std::uint64_t offset) {
    return size(pario_write_view(get(), &view, from.data(), from.size(), offset), "write");
  }

  void sync() { check(pario_fsync(get()), "sync"); }

  void truncate(std::uint64_t length) { check(pario_ftruncate(get(), length), "truncate"); }

  pario_file* get() const { return file_.get(); }

 private:
  static std::size_t size(ssize_t result, const char* what) {
    return static_cast<std::size_t>(check(result, what));
  }

  std::unique_ptr<pario_file, int (*)(pario_file*)> file_;
};

// A transaction is aborted by the destructor unless it was committed.
class Transaction {
 public:
  // Takes ownership of a pario_transaction; see pario_begin().
  explicit Transaction(pario_transaction* made) : transaction_(made, &pario_abort) {}

  void read(const File& file, std::span<char> into, std::uint64_t offset) {
    check(pario_transaction_read(transaction_.get(), file.get(), into.data(), into.size(), offset),
          "read");
  }

  void write(const File& file, std::span<const char> from, std::uint64_t offset) {
    check(pario_transaction_write(transaction_.get(), file.get(), from.data(), from.size(), offset),
          "write");
  }

  // Returns false if the transaction conflicts with another one; nothing was changed.
  bool commit() {
    const int result = pario_commit(transaction_.release());
    return result != -EAGAIN && check(result, "pario_commit") == 0;
  }

 private:
  std::unique_ptr<pario_transaction, void (*)(pario_transaction*)> transaction_;
};

class Volume;

// Implements coordinated access of all ranks; see pario_join_group(). An error of any rank is
// thrown as an exception in all ranks.
class Group {
 public:
  Group(const Volume& volume, const std::string& name, std::uint32_t rank, std::uint32_t size);

  std::size_t read(File& file, std::span<const pario_extent> extents, char* memory) {
    return static_cast<std::size_t>(
        check(pario_read_all(get(), file.get(), extents.data(), extents.size(), memory), "read"));
  }

  std::size_t write(File& file, std::span<const pario_extent> extents, const char* memory) {
    return static_cast<std::size_t>(
        check(pario_write_all(get(), file.get(), extents.data(), extents.size(), memory), "write"));
  }

  std::size_t read(File& file, const pario_view& view, std::span<char> into, std::uint64_t offset) {
    return static_cast<std::size_t>(check(
        pario_read_view_all(get(), file.get(), &view, into.data(), into.size(), offset), "read"));
  }

  std::size_t write(File& file, const pario_view& view, std::span<const char> from,
                    std::uint64_t offset) {
    return static_cast<std::size_t>(check(
        pario_write_view_all(get(), file.get(), &view, from.data(), from.size(), offset), "write"));
  }

  pario_group* get() const { return group_.get(); }

 private:
  std::unique_ptr<pario_group, void (*)(pario_group*)> group_{nullptr, &pario_leave_group};
};

class Volume {
 public:
  // Null means the description that $PARIO_VOLUME names.
  explicit Volume(const char* description = nullptr) : volume_(nullptr, &pario_close_volume) {
    pario_volume* made = nullptr;
    std::string message(512, '\0');
    const int result = pario_open_volume(description, &made, message.data(), message.size());
    check(result, message.c_str());
    volume_.reset(made);
  }

  // Flags and mode are those of open(2).
  File open(const std::string& path, int flags, mode_t mode = 0644) {
    pario_file* made = nullptr;
    check(pario_open(get(), path.c_str(), flags, mode, &made), path);
    return File(made);
  }

  struct stat status(const std::string& path) {
    struct stat found {};

    check(pario_stat(get(), path.c_str(), &found), path);
    return found;
  }

  Transaction begin(int flags = PARIO_STABLE) {
    pario_transaction* made = nullptr;
    check(pario_begin(get(), flags, &made), "pario_begin");
    return Transaction(made);
  }

  // The other functions of pario.h take this handle.
  pario_volume* get() const { return volume_.get(); }

 private:
  std::unique_ptr<pario_volume, void (*)(pario_volume*)> volume_;
};

inline Group::Group(const Volume& volume, const std::string& name, std::uint32_t rank,
                    std::uint32_t size) {
  pario_group* made = nullptr;
  check(pario_join_group(volume.get(), name.c_str(), rank, size, &made), name);
  group_.reset(made);
}

}  // namespace pario
