#include "scout/run/programs.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/text/plain.hpp"
#include "scout/batch/shell_words.hpp"
#include "scout/run/score_options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <optional>

namespace score::scout {

namespace {

using Words = std::vector<std::string>;

// Parses the options of one program among several.
Result<ProgramOptions> read_group(const Words& words) {
  ProgramOptions program;
  program.tasks = 1;
  CLI::App app;
  app.set_help_flag();
  app.add_option("-n,--ntasks", program.tasks)->check(CLI::Range(1U, limits::kMaxTasksPerJob));
  app.add_option("-D,--chdir", program.directory);
  app.add_option("--export", program.export_rule);
  auto split = split_command(app, words, "");
  if (!split) return split.error();
  std::reverse(split->options.begin(),
               split->options.end());  // CLI11 expects a vector in reverse order
  try {
    app.parse(split->options);
  } catch (const CLI::ParseError& error) {
    return fail(Errc::Malformed, "after ':': {}; a later program accepts -n, -D and --export",
                escape_terminal(error.what(), 200));
  }
  program.command = std::move(split->command);
  program.variables = std::move(split->variables);
  if (!split->job_variables.empty() || !split->config_file.empty()) {
    return fail(Errc::Malformed,
                "after ':': -genv and -configfile must be before the first program");
  }
  if (program.command.empty()) return fail(Errc::Malformed, "which program after ':'?");
  return program;
}

// ---- --multi-prog

struct ProgramLine {
  Words command;
  std::uint32_t used = 0;  // number of ranks assigned so far
};

struct RankRange {
  std::uint32_t first;
  std::uint32_t last;
};

std::optional<std::vector<RankRange>> parse_ranks(std::string_view text) {
  std::vector<RankRange> ranges;
  for (const auto part : split(text, ',')) {
    const auto dash = part.find('-');
    const auto first = parse_number<std::uint32_t>(part.substr(0, dash));
    const auto last =
        dash == part.npos ? first : parse_number<std::uint32_t>(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last >= limits::kMaxTasksPerJob) return std::nullopt;
    ranges.push_back({*first, *last});
  }
  return ranges;
}

// Maps each rank to the line that it runs.
class RankMap {
 public:
  explicit RankMap(std::uint32_t tasks) : tasks_(tasks), lines_(tasks) {}

  Status add(std::string_view ranks, std::size_t line) {
    if (ranks == "*") {
      rest_ = line;
      return {};
    }
    const auto ranges = parse_ranks(ranks);
    if (!ranges)
      return fail(Errc::Malformed, "'{}' is not a list of ranks", escape_terminal(ranks, 80));
    for (const auto [first, last] : *ranges) {
      if (tasks_ != 0 && last >= tasks_) {
        return fail(Errc::Malformed, "rank {} is not in a job of {}", last,
                    counted(tasks_, "task"));
      }
      if (last >= lines_.size()) lines_.resize(last + 1);
      for (std::uint32_t rank = first; rank <= last; ++rank) {
        if (lines_[rank]) return fail(Errc::Malformed, "rank {} has a program already", rank);
        lines_[rank] = line;
      }
    }
    return {};
  }

  // Returns the line of each rank, by rank. Errors: Malformed if a rank has no program, or if the
  // number of ranks is unknown.
  [[nodiscard]] Result<std::vector<std::size_t>> complete() const {
    if (rest_ && tasks_ == 0) return fail(Errc::Malformed, "'*' needs the number of tasks (-n)");
    std::vector<std::size_t> lines;
    for (const auto& line : lines_) {
      if (!line && !rest_) return fail(Errc::Malformed, "rank {} has no program", lines.size());
      lines.push_back(line ? *line : *rest_);
    }
    if (lines.empty()) return fail(Errc::Malformed, "the file names no program");
    return lines;
  }

 private:
  std::uint32_t tasks_;                            // 0: as many as are named
  std::vector<std::optional<std::size_t>> lines_;  // [rank]
  std::optional<std::size_t> rest_;
};

bool differs_by_rank(const Words& command) {
  return std::any_of(command.begin(), command.end(), [](const std::string& word) {
    return word.find("%t") != word.npos || word.find("%o") != word.npos;
  });
}

std::string expanded(std::string_view word, std::size_t rank, std::uint32_t place) {
  std::string out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const auto two = word.substr(i, 2);
    if (two != "%t" && two != "%o") {
      out += word[i];
      continue;
    }
    out += std::to_string(two == "%t" ? rank : place);
    ++i;
  }
  return out;
}

std::vector<ProgramOptions> programs_of(std::vector<ProgramLine>& lines,
                                        const std::vector<std::size_t>& of_ranks) {
  std::vector<ProgramOptions> programs;
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    ProgramLine& line = lines[of_ranks[rank]];
    const std::uint32_t place = line.used++;
    const bool is_own = differs_by_rank(line.command);
    if (rank > 0 && of_ranks[rank - 1] == of_ranks[rank] && !is_own) {
      ++programs.back().tasks;
      continue;
    }
    ProgramOptions program{.tasks = 1, .directory = {}, .export_rule = {}};
    for (const auto& word : line.command) program.command.push_back(expanded(word, rank, place));
    programs.push_back(std::move(program));
  }
  return programs;
}

}  // namespace

Result<std::vector<ProgramOptions>> split_programs(const Words& words, std::uint32_t tasks) {
  std::vector<Words> groups(1);
  for (const auto& word : words) {
    if (word == ":") {
      groups.emplace_back();
    } else {
      groups.back().push_back(word);
    }
  }
  std::vector<ProgramOptions> programs;
  if (groups[0].empty() || groups[0][0].empty()) return fail(Errc::Malformed, "which program?");
  const bool is_only = groups.size() == 1;
  programs.push_back({.tasks = is_only ? 0 : std::max(1U, tasks),
                      .directory = {},
                      .export_rule = {},
                      .command = groups[0]});
  for (std::size_t i = 1; i < groups.size(); ++i) {
    auto program = read_group(groups[i]);
    if (!program) return program.error();
    programs.push_back(std::move(*program));
  }
  return programs;
}

Result<std::vector<ProgramOptions>> parse_multi_prog(std::string_view text, std::uint32_t tasks) {
  std::vector<ProgramLine> lines;
  RankMap ranks(tasks);
  std::size_t number = 0;
  for (const auto line : split(text, '\n')) {
    ++number;
    auto words = shell_words(line);
    if (words && words->empty()) continue;
    if (!words || words->size() < 2) {
      return fail(Errc::Malformed, "line {}: expected RANKS PROGRAM [ARGUMENT...]", number);
    }
    if (auto added = ranks.add(words->front(), lines.size()); !added) {
      return added.error().with_context("line {}", number);
    }
    words->erase(words->begin());
    lines.push_back({std::move(*words)});
  }
  const auto of_ranks = ranks.complete();
  if (!of_ranks) return of_ranks.error();
  return programs_of(lines, *of_ranks);
}

}  // namespace score::scout
