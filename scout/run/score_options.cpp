#include "scout/run/score_options.hpp"

#include "base/text.hpp"
#include "scout/run/mpiexec_options.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <span>

namespace score::scout {

namespace {

using Words = std::vector<std::string>;

const CLI::Option* option_of(const CLI::App& app, const std::string& name) {
  return app.get_option_no_throw(name);
}

// An option with an optional value takes it only after an equal sign, so it does not count here.
bool takes_value(const CLI::Option* option) {
  return option != nullptr && option->get_items_expected_min() > 0;
}

Result<std::uint32_t> count_of(std::string_view text, std::string_view whole) {
  const auto number = parse_number<std::uint32_t>(text);
  if (!number || *number == 0) {
    return fail(Errc::Malformed, "'{}' is not a number of nodes (8, 8x2 or 16/2)",
                escape_terminal(whole, 80));
  }
  return *number;
}

// Translates the value of nodes=: "8" and "4-8" are hosts, "8x2" is hosts x processes per host,
// "16/2" is processes / processes per host.
Result<Words> rewrite_nodes(std::string_view value) {
  if (parse_node_range(value)) return Words{fmt::format("--nodes={}", value)};
  const auto at = value.find_first_of("x/");
  const auto first = count_of(value.substr(0, at), value);
  if (!first) return first.error();
  if (at == value.npos) return Words{fmt::format("--nodes={}", *first)};
  const auto second = count_of(value.substr(at + 1), value);
  if (!second) return second.error();
  std::uint32_t nodes = *first;
  if (value[at] == '/') {
    if (*first % *second != 0) {
      return fail(Errc::Malformed, "'{}': {} does not divide {}", value, *second, *first);
    }
    nodes = *first / *second;
  }
  return Words{fmt::format("--nodes={}", nodes), fmt::format("--ntasks-per-node={}", *second)};
}

// Handles SCore's own keys; any other key is the name of a long option, which is a flag if it has
// no value.
Result<Words> rewrite_pair(const CLI::App& app, std::string_view pair) {
  const auto at = pair.find('=');
  const auto key = pair.substr(0, at);
  const auto value = at == pair.npos ? std::string_view() : pair.substr(at + 1);
  if (key == "nodes" || key == "node" || key == "hosts" || key == "host") {
    return rewrite_nodes(value);
  }
  if (key == "scored") return Words{fmt::format("--server={}", value)};
  if (key == "timelimit" || key == "cpulimit") return Words{fmt::format("--time={}", value)};
  const std::string name = fmt::format("--{}", key);
  if (key.empty() || option_of(app, name) == nullptr) {
    return fail(
        Errc::Malformed,
        "unknown option '{}' in SCore's form; there are nodes, hosts, scored, timelimit and "
        "every long option",
        escape_terminal(key, 80));
  }
  return Words{at == pair.npos ? name : fmt::format("{}={}", name, value)};
}

// Returns true if the value of the option is the next word: "-N" yes, "-N8" no, "-lN" yes,
// "--nodes=8" no.
bool wants_next_word(const CLI::App& app, const std::string& word) {
  if (word.starts_with("--")) {
    return word.find('=') == word.npos && takes_value(option_of(app, word));
  }
  for (std::size_t i = 1; i < word.size(); ++i) {
    if (takes_value(option_of(app, std::string("-") + word[i]))) return i + 1 == word.size();
  }
  return false;
}

// A long option of the command itself, such as --hosts of score start, is not an option of mpiexec.
bool is_own_option(const CLI::App& app, std::string_view word) {
  return word.starts_with("--") &&
         option_of(app, std::string(word.substr(0, word.find('=')))) != nullptr;
}

void append(Words& words, Words more) {
  words.insert(words.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

void take(SplitCommand& result, MpiexecOption option, const std::string& word) {
  const std::string typed = word.substr(0, word.find('='));
  for (const auto& ours : option.options) result.typed[ours.substr(0, ours.find('='))] = typed;
  append(result.options, std::move(option.options));
  append(result.variables, std::move(option.variables));
  append(result.job_variables, std::move(option.job_variables));
  if (!option.config_file.empty()) result.config_file = std::move(option.config_file);
}

}  // namespace

bool is_score_group(std::string_view word) {
  if (word.size() < 4 || word[0] != '-') return false;
  const auto end =
      std::find_if(word.begin() + 1, word.end(), [](char c) { return c < 'a' || c > 'z'; });
  return end != word.end() && *end == '=' && end - word.begin() > 2;
}

bool is_bare_score_group(std::string_view word) {
  for (const std::string_view key : {"nodes=", "node=", "hosts=", "host=", "scored="}) {
    if (word.starts_with(key)) return true;
  }
  return false;
}

Result<Words> rewrite_score_group(const CLI::App& app, std::string_view group) {
  group.remove_prefix(std::min({group.find_first_not_of('-'), std::size_t{2}, group.size()}));
  Words words;
  for (const auto pair : split(group, ',')) {
    auto rewritten = rewrite_pair(app, trim(pair));
    if (!rewritten) return rewritten.error();
    append(words, std::move(*rewritten));
  }
  return words;
}

Result<SplitCommand> split_command(const CLI::App& app, const Words& args,
                                   std::string_view environment) {
  SplitCommand result;
  for (const auto group : split(environment, ' ')) {
    if (trim(group).empty()) continue;
    auto words = rewrite_score_group(app, trim(group));
    if (!words) return words.error().with_context("SCORE_OPTIONS");
    append(result.options, std::move(*words));
  }
  std::size_t at = 0;
  for (; at < args.size(); ++at) {
    const auto& word = args[at];
    if (word == "--") {
      ++at;
      break;
    }
    const bool is_bare = is_bare_score_group(word);
    if (!is_bare && (word.size() < 2 || word[0] != '-')) break;
    if (is_bare || is_score_group(word)) {
      auto words = rewrite_score_group(app, word);
      if (!words) return words.error();
      append(result.options, std::move(*words));
      continue;
    }
    if (!is_own_option(app, word)) {
      auto foreign = read_mpiexec_option(std::span(args).subspan(at));
      if (!foreign) return foreign.error();
      if (*foreign) {
        at += (*foreign)->words - 1;
        take(result, std::move(**foreign), word);
        continue;
      }
    }
    result.options.push_back(word);
    if (wants_next_word(app, word) && at + 1 < args.size()) result.options.push_back(args[++at]);
  }
  result.command.assign(args.begin() + static_cast<std::ptrdiff_t>(at), args.end());
  return result;
}

std::optional<int> parse_with_command(CLI::App& app, const Invocation& invocation, Words& command) {
  auto split = split_command(app, invocation.args, "");
  if (!split) return print_error(invocation, split.error());
  command = std::move(split->command);
  return parse(app, invocation.with(split->options));
}

}  // namespace score::scout
