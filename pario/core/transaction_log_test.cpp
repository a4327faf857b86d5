#include "pario/core/transaction_log.hpp"

#include <gtest/gtest.h>

namespace score::pario {
namespace {

constexpr FileId kFile = 1 << kHomeBits;

LogRecord record_of(LogRecord::Kind kind, TransactionId id) {
  LogRecord record{.kind = kind, .part = {}, .boot = 0};
  record.part.id = id;
  record.part.coordinator = 1;
  record.part.servers = {1, 2};
  return record;
}

TEST(TransactionLog, DecodesEncodedRecords) {
  LogRecord prepared = record_of(LogRecord::Kind::Prepared, 7);
  prepared.part.is_stable = true;
  prepared.part.reads = {{kFile, {100, 8}, 55}};
  prepared.part.writes = {{kFile, {0, 3}, "abc"}};
  LogRecord applied;
  applied.kind = LogRecord::Kind::Applied;
  applied.part.id = 7;
  applied.boot = 99;
  LogRecord flushed{.kind = LogRecord::Kind::Flushed, .part = {}, .file = kFile};
  flushed.part.id = 7;
  const std::string log = encode(prepared) + encode(applied) + encode(flushed);
  LogRecord found;
  const std::size_t length = decode(log, found);
  EXPECT_EQ(found, prepared);
  const std::size_t next = length + decode(std::string_view(log).substr(length), found);
  EXPECT_EQ(found, applied);
  EXPECT_EQ(next + decode(std::string_view(log).substr(next), found), log.size());
  EXPECT_EQ(found, flushed);
}

TEST(TransactionLog, EndsAtDamagedOrShortRecord) {
  const std::string good = encode(record_of(LogRecord::Kind::Prepared, 7));
  LogRecord found;
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_EQ(decode(std::string_view(good).substr(0, length), found), 0U);
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    EXPECT_EQ(decode(bad, found), 0U) << at;
  }
}

}  // namespace
}  // namespace score::pario
