#include "scored/head/store/packing.hpp"

#include "base/limits.hpp"
#include "base/model/resources.hpp"
#include "base/text.hpp"
#include "base/text/json_writer.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
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

std::string pack_usage(const base::Usage& usage) {
  JsonWriter json(JsonWriter::Layout::Line);
  json.begin_object();
  base::write_usage(json, usage);
  return json.end_object().text();
}

namespace {

void read_value(std::string_view text, Duration& value) {
  double seconds = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), seconds).ec != std::errc()) return;
  const double most = static_cast<double>(base::Usage::kMost);
  value = Duration(std::llround(std::clamp(seconds * 1e9, 0.0, most)));
}

void read_value(std::string_view text, Bytes& value) {
  if (const auto number = parse_number<std::uint64_t>(text)) value = Bytes(*number);
}

template <class Number>
void read_value(std::string_view text, Number& value) {
  if (const auto number = parse_number<Number>(text)) value = *number;
}

// Returns the text of the member in a flat object that pack_usage() has written; "" if it is
// missing.
std::string_view member_of(std::string_view object, std::string_view key) {
  const auto at = object.find(fmt::format("\"{}\":", key));
  if (at == object.npos) return {};
  object.remove_prefix(at + key.size() + 3);
  return object.substr(0, object.find_first_of(",}"));
}

}  // namespace

std::optional<base::Usage> unpack_usage(std::string_view text) {
  if (text.empty()) return std::nullopt;
  base::Usage usage;
  each_value(usage, [text](std::string_view key, auto& value) {
    read_value(member_of(text, key), value);
  });
  return usage;
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
