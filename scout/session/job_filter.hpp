// The jobs that scq, scacct and sccancel are about: ids, and the options that choose among all
// jobs. The words are the same everywhere.
#pragma once

#include "base/result.hpp"
#include "proto/client.pb.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace score::scout {

class JobFilter {
 public:
  // JOB ..., --jobs, --user, --account, --name, --state and --nodelist.
  void add_options(CLI::App& app, const std::string& about_jobs);
  // Reads the values. Call it once, after the arguments have been parsed. Errors: NotFound (a
  // state), Malformed (a list of nodes); the text names the option.
  Status read();

  // As people name them; empty: none is named.
  [[nodiscard]] const std::vector<std::string>& jobs() const { return jobs_; }

  // An option chooses among the jobs.
  [[nodiscard]] bool chooses() const;

  [[nodiscard]] bool names_users() const { return !users_.empty(); }

  [[nodiscard]] bool matches(const wire::JobStatus& job) const;
  [[nodiscard]] bool matches(const wire::AccountingRow& row) const;

  // Keeps the jobs that match.
  void apply(wire::JobList& list) const;

  // For a result without jobs: says which of the users this host does not know; empty: all are
  // known.
  [[nodiscard]] std::string unknown_users() const;

 private:
  template <typename Job>
  [[nodiscard]] bool matches_names(const Job& job) const;
  [[nodiscard]] bool has_state(std::string_view state, std::string_view activity) const;

  std::vector<std::string> jobs_, job_lists_;
  std::vector<std::string> user_lists_, account_lists_, name_lists_, state_lists_, node_lists_;
  std::set<std::string, std::less<>> users_, accounts_, names_, states_, nodes_;
};

// "a,b" and "c": the words. Empty ones are left out.
[[nodiscard]] std::set<std::string, std::less<>> words_of_lists(
    const std::vector<std::string>& lists);

}  // namespace score::scout
