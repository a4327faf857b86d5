// Declares the columns of sacct.
#pragma once

#include "base/result.hpp"
#include "proto/client.pb.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout::slurm {

// AccountLine is a line of sacct. It shows a job, its script, or one of its steps.
struct AccountLine {
  const wire::JobStatus* job = nullptr;
  const wire::StepStatus* step = nullptr;  // null: the job or its script
  bool is_script = false;
};

// Returns the lines of a job: itself, "12.batch" if it has a script, and its steps.
std::vector<AccountLine> lines_of(const wire::JobStatus& job, bool with_steps);

struct AccountField {
  std::string_view name;
  int width = 0;  // negative: left-aligned
  std::string (*cell)(const AccountLine&) = nullptr;
};

struct AccountColumn {
  const AccountField* field = nullptr;
  int width = 0;
};

// Reads "jobid,state%20,nodelist%-256". Errors: NotFound, which names the field; Malformed.
Result<std::vector<AccountColumn>> read_account_columns(std::string_view list);
std::string account_field_names();  // "JobID JobName ..."

enum class AccountStyle { Table, Bars, BarsAtEnd };

std::string account_heading(const std::vector<AccountColumn>& columns, AccountStyle style,
                            std::string_view delimiter);
std::string account_text(const std::vector<AccountColumn>& columns, const AccountLine& line,
                         AccountStyle style, std::string_view delimiter);

}  // namespace score::scout::slurm
