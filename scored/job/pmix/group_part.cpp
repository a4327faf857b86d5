#include "scored/job/pmix/group_part.hpp"

#include <cstring>

namespace score::pmix {

namespace {

void put_text(std::string& to, std::string_view text) {
  const std::uint64_t bytes = text.size();
  to.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  to.append(text);
}

bool take_number(std::string_view& from, std::uint64_t& number) {
  if (from.size() < sizeof number) return false;
  std::memcpy(&number, from.data(), sizeof number);
  from.remove_prefix(sizeof number);
  return true;
}

bool take_text(std::string_view& from, std::string_view& text) {
  std::uint64_t bytes = 0;
  if (!take_number(from, bytes) || bytes > from.size()) return false;
  text = from.substr(0, bytes);
  from.remove_prefix(bytes);
  return true;
}

}  // namespace

std::string encode_part(const GroupPart& part) {
  std::string out(reinterpret_cast<const char*>(&part.context), sizeof part.context);
  put_text(out, part.name);
  put_text(out, part.data);
  return out;
}

std::optional<GroupPart> join_parts(std::string_view parts) {
  std::optional<GroupPart> whole;
  while (!parts.empty()) {
    std::uint64_t context = 0;
    std::string_view name;
    std::string_view data;
    if (!take_number(parts, context) || !take_text(parts, name) || !take_text(parts, data)) {
      return std::nullopt;
    }
    if (!whole) whole = GroupPart{context, std::string(name), ""};
    if (whole->name != name) return std::nullopt;
    whole->data += data;
  }
  return whole;
}

}  // namespace score::pmix
