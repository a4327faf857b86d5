// The log of transactions of one server consists of records in a file. A record is its length (4
// bytes), a checksum of its body (8) and the body. The first record that is incomplete or has a
// wrong checksum ends the log: it was being written when the server ended.
#pragma once

#include "pario/core/layout.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace score::pario {

using TransactionId = std::uint64_t;  // random, made by the client; not 0

inline constexpr std::size_t kMaxTransactionBytes = std::size_t{16} << 20;  // written, per server
inline constexpr std::size_t kMaxAccesses = 65'536;                         // per server

// Describes bytes of a data file that a transaction has read.
struct ReadAccess {
  FileId file = 0;
  Extent extent;
  std::uint64_t stamp = 0;  // of the read; see Transactions::stamp()

  friend bool operator==(const ReadAccess&, const ReadAccess&) = default;
};

struct WriteAccess {
  FileId file = 0;
  Extent extent;
  std::string data;

  friend bool operator==(const WriteAccess&, const WriteAccess&) = default;
};

// Describes what one server contributes to a transaction.
struct TransactionPart {
  TransactionId id = 0;
  std::uint16_t coordinator = 0;       // the server that decides
  bool is_stable = false;              // a commit survives a loss of power
  std::vector<std::uint16_t> servers;  // all participants, ascending
  std::vector<ReadAccess> reads;
  std::vector<WriteAccess> writes;

  friend bool operator==(const TransactionPart&, const TransactionPart&) = default;
};

struct LogRecord {
  enum class Kind : std::uint8_t {
    Prepared = 1,  // the whole part
    Committed,     // id, coordinator, servers, is_stable
    Aborted,       // id
    Applied,       // id, boot: the writes are in the files until a loss of power
    Ended,         // id: all servers have committed
    Accesses,      // id, reads and writes: the first accesses of a later Prepared record
    Flushed,       // id, file: its writes to the file are on the disk
    Last = Flushed,
  };

  Kind kind = Kind::Prepared;
  TransactionPart part;
  std::uint64_t boot = 0;  // of the system when it was applied
  FileId file = 0;         // of Flushed

  friend bool operator==(const LogRecord&, const LogRecord&) = default;
};

// This limits the records of encode_prepared(), so that each fits into a message to the other
// replica.
inline constexpr std::size_t kMostAccessBytes = std::size_t{512} << 10;

// Returns true if the list is ascending, contains the coordinator and only valid servers. It must
// not be empty.
bool are_participants(const std::vector<std::uint16_t>& servers, std::uint64_t coordinator);

std::string encode(const LogRecord& record);
// Returns any number of Accesses records, then a Prepared record.
std::vector<std::string> encode_prepared(const TransactionPart& part);
// Returns the number of bytes of the first record; 0 if there is no complete, valid one.
std::size_t decode(std::string_view bytes, LogRecord& record);

}  // namespace score::pario
