// For tests: the journal's side of its protocol, as systemd.io/JOURNAL_NATIVE_PROTOCOL says.
#pragma once

#include "base/os/fd.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <vector>

namespace score {

using JournalEntry = std::map<std::string, std::string>;

// The fields of a datagram; "?" holds what is left of one that is cut off, or names a field twice.
inline JournalEntry decode_entry(std::string_view bytes) {
  JournalEntry entry;
  while (!bytes.empty()) {
    const auto end = bytes.find_first_of("=\n");
    if (end == bytes.npos) break;
    const std::string name(bytes.substr(0, end));
    const bool is_binary = bytes[end] == '\n';
    bytes.remove_prefix(end + 1);
    std::uint64_t size = bytes.find('\n');
    if (is_binary) {
      if (bytes.size() < sizeof size) break;
      std::memcpy(&size, bytes.data(), sizeof size);
      bytes.remove_prefix(sizeof size);
    }
    if (size >= bytes.size() || bytes[size] != '\n') break;
    if (!entry.emplace(name, bytes.substr(0, size)).second) break;
    bytes.remove_prefix(size + 1);
  }
  if (!bytes.empty()) entry["?"] = bytes;
  return entry;
}

// A journal that only listens.
class JournalReader {
 public:
  // is_open() tells whether that worked.
  explicit JournalReader(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::ranges::copy(path, address.sun_path);
    is_open_ =
        ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }

  [[nodiscard]] bool is_open() const { return is_open_; }

  // All that came.
  std::vector<JournalEntry>& entries() {
    std::array<char, 16'384> bytes{};
    for (;;) {
      const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (got < 0) return entries_;
      entries_.push_back(decode_entry({bytes.data(), static_cast<std::size_t>(got)}));
    }
  }

  // How many entries have this value.
  long count(const std::string& field, const std::string& value) {
    return std::ranges::count_if(entries(),
                                 [&](JournalEntry& entry) { return entry[field] == value; });
  }

 private:
  UniqueFd socket_;
  bool is_open_ = false;
  std::vector<JournalEntry> entries_;
};

}  // namespace score
