#include "scout/start/plan/messages.hpp"

#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "base/units.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <string>

namespace score::scout {

namespace {

struct Word {
  Report::Kind kind;
  std::string_view text;
};

constexpr std::array kWords = {
    Word{Report::Kind::Push, "push"},   Word{Report::Kind::Absent, "absent"},
    Word{Report::Kind::Hello, "hello"}, Word{Report::Kind::Ready, "ready"},
    Word{Report::Kind::Note, "note"},   Word{Report::Kind::Error, "error"},
    Word{Report::Kind::Gone, "gone"}};

constexpr std::size_t kMaxHooksBytes = 65'536;

bool is_key(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto read = parse_number<Number>(text);
  if (read) number = *read;
  return read.has_value();
}

bool read_memory(std::string_view text, std::string& memory) {
  if (!parse_bytes(text)) return false;
  memory = text;
  return true;
}

bool read_text(std::string_view text, std::string& into, bool (*is_good)(std::string_view)) {
  if (!is_good(text)) return false;
  into = text;
  return true;
}

// The lines come one by one, and are checked with the configuration that they become part of.
bool read_hook(std::string_view line, std::string& hooks) {
  if (hooks.size() + line.size() > kMaxHooksBytes) return false;
  hooks.append(line) += '\n';
  return true;
}

bool read_order(std::string_view key, std::string_view value, Orders& orders) {
  if (key == "node") return read_text(value, orders.node, is_host_name);
  if (key == "uid") return read_number(value, orders.uid);
  if (key == "head") return read_text(value, orders.head_host, is_head_host);
  if (key == "own") return read_text(value, orders.own_host, is_head_host);
  if (key == "port") return read_number(value, orders.head_port);
  if (key == "key") return read_text(value, orders.key, is_key);
  if (key == "cores") return read_number(value, orders.cores);
  if (key == "memory") return read_memory(value, orders.memory);
  if (key == "hook") return read_hook(value, orders.hooks);
  if (key == "cgroups") {
    orders.use_cgroups = value == "yes";
    return value == "yes" || value == "no";
  }
  return false;
}

}  // namespace

bool is_head_host(std::string_view text) {
  if (text.find(':') == text.npos) return is_host_name(text);
  const auto percent = text.find('%');  // precedes the interface of a link-local address
  if (percent != text.npos && !is_host_name(text.substr(percent + 1))) return false;
  in6_addr address{};
  return inet_pton(AF_INET6, std::string(text.substr(0, percent)).c_str(), &address) == 1;
}

std::string encode(const Orders& orders) {
  auto text = fmt::format("node {}\nuid {}\nport {}\nkey {}\ncgroups {}\n", orders.node, orders.uid,
                          orders.head_port, orders.key, orders.use_cgroups ? "yes" : "no");
  if (!orders.head_host.empty()) text += fmt::format("head {}\n", orders.head_host);
  if (!orders.own_host.empty()) text += fmt::format("own {}\n", orders.own_host);
  if (orders.cores != 0) text += fmt::format("cores {}\n", orders.cores);
  if (!orders.memory.empty()) text += fmt::format("memory {}\n", orders.memory);
  for (const std::string_view line : split(orders.hooks, '\n')) {
    if (!line.empty()) text += fmt::format("hook {}\n", line);
  }
  return text + "go\n";
}

Result<bool> OrdersReader::take_line(std::string_view line) {
  if (line == "go") {
    if (orders_.node.empty() || orders_.key.empty() || orders_.head_port == 0) {
      return fail(Errc::Malformed, "the orders are incomplete");
    }
    return true;
  }
  if (line == "beat") return false;
  const auto blank = std::min(line.size(), line.find(' '));
  const auto value = line.substr(std::min(line.size(), blank + 1));
  if (!read_order(line.substr(0, blank), value, orders_)) {
    return fail(Errc::Malformed, "unknown order '{}'", escape_terminal(line.substr(0, blank), 40));
  }
  return false;
}

std::string encode(const Report& report) {
  const auto word = std::ranges::find(kWords, report.kind, &Word::kind);
  auto text = report.text.substr(0, kMaxLineBytes / 2);
  std::ranges::replace(text, '\n', ' ');
  return fmt::format("{}{} {}\n", kMark, word->text, text);
}

std::optional<Report> parse_report(std::string_view line) {
  if (!line.starts_with(kMark)) return std::nullopt;
  line.remove_prefix(kMark.size());
  const auto blank = std::min(line.size(), line.find(' '));
  const auto word = std::ranges::find(kWords, line.substr(0, blank), &Word::text);
  if (word == kWords.end()) return std::nullopt;
  const auto text = line.substr(std::min(line.size(), blank + 1));
  return Report{word->kind, escape_terminal(trim(text), 1000)};
}

}  // namespace score::scout
