#pragma once
// Reads configuration files: TOML goes into plain structs whose members hold the defaults.
//
//    auto file = ConfigFile::load(path);
//    if (!file) return file.error();
//    ConfigSection gang = file->root().section("gang");
//    gang.read("quantum", config.quantum, limits::kMinQuantum, limits::kMaxQuantum);
//    gang.read_choice("switch_mode", config.mode,
//                     {{"clock", Mode::Clock}, {"barrier", Mode::Barrier}});
//    return file->finish();
//
// A key that is absent leaves the default. Problems are collected while reading, and finish()
// returns the first one by line: a wrong type, a value out of range, a value that the caller
// refused, or a key that was not read. The context of the error is the line for users:
// "scored.toml:12: quantum: 0s is below 1ms".

#include "base/result.hpp"
#include "base/text.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace score::inline base {

namespace detail {
struct ConfigNode;
struct ConfigState;
}  // namespace detail

// A ConfigSection is a table of the file. It may be an absent table, from which every read leaves
// the default. Reading a key that the file lacks leaves its default too. A section is valid as long
// as its ConfigFile lives.
class ConfigSection {
 public:
  [[nodiscard]] bool has(std::string_view key) const;

  void read(std::string_view key, bool& out);
  // Reads true, false, "on" or "off".
  void read_switch(std::string_view key, bool& out);
  void read(std::string_view key, std::string& out);
  void read(std::string_view key, std::vector<std::string>& out);
  void read(std::string_view key, double& out, double min, double max);
  // Reads a string such as "100ms". A bare number is rejected, because its unit would be a guess.
  void read(std::string_view key, Duration& out, Duration min, Duration max);
  // Reads a string such as "512M", or an integer.
  void read(std::string_view key, Bytes& out, Bytes min = Bytes(0), Bytes max = Bytes::max());

  template <std::integral T>

  requires(!std::same_as<T, bool>) void read(std::string_view key, T& out, T min, T max) {
    // TOML's integers are signed and have 64 bits.
    constexpr auto kLargest = std::numeric_limits<std::int64_t>::max();
    std::int64_t value =
        std::in_range<std::int64_t>(out) ? static_cast<std::int64_t>(out) : kLargest;
    const auto highest =
        std::in_range<std::int64_t>(max) ? static_cast<std::int64_t>(max) : kLargest;
    if (read_integer(key, value, static_cast<std::int64_t>(min), highest)) {
      out = static_cast<T>(value);
    }
  }

  // Reads a string that must be one of the names.
  template <typename E>
  void read_choice(std::string_view key, E& out,
                   std::initializer_list<std::pair<std::string_view, E>> choices) {
    std::string text;
    std::string names;
    if (!has(key)) return;
    read(key, text);
    for (const auto& [name, value] : choices) {
      if (name == text) {
        out = value;
        return;
      }
      names += (names.empty() ? "" : ", ") + std::string(name);
    }
    refuse(key, "use one of " + names);
  }

  // Returns the table [key].
  [[nodiscard]] ConfigSection section(std::string_view key);
  // Returns the tables of the array [[key]].
  [[nodiscard]] std::vector<ConfigSection> sections(std::string_view key);
  // Returns the tables below a table, with their names, in order of name: [key.alpha], [key.beta].
  [[nodiscard]] std::vector<std::pair<std::string, ConfigSection>> named_sections(
      std::string_view key);

  // Returns the keys of the table, in order of name.
  [[nodiscard]] std::vector<std::string> keys() const;

  // Marks this key and all below it as read, because a different reader reads them. Each role of a
  // daemon reads its own section of one file.
  void ignore(std::string_view key);

  // Records that the caller's own check failed: "file:line: key: why". For a key that is absent the
  // line is that of the section.
  void refuse(std::string_view key, std::string_view why);

 private:
  friend class ConfigFile;

  ConfigSection(detail::ConfigState* state, const detail::ConfigNode* table)
      : state_(state), table_(table) {}

  // Returns false if the key is absent or its value is a problem.
  bool read_integer(std::string_view key, std::int64_t& out, std::int64_t min, std::int64_t max);
  const detail::ConfigNode* find(std::string_view key) const;

  detail::ConfigState* state_;
  const detail::ConfigNode* table_;  // nullptr: absent
};

// A ConfigFile is a parsed file. It is movable.
class ConfigFile {
 public:
  // Parses `text`; `name` is the file name in messages. Errors: Malformed with "name:line: ...",
  // TooLarge for more than limits::kMaxConfigBytes.
  static Result<ConfigFile> parse(std::string_view text, std::string name);
  // Reads and parses a file. Errors: those of parse(), and errno codes of reading.
  static Result<ConfigFile> load(const std::string& path);
  // Loads the file for a daemon. It fails with Denied if other users could change the file or
  // replace it in its directory (writable by group or others; a sticky directory is safe).
  static Result<ConfigFile> load_own(const std::string& path);

  ConfigFile(ConfigFile&&) noexcept;
  ConfigFile& operator=(ConfigFile&&) noexcept;
  ~ConfigFile();

  [[nodiscard]] ConfigSection root();

  // Returns the first problem by line, including keys that were not read. Errors: Malformed.
  [[nodiscard]] Status finish() const;

 private:
  explicit ConfigFile(std::unique_ptr<detail::ConfigState> state);

  std::unique_ptr<detail::ConfigState> state_;
};

}  // namespace score::inline base
