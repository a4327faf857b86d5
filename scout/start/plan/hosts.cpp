#include "scout/start/plan/hosts.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>

namespace score::scout {

namespace {

constexpr std::uint32_t kMostSlots = limits::kMaxCoresPerNode;

// Splits at commas that are not inside brackets.
std::vector<std::string_view> split_list(std::string_view list) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c != ',' || (depth > 0 && i < list.size())) continue;
    parts.push_back(trim(list.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

bool is_user_name(std::string_view text) {
  return is_host_name(text);  // the same characters, safe as an argument of ssh
}

// Appends the host, or adds the slots to an equal host in the list.
Status add(std::vector<Host>& hosts, Host host) {
  const auto same = std::ranges::find(hosts, host.node, &Host::node);
  if (same == hosts.end()) {
    if (hosts.size() == limits::kMaxNodes) {
      return fail(Errc::TooLarge, "more than {} hosts", limits::kMaxNodes);
    }
    hosts.push_back(std::move(host));
    return {};
  }
  if (same->target != host.target) {
    return fail(Errc::Malformed, "host {} is named with two users", host.node);
  }
  same->slots = std::min(same->slots + host.slots, kMostSlots);
  return {};
}

// Returns "::1" and "[::1]" in the shortest form, as ssh accepts it; empty if it is not an IPv6
// address. A zone may follow: "fe80::1%eth0".
std::string ipv6_address(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  const auto percent = text.find('%');
  const std::string digits(text.substr(0, percent));
  in6_addr address{};
  if (inet_pton(AF_INET6, digits.c_str(), &address) != 1) return {};
  std::array<char, INET6_ADDRSTRLEN> shortest{};
  std::string found = inet_ntop(AF_INET6, &address, shortest.data(), shortest.size());
  if (percent == text.npos) return found;
  const auto zone = text.substr(percent + 1);
  return is_host_name(zone) ? found + "%" + std::string(zone) : std::string();
}

// Returns the name of a node for an address. The name has no colon: "fe80--1", and "0--1" for
// "::1".
std::string node_of_address(const std::string& address) {
  std::string node = address.starts_with(':') ? "0" + address : address;
  std::ranges::replace(node, ':', '-');
  std::ranges::replace(node, '%', '-');
  return node.ends_with('-') ? node + "0" : node;
}

Status add_address(std::vector<Host>& hosts, std::string_view user, const std::string& address,
                   std::uint32_t slots) {
  const auto target = user.empty() ? address : std::string(user) + "@" + address;
  return add(hosts, {.target = target, .node = node_of_address(address), .slots = slots});
}

Status add_part(std::vector<Host>& hosts, std::string_view part, std::uint32_t slots) {
  const auto at = part.rfind('@');
  const auto user = at == part.npos ? std::string_view() : part.substr(0, at);
  const auto address = ipv6_address(at == part.npos ? part : part.substr(at + 1));
  const bool has_good_user = at == part.npos || is_user_name(user);
  if (!address.empty() && has_good_user) return add_address(hosts, user, address, slots);
  const auto names = expand_hostlist(at == part.npos ? part : part.substr(at + 1));
  if (!names) return names.error();
  if (names->empty() || (at != part.npos && !is_user_name(user))) {
    return fail(Errc::Malformed, "'{}' is not a host", escape_terminal(part, 80));
  }
  for (const auto& name : *names) {
    const auto target = at == part.npos ? name : std::string(user) + "@" + name;
    if (auto added = add(hosts, {.target = target, .node = name, .slots = slots}); !added) {
      return added;
    }
  }
  return {};
}

// Returns the words of a line without its comment.
std::vector<std::string_view> words_of_line(std::string_view line) {
  std::vector<std::string_view> words;
  line = line.substr(0, line.find('#'));
  for (std::size_t begin = 0; begin < line.size();) {
    begin = line.find_first_not_of(" \t\r", begin);
    if (begin == line.npos) break;
    const auto end = std::min(line.size(), line.find_first_of(" \t\r", begin));
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

Status add_line(std::vector<Host>& hosts, std::string_view line) {
  const auto words = words_of_line(line);
  if (words.empty()) return {};
  auto name = words[0];
  std::uint32_t slots = 1;
  const auto read_slots = [&](std::string_view text) {
    const auto number = parse_number<std::uint32_t>(text);
    if (number && *number >= 1 && *number <= kMostSlots) slots = *number;
    return number && slots == *number;
  };
  const bool is_address = !ipv6_address(name.substr(name.rfind('@') + 1)).empty();
  if (const auto colon = name.rfind(':'); colon != name.npos && !is_address) {
    if (!read_slots(name.substr(colon + 1)))
      return fail(Errc::Malformed, "invalid number of slots");
    name = name.substr(0, colon);
  }
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].starts_with("slots=") && !read_slots(words[i].substr(6))) {
      return fail(Errc::Malformed, "invalid number of slots");
    }
  }
  return add_part(hosts, name, slots);
}

}  // namespace

Result<std::vector<Host>> parse_hosts(std::string_view list) {
  std::vector<Host> hosts;
  for (const auto part : split_list(list)) {
    if (auto added = add_part(hosts, part, 0); !added) return added.error();
  }
  return hosts;
}

// If a file gives every host one slot, it contains no information about cores.
Result<std::vector<Host>> parse_hostfile(std::string_view text) {
  std::vector<Host> hosts;
  std::size_t number = 0;
  for (const auto line : split(text, '\n')) {
    ++number;
    if (auto added = add_line(hosts, line); !added) {
      return added.error().with_context("line {}", number);
    }
  }
  if (hosts.empty()) return fail(Errc::Malformed, "the file names no host");
  if (std::ranges::all_of(hosts, [](const Host& host) { return host.slots == 1; })) {
    for (auto& host : hosts) host.slots = 0;
  }
  return hosts;
}

}  // namespace score::scout
