// Reads the command line of one of Slurm's commands: long options, which may be shortened, and
// letters, which may be joined ("-hr", "-n8"). Pure.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout::slurm {

enum class Takes : std::uint8_t {
  Nothing,
  Value,  // after "=", or the next word
  Maybe,  // only after "="; for a letter, the rest of its word
};

struct OptionForm {
  std::string_view name;  // without dashes
  char letter = 0;        // 0: none
  Takes takes = Takes::Nothing;
};

struct GivenOption {
  std::string_view name;  // of the form
  std::string value;
  bool has_value = false;

  friend bool operator==(const GivenOption&, const GivenOption&) = default;
};

struct CommandLine {
  std::vector<GivenOption> options;  // as given
  std::vector<std::string> words;    // all others

  [[nodiscard]] bool has(std::string_view name) const;
  // Returns the value that was given last; nullopt if the option was not given.
  [[nodiscard]] std::optional<std::string> last(std::string_view name) const;
  // Returns all values, joined by commas; "" if there is none.
  [[nodiscard]] std::string list(std::string_view name) const;
};

enum class Order : std::uint8_t {
  Any,           // options may follow other words
  OptionsFirst,  // the first other word ends the options: it is a program
};

// Errors: Malformed for an unknown or ambiguous option, or one without its value; the text names
// it.
Result<CommandLine> read_options(std::span<const OptionForm> forms,
                                 const std::vector<std::string>& args, Order order);

}  // namespace score::scout::slurm
