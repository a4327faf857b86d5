#include "proto/frames/key_values.hpp"

#include "base/limits.hpp"
#include "proto/frames/errc.hpp"

#include <cstdint>

namespace score::proto {

namespace {

constexpr std::size_t kEntryHeaderBytes = 4;
static_assert(base::limits::kMaxPmiKeyBytes <= 0xffff && kMaxValueBytes <= 0xffff,
              "lengths of an entry are 16-bit");
static_assert(base::limits::kMaxPmiKeyBytes + kMaxValueBytes < base::limits::kMaxPmiLineBytes,
              "a put fits into a line");

void append_u16(std::string& out, std::size_t value) {
  out += static_cast<char>(value & 0xff);
  out += static_cast<char>(value >> 8U);
}

std::size_t u16_at(std::string_view in, std::size_t at) {
  auto low = static_cast<unsigned char>(in[at]);
  auto high = static_cast<unsigned char>(in[at + 1]);
  return low | static_cast<std::size_t>(high) << 8U;
}

}  // namespace

base::Result<void> append_key_value(std::string& batch, std::string_view key,
                                    std::string_view value) {
  if (key.empty()) return base::fail(base::Errc::Malformed, "empty key");
  if (key.size() > base::limits::kMaxPmiKeyBytes) {
    return base::fail(base::Errc::TooLarge, "key of {} bytes, limit {}", key.size(),
                      base::limits::kMaxPmiKeyBytes);
  }
  if (value.size() > kMaxValueBytes) {
    return base::fail(base::Errc::TooLarge, "value of {} bytes, limit {}", value.size(),
                      kMaxValueBytes);
  }
  append_u16(batch, key.size());
  append_u16(batch, value.size());
  batch += key;
  batch += value;
  return {};
}

base::Result<std::vector<KeyValue>> parse_key_values(std::string_view batch) {
  std::vector<KeyValue> entries;
  std::size_t at = 0;
  while (at < batch.size()) {
    std::size_t left = batch.size() - at;
    if (left < kEntryHeaderBytes) {
      return base::fail(WireErrc::BadMessage, "key/value entry cut short at byte {}", at);
    }
    std::size_t key_bytes = u16_at(batch, at);
    std::size_t value_bytes = u16_at(batch, at + 2);
    if (key_bytes == 0 || key_bytes > base::limits::kMaxPmiKeyBytes ||
        value_bytes > kMaxValueBytes) {
      return base::fail(WireErrc::BadMessage, "key of {} and value of {} bytes at byte {}",
                        key_bytes, value_bytes, at);
    }
    if (key_bytes + value_bytes > left - kEntryHeaderBytes) {
      return base::fail(WireErrc::BadMessage, "key/value entry cut short at byte {}", at);
    }
    at += kEntryHeaderBytes;
    entries.push_back({batch.substr(at, key_bytes), batch.substr(at + key_bytes, value_bytes)});
    at += key_bytes + value_bytes;
  }
  return entries;
}

}  // namespace score::proto
