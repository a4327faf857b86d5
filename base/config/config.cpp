#include "base/config/config.hpp"

#include "base/config/config_tree.hpp"
#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "base/text/plain.hpp"

#include <algorithm>
#include <optional>
#include <sys/stat.h>

namespace score::inline base {

namespace detail {

struct ConfigFault {
  unsigned line = 0;
  std::string text;
};

struct ConfigState {
  std::string name;
  ConfigNode root;
  std::vector<ConfigFault> problems;
};

}  // namespace detail

namespace {

using detail::ConfigArray;
using detail::ConfigNode;
using detail::ConfigTable;

// Marks the node and all of its descendants as read.
void mark_read(const ConfigNode& node) {
  node.was_read = true;
  if (const auto* array = std::get_if<ConfigArray>(&node.value)) {
    for (const auto& item : *array) mark_read(item);
  }
  const auto* table = std::get_if<ConfigTable>(&node.value);
  if (table == nullptr) return;
  for (const auto& [key, member] : *table) mark_read(member);
}

// Stores the first member that was not read in `first`, if it comes before `first` in the file.
void find_unread(const ConfigNode& node, const std::string& path,
                 std::optional<detail::ConfigFault>& first) {
  if (const auto* array = std::get_if<ConfigArray>(&node.value)) {
    for (const auto& item : *array) find_unread(item, path, first);
  }
  const auto* table = std::get_if<ConfigTable>(&node.value);
  if (table == nullptr) return;
  for (const auto& [key, member] : *table) {
    const auto member_path = path.empty() ? key : path + "." + key;
    if (member.was_read) {
      find_unread(member, member_path, first);
    } else if (!first || member.line < first->line) {
      first = detail::ConfigFault{
          .line = member.line,
          .text = fmt::format("unknown key '{}'", escape_terminal(member_path))};
    }
  }
}

}  // namespace

const ConfigNode* ConfigSection::find(std::string_view key) const {
  if (table_ == nullptr) return nullptr;
  const auto& table = std::get<ConfigTable>(table_->value);
  const auto member = table.find(key);
  if (member == table.end()) return nullptr;
  member->second.was_read = true;
  return &member->second;
}

bool ConfigSection::has(std::string_view key) const {
  return table_ != nullptr && std::get<ConfigTable>(table_->value).contains(key);
}

void ConfigSection::refuse(std::string_view key, std::string_view why) {
  const ConfigNode* node = find(key);
  const unsigned line = node != nullptr ? node->line : table_ != nullptr ? table_->line : 1;
  state_->problems.push_back({.line = line, .text = fmt::format("{}: {}", key, why)});
}

void ConfigSection::read(std::string_view key, bool& out) {
  const ConfigNode* node = find(key);
  if (node == nullptr) return;
  const auto* value = std::get_if<bool>(&node->value);
  if (value == nullptr) return refuse(key, "must be true or false");
  out = *value;
}

void ConfigSection::read_switch(std::string_view key, bool& out) {
  const ConfigNode* node = find(key);
  if (node == nullptr) return;
  if (const auto* value = std::get_if<bool>(&node->value)) {
    out = *value;
    return;
  }
  const auto* word = std::get_if<std::string>(&node->value);
  if (word == nullptr || (*word != "on" && *word != "off")) {
    return refuse(key, "must be true, false, \"on\" or \"off\"");
  }
  out = *word == "on";
}

void ConfigSection::read(std::string_view key, std::string& out) {
  const ConfigNode* node = find(key);
  if (node == nullptr) return;
  const auto* value = std::get_if<std::string>(&node->value);
  if (value == nullptr) return refuse(key, "must be a string in quotes");
  if (value->find('\0') != value->npos) return refuse(key, "must not hold a NUL");
  out = *value;
}

void ConfigSection::read(std::string_view key, std::vector<std::string>& out) {
  const ConfigNode* node = find(key);
  if (node == nullptr) return;
  const auto* array = std::get_if<ConfigArray>(&node->value);
  if (array == nullptr) return refuse(key, "must be a list of strings");
  std::vector<std::string> texts;
  for (const auto& item : *array) {
    const auto* text = std::get_if<std::string>(&item.value);
    if (text == nullptr) return refuse(key, "must be a list of strings");
    texts.push_back(*text);
  }
  out = std::move(texts);
}

bool ConfigSection::read_integer(std::string_view key, std::int64_t& out, std::int64_t min,
                                 std::int64_t max) {
  const ConfigNode* node = find(key);
  if (node == nullptr) return false;
  const auto* value = std::get_if<std::int64_t>(&node->value);
  if (value == nullptr) {
    refuse(key, "must be an integer");
  } else if (*value < min || *value > max) {
    refuse(key, fmt::format("{} is not between {} and {}", *value, min, max));
  } else {
    out = *value;
    return true;
  }
  return false;
}

void ConfigSection::read(std::string_view key, double& out, double min, double max) {
  const ConfigNode* node = find(key);
  if (node == nullptr) return;
  double value = 0;
  if (const auto* number = std::get_if<double>(&node->value)) {
    value = *number;
  } else if (const auto* integer = std::get_if<std::int64_t>(&node->value)) {
    value = static_cast<double>(*integer);
  } else {
    return refuse(key, "must be a number");
  }
  // The condition is negated so that a NaN is rejected.
  if (!(value >= min && value <= max)) {
    return refuse(key, fmt::format("{} is not between {} and {}", value, min, max));
  }
  out = value;
}

void ConfigSection::read(std::string_view key, Duration& out, Duration min, Duration max) {
  const ConfigNode* node = find(key);
  if (node == nullptr) return;
  const auto* text = std::get_if<std::string>(&node->value);
  if (text == nullptr) return refuse(key, "must be a duration in quotes, such as \"100ms\"");
  const auto value = parse_duration(*text);
  if (!value) return refuse(key, plain_text(value.error()));
  if (*value < min) {
    return refuse(key,
                  fmt::format("{} is below {}", format_duration(*value), format_duration(min)));
  }
  if (*value > max) {
    return refuse(key,
                  fmt::format("{} is above {}", format_duration(*value), format_duration(max)));
  }
  out = *value;
}

void ConfigSection::read(std::string_view key, Bytes& out, Bytes min, Bytes max) {
  const ConfigNode* node = find(key);
  if (node == nullptr) return;
  Result<Bytes> value = fail(Errc::Malformed, "must be a size, such as \"512M\"");
  if (const auto* text = std::get_if<std::string>(&node->value)) {
    value = parse_bytes(*text);
  } else if (const auto* integer = std::get_if<std::int64_t>(&node->value);
             integer && *integer >= 0) {
    value = Bytes(static_cast<std::uint64_t>(*integer));
  }
  if (!value) return refuse(key, plain_text(value.error()));
  if (*value < min) return refuse(key, fmt::format("{} is below {}", *value, min));
  if (*value > max) return refuse(key, fmt::format("{} is above {}", *value, max));
  out = *value;
}

void ConfigSection::ignore(std::string_view key) {
  if (const ConfigNode* node = find(key)) mark_read(*node);
}

ConfigSection ConfigSection::section(std::string_view key) {
  const ConfigNode* node = find(key);
  if (node != nullptr && !std::holds_alternative<ConfigTable>(node->value)) {
    refuse(key, "must be a table");
    node = nullptr;
  }
  return {state_, node};
}

std::vector<ConfigSection> ConfigSection::sections(std::string_view key) {
  std::vector<ConfigSection> found;
  const ConfigNode* node = find(key);
  if (node == nullptr) return found;
  const auto* array = std::get_if<ConfigArray>(&node->value);
  const auto is_table = [](const ConfigNode& item) {
    return std::holds_alternative<ConfigTable>(item.value);
  };
  if (array == nullptr || !std::ranges::all_of(*array, is_table)) {
    refuse(key, fmt::format("must be tables: [[{}]]", key));
    return found;
  }
  for (const auto& item : *array) found.push_back(ConfigSection(state_, &item));
  return found;
}

std::vector<std::pair<std::string, ConfigSection>> ConfigSection::named_sections(
    std::string_view key) {
  std::vector<std::pair<std::string, ConfigSection>> found;
  ConfigSection parent = section(key);
  if (parent.table_ == nullptr) return found;
  for (const auto& [name, member] : std::get<ConfigTable>(parent.table_->value)) {
    found.emplace_back(name, parent.section(name));
  }
  return found;
}

std::vector<std::string> ConfigSection::keys() const {
  std::vector<std::string> found;
  if (table_ == nullptr) return found;
  for (const auto& [key, member] : std::get<ConfigTable>(table_->value)) found.push_back(key);
  return found;
}

ConfigFile::ConfigFile(std::unique_ptr<detail::ConfigState> state) : state_(std::move(state)) {}

namespace {

Status check_own(const std::string& path) {
  struct stat info {};

  if (::stat(path.c_str(), &info) != 0) return fail(errno_code(errno), "{}", path);
  const bool is_safe = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0;
  if (is_safe || (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return fail(Errc::Denied,
              "{} has mode {:04o}: other users can change the configuration; chmod go-w {}", path,
              info.st_mode & 07777U, path);
}

}  // namespace

ConfigFile::ConfigFile(ConfigFile&&) noexcept = default;
ConfigFile& ConfigFile::operator=(ConfigFile&&) noexcept = default;
ConfigFile::~ConfigFile() = default;

Result<ConfigFile> ConfigFile::parse(std::string_view text, std::string name) {
  if (text.size() > limits::kMaxConfigBytes) return fail(Errc::TooLarge, "{}", name);
  auto root = detail::parse_toml(text, name);
  if (!root) return root.error();
  auto state = std::make_unique<detail::ConfigState>();
  state->name = std::move(name);
  state->root = *std::move(root);
  return ConfigFile(std::move(state));
}

Result<ConfigFile> ConfigFile::load(const std::string& path) {
  const auto text = read_file(path, limits::kMaxConfigBytes);
  if (!text) return text.error();
  return parse(*text, path);
}

Result<ConfigFile> ConfigFile::load_own(const std::string& path) {
  const auto end = path.find_last_of('/');
  const std::string directory =
      end == path.npos ? "." : path.substr(0, std::max<std::size_t>(end, 1));
  for (const std::string& part : {path, directory}) {
    if (auto own = check_own(part); !own) return own.error();
  }
  return load(path);
}

ConfigSection ConfigFile::root() {
  return {state_.get(), &state_->root};
}

Status ConfigFile::finish() const {
  std::optional<detail::ConfigFault> first;
  for (const auto& problem : state_->problems) {
    if (!first || problem.line < first->line) first = problem;
  }
  // A reader that rejects a value may stop there; the remaining keys are then unread, not unknown.
  if (!first) find_unread(state_->root, "", first);
  if (!first) return {};
  return fail(Errc::Malformed, "{}:{}: {}", state_->name, first->line, first->text);
}

}  // namespace score::inline base
