#include "scout/batch/script.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "scout/batch/shell_words.hpp"
#include "scout/batch/slurm_options.hpp"

#include <fmt/core.h>

#include <optional>
#include <utility>

namespace score::scout {

namespace {

constexpr std::string_view kBlanks = " \t";

Status check_text(std::string_view text) {
  if (text.size() > limits::kMaxScriptBytes) {
    return fail(Errc::TooLarge, "the script has more than {} KiB", limits::kMaxScriptBytes / 1024);
  }
  if (text.find('\0') != text.npos) {
    return fail(Errc::Malformed, "the script contains a NUL byte, so it is not text");
  }
  if (!text.starts_with("#!")) {
    return fail(
        Errc::Malformed,
        "line 1 does not name an interpreter: begin the script with a line such as #!/bin/sh");
  }
  if (text.substr(0, text.find('\n')).ends_with('\r')) {
    return fail(Errc::Malformed,
                "line 1 ends with a carriage return; convert the script to Unix line endings");
  }
  return {};
}

bool is_command(std::string_view line) {
  const auto begin = line.find_first_not_of(" \t\r");
  return begin != line.npos && line[begin] != '#';
}

// Returns the text after the prefix; nullopt if the line has no such prefix.
std::optional<std::string_view> after(std::string_view line, std::string_view prefix) {
  if (!line.starts_with(prefix)) return std::nullopt;
  line.remove_prefix(prefix.size());
  const bool is_separate = line.empty() || kBlanks.find(line[0]) != line.npos || line[0] == '-';
  return is_separate ? std::optional(line) : std::nullopt;
}

Status read_line(std::string_view line, std::size_t number, ScriptOptions& out) {
  const auto own = after(line, "#SCORE");
  const auto slurm = after(line, "#SBATCH");
  if (!own && !slurm) return {};
  auto words = shell_words(own ? *own : *slurm);
  if (!words) return words.error().with_context("line {}", number);
  if (slurm) {
    auto translated = from_slurm(*words);
    if (!translated) return translated.error().with_context("line {}", number);
    for (const auto& word : translated->ignored) {
      out.ignored.push_back(
          fmt::format("line {}: ignoring #SBATCH {}", number, escape_terminal(word, 200)));
    }
    words = std::move(translated->words);
  }
  if (!words->empty()) out.lines.push_back({number, std::move(*words), slurm.has_value()});
  return {};
}

}  // namespace

Result<ScriptOptions> read_script(std::string_view text) {
  if (auto sound = check_text(text); !sound) return sound.error();
  ScriptOptions out;
  std::size_t number = 0;
  while (!text.empty()) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    ++number;
    if (is_command(line)) break;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (auto read = read_line(line, number, out); !read) return read.error();
  }
  return out;
}

}  // namespace score::scout
