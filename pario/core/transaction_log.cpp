#include "pario/core/transaction_log.hpp"

#include "pario/core/bytes.hpp"
#include "pmlib/wire/siphash.hpp"

#include <algorithm>
#include <functional>
#include <span>

namespace score::pario {
namespace {

constexpr std::size_t kFrameBytes = 12;
constexpr std::size_t kMaxRecordBytes =
    kMaxTransactionBytes + kMaxAccesses * 2 * 64 + kMaxServers * 2 + 64;

std::uint64_t checksum(std::string_view body) {
  return pm::SipHash({0x7061'7269'6f6c'6f67, 1}).finish(std::as_bytes(std::span(body)));
}

void put_servers(std::string& bytes, const TransactionPart& part) {
  put(bytes, part.coordinator, static_cast<std::uint8_t>(part.is_stable));
  put_list(bytes, part.servers);
}

void take_servers(Cursor& cursor, TransactionPart& part) {
  std::uint8_t stable = 0;
  cursor.take(part.coordinator, stable);
  cursor.take_list(kMaxServers, part.servers);
  part.is_stable = stable != 0;
  cursor.ok = cursor.ok && stable <= 1 && are_participants(part.servers, part.coordinator);
}

void put_accesses(std::string& bytes, const TransactionPart& part) {
  put(bytes, static_cast<std::uint32_t>(part.reads.size()));
  put(bytes, static_cast<std::uint32_t>(part.writes.size()));
  for (const ReadAccess& read : part.reads) put(bytes, read);
  for (const WriteAccess& write : part.writes) {
    put(bytes, write.file, write.extent);
    bytes += write.data;
  }
}

void take_accesses(Cursor& cursor, TransactionPart& part) {
  std::uint32_t reads = 0;
  std::uint32_t writes = 0;
  cursor.take(reads, writes);
  if (reads > kMaxAccesses || writes > kMaxAccesses) cursor.ok = false;
  for (std::uint32_t i = 0; cursor.ok && i < reads; ++i) {
    ReadAccess& read = part.reads.emplace_back();
    cursor.take(read);
    cursor.ok = cursor.ok && is_valid(read.extent);
  }
  for (std::uint32_t i = 0; cursor.ok && i < writes; ++i) {
    WriteAccess& write = part.writes.emplace_back();
    std::string_view data;
    cursor.take(write.file, write.extent);
    cursor.ok = cursor.ok && is_valid(write.extent);
    cursor.take_bytes(write.extent.length, data);
    write.data = data;
  }
}

bool decode_body(std::string_view body, LogRecord& record) {
  Cursor cursor{body};
  record = {};
  cursor.take(record.kind, record.part.id);
  if (record.part.id == 0) return false;
  switch (record.kind) {
    case LogRecord::Kind::Prepared:
      take_servers(cursor, record.part);
      if (cursor.ok) take_accesses(cursor, record.part);
      break;
    case LogRecord::Kind::Committed:
      take_servers(cursor, record.part);
      break;
    case LogRecord::Kind::Accesses:
      take_accesses(cursor, record.part);
      break;
    case LogRecord::Kind::Applied:
      cursor.take(record.boot);
      break;
    case LogRecord::Kind::Flushed:
      cursor.take(record.file);
      break;
    case LogRecord::Kind::Aborted:
    case LogRecord::Kind::Ended:
      break;
    default:
      return false;
  }
  return cursor.is_done();
}

}  // namespace

bool are_participants(const std::vector<std::uint16_t>& servers, std::uint64_t coordinator) {
  return std::ranges::adjacent_find(servers, std::greater_equal{}) == servers.end() &&
         servers.back() < kMaxServers && std::ranges::binary_search(servers, coordinator);
}

std::string encode(const LogRecord& record) {
  std::string body;
  put(body, record.kind, record.part.id);
  if (record.kind == LogRecord::Kind::Prepared || record.kind == LogRecord::Kind::Committed) {
    put_servers(body, record.part);
  }
  if (record.kind == LogRecord::Kind::Prepared || record.kind == LogRecord::Kind::Accesses) {
    put_accesses(body, record.part);
  }
  if (record.kind == LogRecord::Kind::Applied) put(body, record.boot);
  if (record.kind == LogRecord::Kind::Flushed) put(body, record.file);
  std::string bytes;
  put(bytes, static_cast<std::uint32_t>(body.size()), checksum(body));
  return bytes += body;
}

std::vector<std::string> encode_prepared(const TransactionPart& part) {
  constexpr std::size_t kAccessBytes = 32;  // without its data
  std::vector<std::string> records;
  LogRecord record{.kind = LogRecord::Kind::Accesses, .part = {}, .boot = 0};
  record.part.id = part.id;
  std::size_t used = 0;
  const auto make_room = [&](std::size_t bytes) {
    used += bytes;
    if (used <= kMostAccessBytes) return;
    records.push_back(encode(record));
    record.part.reads.clear();
    record.part.writes.clear();
    used = bytes;
  };
  for (const ReadAccess& read : part.reads) {
    make_room(kAccessBytes);
    record.part.reads.push_back(read);
  }
  constexpr std::uint64_t kMostData = kMostAccessBytes - kAccessBytes;
  for (const WriteAccess& write : part.writes) {
    for (std::uint64_t done = 0; done < write.extent.length; done += kMostData) {
      const std::uint64_t length = std::min(write.extent.length - done, kMostData);
      make_room(kAccessBytes + length);
      record.part.writes.push_back(
          {write.file, {write.extent.offset + done, length}, write.data.substr(done, length)});
    }
  }
  record.kind = LogRecord::Kind::Prepared;
  record.part.coordinator = part.coordinator;
  record.part.is_stable = part.is_stable;
  record.part.servers = part.servers;
  records.push_back(encode(record));
  return records;
}

std::size_t decode(std::string_view bytes, LogRecord& record) {
  Cursor cursor{bytes};
  std::uint32_t length = 0;
  std::uint64_t sum = 0;
  std::string_view body;
  cursor.take(length, sum);
  if (length > kMaxRecordBytes) return 0;
  cursor.take_bytes(length, body);
  if (!cursor.ok || checksum(body) != sum || !decode_body(body, record)) return 0;
  return kFrameBytes + length;
}

}  // namespace score::pario
