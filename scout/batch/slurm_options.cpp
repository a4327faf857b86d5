#include "scout/batch/slurm_options.hpp"

#include "base/text.hpp"
#include "base/units.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace score::scout {

namespace {

enum class Meaning : std::uint8_t {
  Value,      // the same, with a value
  Flag,       // the same, without one
  Nice,       // a value is optional and follows "="; without one it is 100
  Scatter,    // how ranks are assigned to nodes, and within a node to sockets
  NotHere,    // requests a resource that nodes do not have by this name; 0 and none request nothing
  Time,       // elapsed time
  Memory,     // megabytes unless a unit is given
  Generic,    // perhaps with "gres/" before it
  Gpus,       // their number
  Exclusive,  // whole nodes
  IfYes,      // a flag here; "yes" or "no" in Slurm
  Mail,       // events; some are unknown here
  Partition,  // a partition, or a queue of that name
  Export,     // NIL is NONE here
  Silent,     // changes nothing that a job could notice, so it is not reported
};

struct SlurmOption {
  std::string_view name;  // without dashes
  char letter;            // 0: none
  Meaning meaning;
  std::string_view ours;  // empty: the same name; for NotHere: a hint
};

constexpr std::string_view kGpusHint =
    "give the number per node: --gpus-per-node=N or --gres=gpu:N";
constexpr std::string_view kScratchHint =
    "use #SCORE --scratch SIZE, which reserves disk space for the whole job";

constexpr std::array kKnown = {
    SlurmOption{"nodes", 'N', Meaning::Value, ""},
    SlurmOption{"ntasks", 'n', Meaning::Value, ""},
    SlurmOption{"ntasks-per-node", 0, Meaning::Value, ""},
    SlurmOption{"cpus-per-task", 'c', Meaning::Value, ""},
    SlurmOption{"mem", 0, Meaning::Memory, ""},
    SlurmOption{"mem-per-cpu", 0, Meaning::Memory, ""},
    SlurmOption{"time", 't', Meaning::Time, "wall-time"},
    SlurmOption{"signal", 0, Meaning::Value, ""},
    SlurmOption{"account", 'A', Meaning::Value, ""},
    SlurmOption{"job-name", 'J', Meaning::Value, ""},
    SlurmOption{"output", 'o', Meaning::Value, ""},
    SlurmOption{"error", 'e', Meaning::Value, ""},
    SlurmOption{"input", 'i', Meaning::Value, ""},
    SlurmOption{"open-mode", 0, Meaning::Value, ""},
    SlurmOption{"chdir", 'D', Meaning::Value, ""},
    SlurmOption{"export", 0, Meaning::Export, ""},
    SlurmOption{"partition", 'p', Meaning::Partition, ""},
    SlurmOption{"comment", 0, Meaning::Silent, ""},
    SlurmOption{"wckey", 0, Meaning::Silent, ""},
    SlurmOption{"oversubscribe", 's', Meaning::Silent, ""},
    SlurmOption{"parsable", 0, Meaning::Silent, ""},
    SlurmOption{"nodelist", 'w', Meaning::Value, ""},
    SlurmOption{"exclude", 'x', Meaning::Value, ""},
    SlurmOption{"constraint", 'C', Meaning::Value, ""},
    SlurmOption{"gres", 0, Meaning::Generic, ""},
    SlurmOption{"gpus-per-node", 0, Meaning::Gpus, "gres"},
    SlurmOption{"exclusive", 0, Meaning::Exclusive, ""},
    SlurmOption{"hold", 'H', Meaning::Flag, ""},
    SlurmOption{"overcommit", 'O', Meaning::Flag, ""},
    SlurmOption{"requeue", 0, Meaning::Flag, ""},
    SlurmOption{"no-requeue", 0, Meaning::Flag, ""},
    SlurmOption{"wait", 'W', Meaning::Flag, ""},
    SlurmOption{"array", 'a', Meaning::Value, ""},
    SlurmOption{"dependency", 'd', Meaning::Value, ""},
    SlurmOption{"kill-on-invalid-dep", 0, Meaning::IfYes, ""},
    SlurmOption{"begin", 'b', Meaning::Value, ""},
    SlurmOption{"deadline", 0, Meaning::Value, ""},
    SlurmOption{"reservation", 0, Meaning::Value, ""},
    SlurmOption{"nice", 0, Meaning::Nice, ""},
    SlurmOption{"distribution", 'm', Meaning::Scatter, ""},
    SlurmOption{"mail-type", 0, Meaning::Mail, ""},
    SlurmOption{"mail-user", 0, Meaning::Value, ""},
    SlurmOption{"gpus", 'G', Meaning::NotHere, kGpusHint},
    SlurmOption{"gpus-per-task", 0, Meaning::NotHere, kGpusHint},
    SlurmOption{"gpus-per-socket", 0, Meaning::NotHere, kGpusHint},
    SlurmOption{"licenses", 'L', Meaning::Value, ""},
    SlurmOption{"switches", 0, Meaning::Value, ""},
    SlurmOption{"tmp", 0, Meaning::NotHere, kScratchHint},
    SlurmOption{"bb", 0, Meaning::NotHere, kScratchHint},
    SlurmOption{"bbf", 0, Meaning::NotHere, kScratchHint},
};

struct ScriptOption {
  std::string shown;  // as written in the script
  std::string name;   // without dashes; a single letter is a short option
  std::optional<std::string> value;
};

const SlurmOption* find_known(const ScriptOption& option) {
  for (const SlurmOption& known : kKnown) {
    const bool is_letter = option.name.size() == 1 && option.name[0] == known.letter;
    if (is_letter || option.name == known.name) return &known;
  }
  return nullptr;
}

ScriptOption read_option(const std::string& word) {
  ScriptOption option{word, {}, {}};
  if (word.starts_with("--")) {
    const auto equals = word.find('=');
    option.name = word.substr(2, equals == word.npos ? word.npos : equals - 2);
    if (equals != word.npos) option.value = word.substr(equals + 1);
  } else if (word.size() > 1) {
    option.name = word.substr(1, 1);
    if (word.size() > 2) option.value = word.substr(word[2] == '=' ? 3 : 2);
  }
  return option;
}

bool takes_value(Meaning meaning) {
  return meaning == Meaning::Value || meaning == Meaning::Time || meaning == Meaning::Memory ||
         meaning == Meaning::IfYes || meaning == Meaning::Generic || meaning == Meaning::Gpus ||
         meaning == Meaning::Scatter || meaning == Meaning::NotHere || meaning == Meaning::Mail ||
         meaning == Meaning::Partition || meaning == Meaning::Export;
}

// Converts the size. An empty result means all of the node's memory, which is not reserved here.
Result<std::string> memory_of(std::string_view name, const std::string& text) {
  const bool is_bare = text.find_first_not_of("0123456789") == text.npos;
  const std::string size = is_bare ? text + "M" : text;
  const auto bytes = parse_bytes(size);
  if (!bytes) {
    return fail(Errc::Malformed, "--{}: '{}' is not a size; use 4000 (megabytes), 4G or 4GB", name,
                escape_terminal(text, 80));
  }
  return bytes->value() == 0 ? std::string() : size;
}

// Returns the distribution over nodes. "cyclic:block" and "block,NoPack" also determine how tasks
// are assigned to sockets, which has no equivalent here. Empty for a distribution that scbatch does
// not have.
std::string distribution_of(const std::string& text) {
  const auto nodes = text.substr(0, text.find_first_of(":,"));
  if (nodes == "*") return "block";
  return nodes == "block" || nodes == "cyclic" ? nodes : std::string();
}

// Returns the events that exist here. There are no burst buffers, and --kill-on-invalid-dep makes a
// job fail.
std::string mail_types_of(const std::string& text) {
  std::string out;
  for (const auto word : split(text, ',')) {
    if (word == "STAGE_OUT" || word == "INVALID_DEPEND") continue;
    out += fmt::format("{}{}", out.empty() ? "" : ",", word);
  }
  return out;
}

bool is_queue(std::string_view partition) {
  constexpr std::array<std::string_view, 4> kQueues = {"exclusive", "high", "normal", "urgent"};
  return std::ranges::find(kQueues, partition) != kQueues.end();
}

Result<std::string> refuse_unless_none(const SlurmOption& known, const std::string& value,
                                       std::string_view place) {
  const bool is_none = value == "0" || value == "none";
  if (is_none) return std::string();
  return fail(Errc::Unsupported, "{}--{}={}: {}", place, known.name, escape_terminal(value, 80),
              known.ours);
}

// Returns our form of the option; empty if the option is to be ignored.
Result<std::string> translate(const SlurmOption& known, const ScriptOption& option,
                              std::string_view place) {
  const std::string name(known.ours.empty() ? known.name : known.ours);
  const std::string value = option.value.value_or("");
  switch (known.meaning) {
    case Meaning::Flag:
      return "--" + name;
    case Meaning::Exclusive:
      return std::string(option.value ? "" : "--queue=exclusive");
    case Meaning::Gpus:
      if (value == "0") return std::string();
      return fmt::format("--{}=gpu:{}", name, value);
    case Meaning::Generic: {
      const std::string_view text = value;
      return fmt::format("--{}={}", name, text.substr(text.starts_with("gres/") ? 5 : 0));
    }
    case Meaning::Value:
      return fmt::format("--{}={}", name, value);
    case Meaning::Nice:
      return fmt::format("--{}={}", name, option.value.value_or("100"));
    case Meaning::Scatter: {
      const auto distribution = distribution_of(value);
      return distribution.empty() ? std::string() : fmt::format("--{}={}", name, distribution);
    }
    case Meaning::NotHere:
      return refuse_unless_none(known, value, place);
    case Meaning::Time: {
      const auto time = slurm_time(value);
      if (!time) return time.error();
      return time->empty() ? std::string() : fmt::format("--{}={}", name, *time);
    }
    case Meaning::Memory: {
      const auto memory = memory_of(name, value);
      if (!memory) return memory.error();
      return memory->empty() ? std::string() : fmt::format("--{}={}", name, *memory);
    }
    case Meaning::Mail: {
      const auto types = mail_types_of(value);
      return types.empty() ? std::string() : fmt::format("--{}={}", name, types);
    }
    case Meaning::IfYes:
      return value == "yes" ? "--" + name : std::string();
    case Meaning::Partition:
      return fmt::format("--{}={}", is_queue(value) ? "queue" : name, value);
    case Meaning::Export:
      return fmt::format("--{}={}", name, value == "NIL" ? "NONE" : value);
    case Meaning::Silent:
      break;
  }
  return std::string();
}

}  // namespace

Result<std::string> slurm_time(std::string_view text) {
  const auto bad = [&] {
    return fail(Errc::Malformed, "--time: '{}' is not a time", escape_terminal(text, 80));
  };
  if (text == "UNLIMITED" || text == "INFINITE" || text == "infinite" || text == "0") {
    return std::string();
  }
  std::uint64_t days = 0;
  const auto dash = text.find('-');
  std::string_view clock = text;
  if (dash != text.npos) {
    const auto number = parse_number<std::uint64_t>(text.substr(0, dash));
    if (!number || *number > 36'500) return bad();
    days = *number;
    clock = text.substr(dash + 1);
  }
  std::vector<std::uint64_t> parts;
  for (const auto part : split(clock, ':')) {
    const auto number = parse_number<std::uint64_t>(part);
    if (!number || *number > 1'000'000 || parts.size() == 3) return bad();
    parts.push_back(*number);
  }
  if (parts.empty()) return bad();
  // After days the first number is hours. Without days, one number is minutes, and two are minutes
  // and seconds.
  std::uint64_t seconds = 0;
  if (dash != text.npos || parts.size() == 3) {
    parts.resize(3);
    seconds = (parts[0] * 60 + parts[1]) * 60 + parts[2];
  } else {
    parts.resize(2);
    seconds = parts[0] * 60 + parts[1];
  }
  seconds += days * 86'400;
  return seconds == 0 ? std::string() : fmt::format("{}s", seconds);
}

Result<SlurmOptions> from_slurm(const std::vector<std::string>& words, std::string_view place) {
  SlurmOptions out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    ScriptOption option = read_option(words[i]);
    if (!words[i].starts_with('-') || option.name.empty()) {
      return fail(Errc::Malformed, "'{}' is not an option", escape_terminal(words[i], 80));
    }
    const SlurmOption* known = find_known(option);
    const bool may_follow =
        known == nullptr || takes_value(known->meaning) || known->meaning == Meaning::Silent;
    const bool follows = i + 1 < words.size() && !words[i + 1].starts_with('-');
    if (!option.value && may_follow && follows) {
      option.value = words[++i];
      option.shown += " " + words[i];
    }
    if (option.shown == "--exclude=") continue;  // it names no node
    if (known != nullptr && takes_value(known->meaning) && option.value.value_or("").empty()) {
      return fail(Errc::Malformed, "{}--{} needs a value", place, known->name);
    }
    const auto ours =
        known == nullptr ? Result<std::string>(std::string()) : translate(*known, option, place);
    if (!ours) return ours.error();
    if (known != nullptr && known->meaning == Meaning::Silent) continue;
    (ours->empty() ? out.ignored : out.words).push_back(ours->empty() ? option.shown : *ours);
  }
  return out;
}

}  // namespace score::scout
