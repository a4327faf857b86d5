// Implements a transaction. Its writes stay in this object until it is committed, and its reads are
// checked then. See core/transactions.hpp.
#pragma once

#include "pario/client/volume.hpp"
#include "pario/core/transactions.hpp"

#include <map>
#include <set>

namespace score::pario {

// Only one thread may use a transaction.
class Volume::Transaction {
 public:
  // If `is_stable`, the transaction survives a loss of power once it is committed.
  Transaction(Volume& volume, bool is_stable);

  // These return the number of bytes or a negative errno value. Bytes that do not exist, including
  // those beyond the end, are read as 0, so a read always returns all bytes. A read sees the writes
  // of the transaction.
  ssize_t read(const OpenFile& file, char* memory, const Extent& extent);
  ssize_t write(const OpenFile& file, const char* bytes, const Extent& extent);

  // Returns an errno value. EAGAIN: the transaction conflicts with another one, and nothing was
  // changed; begin again. ECONNABORTED: a server could not be reached, and nothing was changed.
  // EIO: a server could not be reached, and it is not known whether the transaction was committed.
  // Afterwards nothing can be read, written or committed.
  int commit();

 private:
  struct Written {
    FileId file = 0;
    std::uint64_t offset = 0;
    std::string data;
  };

  using Calls = std::vector<std::pair<std::uint32_t, std::unique_ptr<Call>>>;

  int read_piece(FileId file, const Piece& piece, char* memory);
  void add_reads(Calls& calls);
  int add_writes(Calls& calls);
  Call& add(Calls& calls, std::uint32_t server, Request request);
  Call& add_stage(Calls& calls, std::uint32_t server, FileId file, std::uint64_t stamp);
  int run(Calls& calls);
  int stage();
  int prepare(std::span<const std::uint16_t> servers);
  int finish(std::span<const std::uint16_t> servers, bool commits);
  int decide();

  Volume& volume_;
  bool is_stable_;
  bool is_over_ = false;
  TransactionId id_ = 0;
  std::vector<std::pair<std::uint32_t, ReadAccess>> reads_;  // [server, access]
  std::vector<Written> writes_;
  std::uint64_t written_bytes_ = 0;
  std::map<std::uint32_t, std::uint32_t> stages_;  // messages by server
};

}  // namespace score::pario
