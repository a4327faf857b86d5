// A line is "verb key=value key="quoted value"" (base/os/log.hpp): verbs are ours and hold no '=',
// values of others are quoted where they hold a blank or '='. So a line is taken apart without
// doubt, and nobody's name can add a field. libsystemd is not linked: one datagram is all it sends.
#include "scored/journal/journal.hpp"

#include "base/limits.hpp"
#include "base/os/fd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace score {
namespace {

// A kind of line: its verb and, unless the key is empty, one of its values. The first that fits
// counts. The ids are random, and never change: people search for them.
struct Kind {
  std::string_view id;
  std::string_view verb;
  std::string_view key;
  std::string_view value;
};

constexpr std::array<Kind, 14> kKinds = {{
    {"4cadf51f3d2f4587bd10414e633ee8b1", "audit", "action", "set quantum"},
    {"d136862c717640af93530aad39b42132", "audit", "", ""},
    {"77f40fdfe0b944f19a94f8c73c6ede67", "refuse", "", ""},
    {"c20e73204a49401998e4c36ef5992d5a", "start job", "", ""},
    {"07b20d861a7d43c2b2a0f99c80ab8f12", "end job", "", ""},
    {"acd52845365c41fc8c41d2b3b9597fb9", "change node", "state", "up"},
    {"6eb31b18a0da4116afc8c878962017ae", "change node", "state", "down"},
    {"e629c7df69754d83b18619d7d8dd48d3", "start head", "", ""},
    {"db58da3a52e34b28b1a72c6015f2103e", "stop head", "", ""},
    {"739ff1a49c99449fbb8e5ca003655401", "late switch", "", ""},
    {"23750421dfbd4c2b89e3d2163632ae9b", "start node", "", ""},
    {"eeab6b992450455382590453dc49d683", "stop node", "", ""},
    {"a665ad3c55184d4ca8c596e1458cd49a", "join", "", ""},
    {"7759ad162f2141cea76a843e93876bf1", "lose head", "", ""},
}};

// Key of a line -> field of an entry.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kFields = {{
    {"job", "JOB_ID"},
    {"node", "NODE"},
    {"slot", "SLOT"},
    {"rank", "RANK"},
    {"user", "USER_NAME"},
    {"action", "ACTION"},
    {"value", "VALUE"},
    {"via", "VIA"},
    {"state", "STATE"},
    {"reason", "REASON"},
    {"late_us", "LATE_US"},
    {"held_back", "HELD_BACK"},
}};

using Values = std::vector<std::pair<std::string_view, std::string>>;

// Where the verb ends: at the blank before the first key.
std::size_t verb_length(std::string_view line) {
  const auto equals = line.find('=');
  if (equals == line.npos) return line.size();
  const auto blank = line.rfind(' ', equals);
  return blank == line.npos ? 0 : blank;
}

// Takes a value off the front of `text`. What base made of control characters, "\n", stays.
std::string take_value(std::string_view& text) {
  std::string value;
  if (!text.starts_with('"')) {
    value = text.substr(0, text.find(' '));
    text.remove_prefix(value.size());
    return value;
  }
  std::size_t i = 1;
  for (; i < text.size() && text[i] != '"'; ++i) {
    const bool is_escape = text[i] == '\\' && i + 1 < text.size();
    if (is_escape && (text[i + 1] == '"' || text[i + 1] == '\\')) ++i;
    value += text[i];
  }
  text.remove_prefix(std::min(i + 1, text.size()));
  return value;
}

// Of what follows the verb: " key=value key=value".
Values values_of(std::string_view text) {
  Values values;
  while (text.starts_with(' ')) {
    const auto equals = text.find('=');
    if (equals == text.npos) break;
    const std::string_view key = text.substr(1, equals - 1);
    text.remove_prefix(equals + 1);
    values.emplace_back(key, take_value(text));
  }
  return values;
}

const std::string* find(const Values& values, std::string_view key) {
  const auto found = std::ranges::find(values, key, &Values::value_type::first);
  return found == values.end() ? nullptr : &found->second;
}

// A value with a line end has its length before it, 64 bits, little-endian.
void append_field(std::string& entry, std::string_view name, std::string_view value) {
  entry += name;
  if (value.find('\n') == value.npos) {
    entry += '=';
  } else {
    entry += '\n';
    for (unsigned shift = 0; shift < 64; shift += 8) {
      entry += static_cast<char>((std::uint64_t{value.size()} >> shift) & 0xFFU);
    }
  }
  (entry += value) += '\n';
}

std::optional<sockaddr_un> address_of(std::string_view path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  std::ranges::copy(path, address.sun_path);
  return address;
}

class Journal {
 public:
  explicit Journal(std::string_view socket_path)
      : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)),
        address_(address_of(socket_path)) {}

  void log(LogLevel level, std::string_view line) const {
    if (const auto entry = journal_entry(level, line); !entry.empty() && send(entry)) return;
    // As base writes it where stderr is the journal. Nobody to tell if it fails.
    const auto text = fmt::format("<{}>{}\n", static_cast<int>(level),
                                  line.substr(0, limits::kMaxLogLineBytes - 4));
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
  }

 private:
  [[nodiscard]] bool send(std::string_view entry) const {
    if (!socket_ || !address_) return false;
    const auto sent = sendto(socket_.get(), entry.data(), entry.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&*address_), sizeof *address_);
    return sent == static_cast<ssize_t>(entry.size());
  }

  UniqueFd socket_;
  std::optional<sockaddr_un> address_;  // none: the path is too long
};

}  // namespace

std::string journal_entry(LogLevel level, std::string_view line) {
  const std::size_t length = verb_length(line);
  const auto verb = line.substr(0, length);
  const auto has_verb = [verb](const Kind& kind) { return kind.verb == verb; };
  if (std::ranges::none_of(kKinds, has_verb)) return {};
  const Values values = values_of(line.substr(length));
  const auto kind = std::ranges::find_if(kKinds, [&](const Kind& one) {
    if (!has_verb(one)) return false;
    if (one.key.empty()) return true;
    const std::string* value = find(values, one.key);
    return value != nullptr && *value == one.value;
  });
  if (kind == kKinds.end()) return {};
  std::string entry;
  append_field(entry, "MESSAGE", line);
  append_field(entry, "PRIORITY", std::to_string(static_cast<int>(level)));
  append_field(entry, "SYSLOG_IDENTIFIER", "scored");
  append_field(entry, "MESSAGE_ID", kind->id);
  for (const auto& [key, field] : kFields) {
    const std::string* value = find(values, key);
    if (value != nullptr && !value->empty()) append_field(entry, field, *value);
  }
  return entry;
}

bool is_journal(int fd, const char* journal_stream) {
  struct stat found {};

  if (journal_stream == nullptr || ::fstat(fd, &found) != 0) return false;
  return journal_stream == fmt::format("{}:{}", found.st_dev, found.st_ino);
}

void log_to_journal(std::string_view socket_path) {
  const auto journal = std::make_shared<const Journal>(socket_path);
  set_log_sink([journal](LogLevel level, std::string_view line) { journal->log(level, line); });
}

void log_to_journal_if_started_by_it() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  if (is_journal(STDERR_FILENO, std::getenv("JOURNAL_STREAM"))) log_to_journal();
}

}  // namespace score
