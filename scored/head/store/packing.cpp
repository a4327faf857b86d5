#include "scored/head/store/packing.hpp"

#include "base/limits.hpp"
#include "base/model/resources.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace score::head {

// The numbers are little-endian with 32 bits, because this program only runs on such machines.
std::string pack(std::span<const std::uint32_t> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}

std::vector<std::uint32_t> unpack(std::string_view bytes) {
  std::vector<std::uint32_t> numbers(bytes.size() / sizeof(std::uint32_t));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * 4);
  return numbers;
}

// Packs [count, core, core, ...] per node.
std::string pack_cores(const std::vector<std::vector<std::uint32_t>>& cores) {
  std::vector<std::uint32_t> flat;
  for (const auto& of_node : cores) {
    flat.push_back(static_cast<std::uint32_t>(of_node.size()));
    std::ranges::copy(of_node, std::back_inserter(flat));
  }
  return pack(flat);
}

std::vector<std::vector<std::uint32_t>> unpack_cores(std::string_view bytes) {
  const std::vector<std::uint32_t> flat = unpack(bytes);
  std::vector<std::vector<std::uint32_t>> cores;
  for (std::size_t at = 0; at < flat.size();) {
    const std::size_t length = std::min<std::size_t>(flat[at], flat.size() - at - 1);
    const auto first = flat.begin() + static_cast<std::ptrdiff_t>(at) + 1;
    cores.emplace_back(first, first + static_cast<std::ptrdiff_t>(length));
    at += 1 + length;
  }
  return cores;
}

std::string pack_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) (text += name) += '\n';
  return text;
}

std::vector<std::string> unpack_names(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    names.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

std::string pack_units(const std::vector<std::vector<base::GenericShare>>& units) {
  std::vector<std::string> lines;
  for (const auto& of_node : units) lines.push_back(base::format_shares(of_node));
  return pack_names(lines);
}

std::vector<std::vector<base::GenericShare>> unpack_units(std::string_view text) {
  std::vector<std::vector<base::GenericShare>> units;
  for (const std::string& line : unpack_names(text)) {
    auto& of_node = units.emplace_back();
    for (const std::string_view entry : split(line, ';')) {
      const auto colon = entry.find(':');
      if (colon == entry.npos) continue;
      auto& share =
          of_node.emplace_back(base::GenericShare{std::string(entry.substr(0, colon)), {}});
      for (const std::string_view word : split(entry.substr(colon + 1), ',')) {
        const auto index = parse_number<std::uint32_t>(word);
        if (index && *index < limits::kMaxGenericCount) share.indices.push_back(*index);
      }
    }
  }
  return units;
}

std::string pack_request(const RequestId& request) {
  std::string bytes(16, '\0');
  std::memcpy(bytes.data(), &request.high, 8);
  std::memcpy(bytes.data() + 8, &request.low, 8);
  return bytes;
}

RequestId unpack_request(std::string_view bytes) {
  RequestId request;
  if (bytes.size() != 16) return request;
  std::memcpy(&request.high, bytes.data(), 8);
  std::memcpy(&request.low, bytes.data() + 8, 8);
  return request;
}

}  // namespace score::head
