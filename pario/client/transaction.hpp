// A transaction: what it writes stays in this object until it is committed, and what it reads is
// checked then. See core/transactions.hpp.
#pragma once

#include "pario/client/volume.hpp"
#include "pario/core/transactions.hpp"

#include <map>
#include <set>

namespace score::pario {

// One thread uses it.
class Volume::Transaction {
 public:
  // `is_stable`: once committed it survives a loss of power.
  Transaction(Volume& volume, bool is_stable);

  // Bytes or a negative errno value. Bytes that are not there, also beyond the end, are 0, so that
  // all of them are read. Sees what the transaction has written.
  ssize_t read(const OpenFile& file, char* memory, const Extent& extent);
  ssize_t write(const OpenFile& file, const char* bytes, const Extent& extent);

  // Errno value. EAGAIN: in conflict with another transaction, nothing was changed; begin again.
  // ECONNABORTED: a server could not be reached, nothing was changed. EIO: a server could not be
  // reached, and it is not known whether it was committed. Afterwards nothing can be read, written
  // or committed.
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
  std::vector<std::pair<std::uint32_t, ReadAccess>> reads_;  // by server
  std::vector<Written> writes_;
  std::uint64_t written_bytes_ = 0;
  std::map<std::uint32_t, std::uint32_t> stages_;  // messages by server
};

}  // namespace score::pario
