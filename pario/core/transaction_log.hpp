// The log of transactions of one server: records that follow each other in a file. A record is its
// length (4 bytes), a checksum of its body (8) and the body. The first record that is incomplete or
// whose checksum is wrong ends the log: it was being written when the server ended.
#pragma once

#include "pario/core/layout.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace score::pario {

using TransactionId = std::uint64_t;  // random, made by the client; not 0

inline constexpr std::size_t kMaxTransactionBytes = std::size_t{16} << 20;  // written, per server
inline constexpr std::size_t kMaxAccesses = 65'536;                         // per server

// Bytes of a data file that a transaction has read.
struct ReadAccess {
  FileId file = 0;
  Extent extent;
  std::uint64_t stamp = 0;  // when; see Transactions::stamp()

  friend bool operator==(const ReadAccess&, const ReadAccess&) = default;
};

struct WriteAccess {
  FileId file = 0;
  Extent extent;
  std::string data;

  friend bool operator==(const WriteAccess&, const WriteAccess&) = default;
};

// What one server does of a transaction.
struct TransactionPart {
  TransactionId id = 0;
  std::uint16_t coordinator = 0;       // the server that decides
  bool is_stable = false;              // what is acknowledged survives a loss of power
  std::vector<std::uint16_t> servers;  // all that take part, ascending
  std::vector<ReadAccess> reads;
  std::vector<WriteAccess> writes;

  friend bool operator==(const TransactionPart&, const TransactionPart&) = default;
};

struct LogRecord {
  enum class Kind : std::uint8_t {
    Prepared = 1,  // the whole part
    Committed,     // id, coordinator, servers, is_stable
    Aborted,       // id
    Applied,       // id, boot: the writes are in the files; a loss of power may undo that
    Ended,         // id: all servers have committed
    Accesses,      // id, reads and writes: the first ones of a Prepared record that follows
    Flushed,       // id, file: what it has written there is on the disk
    Last = Flushed,
  };

  Kind kind = Kind::Prepared;
  TransactionPart part;
  std::uint64_t boot = 0;  // of the system when it was applied
  FileId file = 0;         // of Flushed

  friend bool operator==(const LogRecord&, const LogRecord&) = default;
};

// Of what encode_prepared() makes: small enough for a message to the other replica.
inline constexpr std::size_t kMostAccessBytes = std::size_t{512} << 10;

std::string encode(const LogRecord& record);
// Any number of Accesses records, then Prepared.
std::vector<std::string> encode_prepared(const TransactionPart& part);
// Bytes of the first record; 0: there is no whole, valid one.
std::size_t decode(std::string_view bytes, LogRecord& record);

}  // namespace score::pario
