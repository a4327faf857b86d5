#include "scored/job/pmi/pmi_line.hpp"

#include "base/errc.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace score::shepherd {

namespace {

constexpr std::string_view kAbortMessage = "message=";
constexpr std::string_view kService = "service=";
constexpr std::string_view kPort = " port=";

// Returns the first word of the rest of a line. A service's name may contain blanks, and it is
// followed by its port alone.
std::string_view word_of(std::string_view line, std::string_view command) {
  const bool is_abort = command == "abort" && line.starts_with(kAbortMessage);
  const bool is_name = command.ends_with("_name") && line.starts_with(kService);
  if (is_abort || (is_name && command != "publish_name")) return line;
  return line.substr(0, is_name ? line.rfind(kPort) : line.find(' '));
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

}  // namespace

base::Result<std::optional<std::string_view>> PmiLineReader::next() {
  const std::size_t end = pending_.find('\n', taken_);
  const std::size_t length = (end == std::string::npos ? pending_.size() : end) - taken_;
  if (length > base::limits::kMaxPmiLineBytes) {
    return base::fail(base::Errc::TooLarge, "line of more than {} bytes",
                      base::limits::kMaxPmiLineBytes);
  }
  if (end == std::string::npos) {
    pending_.erase(0, taken_);
    taken_ = 0;
    return std::optional<std::string_view>();
  }
  const std::string_view line(pending_.data() + taken_, length);
  taken_ = end + 1;
  return std::optional(line);
}

std::optional<std::string_view> PmiCommand::find(std::string_view key) const {
  const auto at = std::ranges::find(arguments, key, [](const auto& pair) { return pair.first; });
  if (at == arguments.end()) return std::nullopt;
  return at->second;
}

base::Result<PmiCommand> parse_pmi_line(std::string_view line) {
  PmiCommand command;
  while (!line.empty()) {
    if (line.front() == ' ') {
      line.remove_prefix(1);
      continue;
    }
    const bool is_message = command.name == "abort" && line.starts_with(kAbortMessage);
    const std::string_view word = word_of(line, command.name);
    line.remove_prefix(word.size());
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos || equals == 0 ||
        (!is_message && std::ranges::any_of(word, is_control))) {
      return base::fail(base::Errc::Malformed, "word {}", base::quote_value(word, 64));
    }
    const auto key = word.substr(0, equals);
    const auto value = word.substr(equals + 1);
    if (command.name.empty()) {
      if (key != "cmd" || value.empty()) {
        return base::fail(base::Errc::Malformed, "line begins with {}",
                          base::quote_value(word, 64));
      }
      command.name = value;
    } else {
      command.arguments.emplace_back(key, value);
    }
  }
  if (command.name.empty()) return base::fail(base::Errc::Malformed, "empty line");
  return command;
}

}  // namespace score::shepherd
