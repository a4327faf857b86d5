#include "scout/session/job_filter.hpp"

#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "scout/session/job_views.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <pwd.h>
#include <utility>

namespace score::scout {

namespace {

using WordSet = std::set<std::string, std::less<>>;

// Users of other systems type these spellings.
constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kOtherStates = {{
    {"pd", "pending"},
    {"cf", "launching"},
    {"r", "running"},
    {"s", "suspended"},
    {"cg", "completing"},
    {"cd", "completed"},
    {"f", "failed"},
    {"ca", "cancelled"},
    {"canceled", "cancelled"},
    {"to", "timed-out"},
    {"timeout", "timed-out"},
    {"nf", "node-failed"},
    {"node-fail", "node-failed"},
    {"oom", "out-of-memory"},
}};

std::vector<std::string> known_states() {
  std::vector<std::string> states;
  for (std::uint32_t state = 0; state_word(state) != "unknown"; ++state) {
    states.emplace_back(state_word(state));
  }
  states.insert(states.end(), {"idle", "deadlocked"});
  return states;
}

// Converts the spelling of a state to ours; accepts "RUNNING", "NODE_FAIL" and "R" too.
Result<std::string> read_state(std::string_view text) {
  std::string word;
  for (const char c : text) {
    word += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (const auto& [other, ours] : kOtherStates) {
    if (word == other) word = ours;
  }
  const auto states = known_states();
  if (std::ranges::find(states, word) != states.end()) return word;
  return fail(Errc::NotFound, "--state: unknown state '{}'; the states are {}",
              escape_terminal(text, 80), fmt::join(states, ", "));
}

// Returns true if the set is empty or has the word.
bool holds(const WordSet& words, std::string_view word) {
  return words.empty() || words.contains(word);
}

}  // namespace

WordSet words_of_lists(const std::vector<std::string>& lists) {
  WordSet words;
  for (const auto& list : lists) {
    for (const auto word : split(list, ',')) {
      if (!trim(word).empty()) words.emplace(trim(word));
    }
  }
  return words;
}

void JobFilter::add_options(CLI::App& app, const std::string& about_jobs) {
  const auto add = [&app](const char* names, std::vector<std::string>& lists, const char* about,
                          const char* type) {
    app.add_option(names, lists, about)->type_name(type)->allow_extra_args(false);
  };
  add("-j,--jobs", job_lists_, "The same, joined by commas", "JOB,...");
  add("-u,--user", lists_.users, "Only jobs of these users, by name or number", "USER,...");
  add("-A,--account", lists_.accounts, "Only jobs of these accounts", "NAME,...");
  add("-p,--partition", lists_.partitions, "Only jobs of these partitions", "NAME,...");
  add("--name", lists_.names, "Only jobs with one of these names", "NAME,...");
  add("--state", lists_.states, "Only jobs in one of these states, such as pending,running",
      "STATE,...");
  add("-w,--nodelist", lists_.nodes, "Only jobs on one of these nodes", "NODES");
  app.add_option("job", jobs_, about_jobs)->type_name("JOB");
}

Status JobFilter::read() {
  // "12_[1,3]" has a comma of its own, so only commas outside brackets separate ids.
  for (const auto& list : job_lists_) {
    std::string word;
    int depth = 0;
    for (const char c : list + ",") {
      depth += c == '[' ? 1 : c == ']' ? -1 : 0;
      if (c != ',' || depth > 0) {
        word += c;
      } else if (!word.empty()) {
        jobs_.push_back(std::exchange(word, {}));
      }
    }
  }
  for (const auto& word : jobs_) {
    if (const auto job = parse_job_word(word); !job) return job.error();
  }
  users_ = words_of_lists(lists_.users);
  accounts_ = words_of_lists(lists_.accounts);
  partitions_ = words_of_lists(lists_.partitions);
  names_ = words_of_lists(lists_.names);
  names_.insert(lists_.names.begin(), lists_.names.end());  // a name may contain commas
  for (const auto& word : words_of_lists(lists_.states)) {
    const auto state = read_state(word);
    if (!state) return state.error();
    states_.insert(*state);
  }
  for (const auto& list : lists_.nodes) {
    const auto names = expand_hostlist(list);
    if (!names) return names.error().with_context("--nodelist");
    nodes_.insert(names->begin(), names->end());
  }
  return {};
}

bool JobFilter::chooses() const {
  return !(users_.empty() && accounts_.empty() && names_.empty() && states_.empty() &&
           nodes_.empty() && partitions_.empty());
}

bool JobFilter::has_state(std::string_view state, std::string_view activity) const {
  return states_.empty() || states_.contains(state) || states_.contains(activity);
}

template <typename Job>
bool JobFilter::matches_names(const Job& job) const {
  const bool is_user =
      holds(users_, job.user_name()) || users_.contains(std::to_string(job.user()));
  return is_user && holds(accounts_, job.account()) && holds(partitions_, job.partition()) &&
         holds(names_, job.name());
}

bool JobFilter::matches(const wire::JobStatus& job) const {
  if (!matches_names(job) || !has_state(state_word(job.state()), activity_word(job))) return false;
  return nodes_.empty() ||
         std::ranges::any_of(job.nodes(), [&](const auto& node) { return nodes_.contains(node); });
}

bool JobFilter::matches(const wire::AccountingRow& row) const {
  if (!matches_names(row) || !has_state(state_word(row.state()), "")) return false;
  if (nodes_.empty()) return true;
  const auto names = expand_hostlist(row.nodes());
  return names &&
         std::ranges::any_of(*names, [&](const auto& node) { return nodes_.contains(node); });
}

void JobFilter::apply(wire::JobList& list) const {
  if (!chooses()) return;
  wire::JobList chosen;
  for (auto& job : *list.mutable_jobs()) {
    if (matches(job)) *chosen.add_jobs() = std::move(job);
  }
  list.mutable_jobs()->Swap(chosen.mutable_jobs());
}

std::string JobFilter::unknown_users() const {
  std::string unknown;
  for (const auto& user : users_) {
    const bool is_number = parse_number<std::uint32_t>(user).has_value();
    if (is_number || getpwnam(user.c_str()) != nullptr) continue;
    unknown += (unknown.empty() ? "" : ", ") + escape_terminal(user, 80);
  }
  return unknown.empty() ? "" : "this host does not know the user " + unknown;
}

}  // namespace score::scout
