// Encodes numbers and texts as little-endian bytes, for messages and logs.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace score::pario {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

template <typename T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// The text is preceded by its length in 16 bits.
inline void put_text(std::string& bytes, std::string_view text) {
  put(bytes, static_cast<std::uint16_t>(text.size()));
  bytes += text;
}

// Reads from the front. After a read beyond the end, `ok` is false and stays so.
struct Cursor {
  std::string_view left;
  bool ok = true;

  template <typename T>
  void take(T& value) {
    if (!ok || left.size() < sizeof value) {
      ok = false;
      return;
    }
    std::memcpy(&value, left.data(), sizeof value);
    left.remove_prefix(sizeof value);
  }

  void take_bytes(std::size_t length, std::string_view& bytes) {
    if (!ok || left.size() < length) {
      ok = false;
      return;
    }
    bytes = left.substr(0, length);
    left.remove_prefix(length);
  }

  void take_text(std::string_view& text) {
    std::uint16_t length = 0;
    take(length);
    take_bytes(length, text);
  }

  bool is_done() const { return ok && left.empty(); }
};

}  // namespace score::pario
