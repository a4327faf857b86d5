// Encodes numbers, texts and structures as little-endian bytes, for messages and logs.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace score::pario {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

// Values are copied as they are in memory, structures too, so these must have no padding.
template <typename... T>
void put(std::string& bytes, const T&... values) {
  static_assert((std::has_unique_object_representations_v<T> && ...));
  (bytes.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
}

// The text is preceded by its length in 16 bits.
inline void put_text(std::string& bytes, std::string_view text) {
  put(bytes, static_cast<std::uint16_t>(text.size()));
  bytes += text;
}

// The list is preceded by its length in 16 bits.
template <typename T>
void put_list(std::string& bytes, const std::vector<T>& list) {
  put(bytes, static_cast<std::uint16_t>(list.size()));
  bytes.append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(T));
}

// Reads from the front. After a read beyond the end, `ok` is false and stays so.
struct Cursor {
  std::string_view left;
  bool ok = true;

  template <typename... T>
  void take(T&... values) {
    static_assert((std::has_unique_object_representations_v<T> && ...));
    ok = ok && (sizeof values + ...) <= left.size();
    if (!ok) return;
    ((std::memcpy(&values, left.data(), sizeof values), left.remove_prefix(sizeof values)), ...);
  }

  void take_bytes(std::size_t length, std::string_view& bytes) {
    ok = ok && length <= left.size();
    if (!ok) return;
    bytes = left.substr(0, length);
    left.remove_prefix(length);
  }

  void take_text(std::string_view& text) {
    std::uint16_t length = 0;
    take(length);
    take_bytes(length, text);
  }

  // Refuses a list of no elements, or of more than `most`.
  template <typename T>
  void take_list(std::size_t most, std::vector<T>& list) {
    std::uint16_t count = 0;
    take(count);
    ok = ok && count > 0 && count <= most;
    list.resize(ok ? count : 0);
    for (T& one : list) take(one);
  }

  bool is_done() const { return ok && left.empty(); }
};

}  // namespace score::pario
