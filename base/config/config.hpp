#pragma once
// Configuration files: TOML read into plain structs whose members hold the defaults.
//
//   auto file = ConfigFile::load(path);
//   if (!file) return file.error();
//   ConfigSection gang = file->root().section("gang");
//   gang.read("quantum", config.quantum, limits::kMinQuantum, limits::kMaxQuantum);
//   gang.read_choice("switch_mode", config.mode, {{"clock", Mode::Clock}, {"barrier",
//   Mode::Barrier}}); return file->finish();
//
// A key that is absent leaves the default. Problems are gathered while reading; finish() gives the
// first by line: wrong type, out of range, refused by the caller, or a key that was not read. Its
// context is the line for people: "scored.toml:12: quantum: 0s is below 1ms".

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

// A table of the file, or an absent one, from which every read leaves the default. Reading a key
// that the file lacks leaves its default. Valid while its ConfigFile lives.
class ConfigSection {
 public:
  [[nodiscard]] bool has(std::string_view key) const;

  void read(std::string_view key, bool& out);
  void read(std::string_view key, std::string& out);
  void read(std::string_view key, std::vector<std::string>& out);
  void read(std::string_view key, double& out, double min, double max);
  // A string such as "100ms"; a bare number is refused, as its unit would be a guess.
  void read(std::string_view key, Duration& out, Duration min, Duration max);
  // A string such as "512M", or an integer.
  void read(std::string_view key, Bytes& out, Bytes min = Bytes(0), Bytes max = Bytes::max());

  template <std::integral T>

  requires(!std::same_as<T, bool>) void read(std::string_view key, T& out, T min, T max) {
    // TOML's integers are 64 bits with a sign.
    constexpr auto kLargest = std::numeric_limits<std::int64_t>::max();
    std::int64_t value =
        std::in_range<std::int64_t>(out) ? static_cast<std::int64_t>(out) : kLargest;
    const auto highest =
        std::in_range<std::int64_t>(max) ? static_cast<std::int64_t>(max) : kLargest;
    if (read_integer(key, value, static_cast<std::int64_t>(min), highest)) {
      out = static_cast<T>(value);
    }
  }

  // A string that is one of the names.
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

  // The table under the key: [key].
  [[nodiscard]] ConfigSection section(std::string_view key);
  // The tables of an array: [[key]].
  [[nodiscard]] std::vector<ConfigSection> sections(std::string_view key);
  // The tables under a table, with their names: [key.alpha], [key.beta]. In order of name.
  [[nodiscard]] std::vector<std::pair<std::string, ConfigSection>> named_sections(
      std::string_view key);

  // Another reader reads this key and all below it: each role of a daemon reads its own section of
  // one file.
  void ignore(std::string_view key);

  // The caller's own check failed: "file:line: key: why". A key that is absent gets the line of the
  // section.
  void refuse(std::string_view key, std::string_view why);

 private:
  friend class ConfigFile;

  ConfigSection(detail::ConfigState* state, const detail::ConfigNode* table)
      : state_(state), table_(table) {}

  // False if it is absent or a problem.
  bool read_integer(std::string_view key, std::int64_t& out, std::int64_t min, std::int64_t max);
  const detail::ConfigNode* find(std::string_view key) const;

  detail::ConfigState* state_;
  const detail::ConfigNode* table_;  // nullptr: absent
};

// A parsed file. Movable.
class ConfigFile {
 public:
  // `name` stands in messages. Errors: Malformed with "name:line: ...", TooLarge over
  // limits::kMaxConfigBytes.
  static Result<ConfigFile> parse(std::string_view text, std::string name);
  // Errors also: errno codes of reading.
  static Result<ConfigFile> load(const std::string& path);
  // As a daemon reads it: Denied if other users could change the file or replace it in its
  // directory (writable by group or others; a sticky directory is safe).
  static Result<ConfigFile> load_own(const std::string& path);

  ConfigFile(ConfigFile&&) noexcept;
  ConfigFile& operator=(ConfigFile&&) noexcept;
  ~ConfigFile();

  [[nodiscard]] ConfigSection root();

  // The first problem by line, keys that were not read included. Errors: Malformed.
  [[nodiscard]] Status finish() const;

 private:
  explicit ConfigFile(std::unique_ptr<detail::ConfigState> state);

  std::unique_ptr<detail::ConfigState> state_;
};

}  // namespace score::inline base
