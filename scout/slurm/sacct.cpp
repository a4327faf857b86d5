// sacct lists jobs, ended or not, from the head's record.
#include "base/text.hpp"
#include "scout/session/words.hpp"
#include "scout/slurm/commands.hpp"
#include "scout/slurm/job_list.hpp"
#include "scout/slurm/slurm_command.hpp"
#include "scout/slurm/words/account_fields.hpp"
#include "scout/slurm/words/job_words.hpp"
#include "scout/waits/wait_options.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>

namespace score::scout {

namespace slurm {
namespace {

constexpr std::array kForms = {
    OptionForm{"accounts", 'A', Takes::Value},
    OptionForm{"allusers", 'a'},
    OptionForm{"allocations", 'X'},
    OptionForm{"array"},
    OptionForm{"associations", 'x', Takes::Value},
    OptionForm{"brief", 'b'},
    OptionForm{"clusters", 'M', Takes::Value},
    OptionForm{"allclusters", 'L'},
    OptionForm{"completion", 'c'},
    OptionForm{"constraints", 'C', Takes::Value},
    OptionForm{"delimiter", 0, Takes::Value},
    OptionForm{"duplicates", 'D'},
    OptionForm{"endtime", 'E', Takes::Value},
    OptionForm{"env-vars"},
    OptionForm{"expand-patterns"},
    OptionForm{"federation"},
    OptionForm{"flags", 'F', Takes::Value},
    OptionForm{"format", 'o', Takes::Value},
    OptionForm{"gid", 'g', Takes::Value},
    OptionForm{"group", 0, Takes::Value},
    OptionForm{"helpformat", 'e'},
    OptionForm{"jobs", 'j', Takes::Value},
    OptionForm{"local"},
    OptionForm{"long", 'l'},
    OptionForm{"me"},
    OptionForm{"name", 0, Takes::Value},
    OptionForm{"noconvert"},
    OptionForm{"nodelist", 'N', Takes::Value},
    OptionForm{"noheader", 'n'},
    OptionForm{"parsable", 'p'},
    OptionForm{"parsable2", 'P'},
    OptionForm{"partition", 'r', Takes::Value},
    OptionForm{"qos", 'q', Takes::Value},
    OptionForm{"starttime", 'S', Takes::Value},
    OptionForm{"state", 's', Takes::Value},
    OptionForm{"truncate", 'T'},
    OptionForm{"uid", 0, Takes::Value},
    OptionForm{"units", 0, Takes::Value},
    OptionForm{"user", 'u', Takes::Value},
    OptionForm{"verbose", 'v'},
    OptionForm{"wckeys", 'W', Takes::Value},
};

constexpr const char* kFields = "jobid,jobname,partition,account,alloccpus,state,exitcode";
constexpr const char* kBrief = "jobid,state,exitcode";
constexpr const char* kLong =
    "jobid,jobidraw,jobname,partition,maxrss,ntasks,alloccpus,elapsed,state,exitcode,reqmem,"
    "alloctres,start,end,nodelist";

struct Options {
  std::vector<AccountColumn> columns;
  std::vector<std::string> jobs;
  WordSet users, accounts, names, states, partitions, steps;
  RecordQuery query;
  AccountStyle style = AccountStyle::Table;
  std::string delimiter = "|";
  bool with_steps = true;
  bool with_header = true;
};

std::string fields_of(const CommandLine& line) {
  const char* variable = std::getenv("SACCT_FORMAT");
  std::string fields = variable != nullptr ? variable : kFields;
  if (line.has("long")) fields = kLong;
  if (line.has("brief")) fields = kBrief;
  return line.has("format") ? line.list("format") : fields;
}

std::int64_t midnight(std::int64_t now_ns) {
  const auto now = static_cast<std::time_t>(now_ns / 1'000'000'000);
  std::tm parts{};
  if (localtime_r(&now, &parts) == nullptr) return 0;
  parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
  return static_cast<std::int64_t>(std::mktime(&parts)) * 1'000'000'000;
}

// Reads "now", "now-2days", a date with or without a time, or a time of today.
Result<std::int64_t> read_time(const std::string& text, std::int64_t now_ns) {
  if (text == "now") return now_ns;
  if (text == "today" || text == "midnight") return midnight(now_ns);
  if (text.starts_with("now-")) {
    const std::string span = "now+" + text.substr(4);
    const auto ahead = parse_ahead(span, WallTime(Duration(now_ns)));
    if (!ahead) return ahead.error();
    return 2 * now_ns - *ahead;
  }
  if (text.size() <= 8 && text.find(':') != text.npos) {
    const auto at = parse_ahead(text, WallTime(Duration(midnight(now_ns) - 1'000'000'000)),
                                WallTime(Duration(midnight(now_ns) - 1'000'000'000)));
    if (at) return *at;
  }
  return parse_past(text, now_ns);
}

Status read_times(const CommandLine& line, Options& options) {
  const std::int64_t now = wall_now().time_since_epoch().count();
  options.query.since_ns = midnight(now);
  options.query.until_ns = INT64_MAX;
  if (const auto text = line.last("starttime")) {
    const auto since = read_time(*text, now);
    if (!since) return since.error().with_context("--starttime");
    options.query.since_ns = *since;
  }
  if (const auto text = line.last("endtime"); text && *text != "now") {
    const auto until = read_time(*text, now);
    if (!until) return until.error().with_context("--endtime");
    options.query.until_ns = *until;
  }
  return {};
}

Result<Options> options_of(const CommandLine& line) {
  Options options;
  auto columns = read_account_columns(fields_of(line));
  if (!columns) return columns.error();
  options.columns = std::move(*columns);
  for (const auto& word : line.words) {
    return fail(Errc::Malformed, "unexpected argument '{}'; give jobs with -j",
                escape_terminal(word, 80));
  }
  options.jobs = split_jobs(line.list("jobs"));
  for (const auto& job : options.jobs) {
    if (job.find('.') != job.npos) options.steps.insert(job);
  }
  options.users = word_set(line.list("user"));
  options.users.merge(word_set(line.list("uid")));
  options.query.all_users = line.has("allusers") || !options.users.empty();
  options.accounts = word_set(line.list("accounts"));
  options.names = word_set(line.list("name"));
  options.states = word_set(line.list("state"));
  options.partitions = word_set(line.list("partition"));
  for (const auto& state : options.states) {
    if (is_state_word(state)) continue;
    return fail(Errc::NotFound, "Invalid job state specified: {}", escape_terminal(state, 80));
  }
  if (line.has("parsable")) options.style = AccountStyle::BarsAtEnd;
  if (line.has("parsable2")) options.style = AccountStyle::Bars;
  options.delimiter = line.last("delimiter").value_or("|");
  options.with_steps = !line.has("allocations");
  options.with_header = !line.has("noheader");
  if (auto read = read_times(line, options); !read) return read.error();
  return options;
}

bool matches(const Options& options, const wire::JobStatus& job) {
  const auto holds = [](const WordSet& set, std::string_view word) {
    return set.empty() || set.contains(word);
  };
  const auto has_state = [&](const auto& word) { return is_state(word, job.state()); };
  return (holds(options.users, job.user_name()) ||
          options.users.contains(std::to_string(job.user()))) &&
         holds(options.accounts, job.account()) && holds(options.names, job.name()) &&
         holds(options.partitions, queue_word(job.queue())) &&
         (options.states.empty() || std::ranges::any_of(options.states, has_state));
}

// Jobs that were named by a step are listed with that step only.
bool is_wanted(const Options& options, const AccountLine& line) {
  if (options.steps.empty()) return true;
  const std::string whole = id_words(*line.job);
  const std::string suffix = line.is_script         ? ".batch"
                             : line.step != nullptr ? fmt::format(".{}", line.step->step())
                                                    : std::string();
  const bool is_named_whole =
      std::ranges::any_of(options.jobs, [&](const auto& job) { return job == whole; });
  return is_named_whole || options.steps.contains(whole + suffix);
}

Result<int> show(HeadLink& head, const Options& options) {
  Jobs jobs;
  if (!options.jobs.empty()) {
    auto named = named_jobs(head, options.jobs);
    if (!named) return named.error();
    jobs = std::move(named->jobs);
  } else {
    auto recorded = recorded_jobs(head, options.query);
    if (!recorded) return recorded.error();
    jobs = std::move(*recorded);
  }
  std::string text;
  if (options.with_header)
    text = account_heading(options.columns, options.style, options.delimiter);
  for (const auto& job : jobs) {
    if (!matches(options, job)) continue;
    for (const auto& line : lines_of(job, options.with_steps)) {
      if (!is_wanted(options, line)) continue;
      text += account_text(options.columns, line, options.style, options.delimiter);
    }
  }
  print(text);
  return kExitOk;
}

}  // namespace
}  // namespace slurm

int sacct_main(const Invocation& invocation) {
  using namespace slurm;
  const auto [line, code] = read_line(invocation, kForms, {"[OPTION...]", "lists jobs"});
  if (code) return *code;
  if (line.has("helpformat")) return print(account_field_names()), kExitOk;
  const auto options = options_of(line);
  if (!options) return print_failure(invocation, options.error());
  return ask_head(invocation, [&](HeadLink& head) { return show(head, *options); });
}

}  // namespace score::scout
