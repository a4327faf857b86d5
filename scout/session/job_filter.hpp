// JobFilter selects the jobs for scq, scacct and sccancel: ids, and options that select among all
// jobs. The options are the same in all three commands.
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
  // Adds JOB ..., --jobs, --user, --account, --partition, --name, --state and
  // --nodelist.
  void add_options(CLI::App& app, const std::string& about_jobs);
  // Reads the values. The caller calls it once, after parsing the arguments. Errors: NotFound for a
  // state, Malformed for a list of nodes; the text names the option.
  Status read();

  // Returns the ids as users type them; empty if none is given.
  [[nodiscard]] const std::vector<std::string>& jobs() const { return jobs_; }

  // Returns true if an option selects among the jobs.
  [[nodiscard]] bool chooses() const;

  [[nodiscard]] bool names_users() const { return !users_.empty(); }

  [[nodiscard]] bool matches(const wire::JobStatus& job) const;
  [[nodiscard]] bool matches(const wire::AccountingRow& row) const;

  // Removes the jobs that do not match.
  void apply(wire::JobList& list) const;

  // Returns a message that names the users that this host does not know, for a result without jobs.
  // Empty if all are known.
  [[nodiscard]] std::string unknown_users() const;

 private:
  template <typename Job>
  [[nodiscard]] bool matches_names(const Job& job) const;
  [[nodiscard]] bool has_state(std::string_view state, std::string_view activity) const;

  std::vector<std::string> jobs_, job_lists_;

  struct Lists {  // the options as typed
    std::vector<std::string> users, accounts, partitions, names, states, nodes;
  };

  Lists lists_;
  std::set<std::string, std::less<>> users_, accounts_, names_, states_, nodes_, partitions_;
};

// Splits each list at its commas: "a,b" and "c" give three words. Empty words are omitted.
[[nodiscard]] std::set<std::string, std::less<>> words_of_lists(
    const std::vector<std::string>& lists);

}  // namespace score::scout
