// Translates the command lines of sbatch, srun and salloc to those of scbatch, scrun and scalloc.
// Pure.
#pragma once

#include "base/result.hpp"
#include "scout/slurm/words/option_words.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout::slurm {

// Returns the options that all three have; `more` are those of one of them.
std::vector<OptionForm> submit_forms(std::vector<OptionForm> more);

struct SubmitWords {
  std::vector<std::string> words;    // for our command
  std::vector<std::string> ignored;  // "--mail-type=END"
};

// Translates the options other than `handled`, which the caller reads itself. Options that only
// concern Slurm's own messages and records are left out silently. Errors: Malformed, Unsupported.
Result<SubmitWords> translate(const std::vector<GivenOption>& options,
                              const std::vector<std::string_view>& handled);

// Checks a value of --dependency for forms that this cluster lacks. Errors: Unsupported.
Status check_dependency(std::string_view text);

// Returns the options that variables such as SBATCH_ACCOUNT set; `value_of` is getenv(3).
std::vector<GivenOption> options_in_environment(
    std::string_view prefix, const std::function<const char*(const char*)>& value_of);

// Translates the options of srun to words of scrun. `is_step`: it runs inside a job, so options
// that concern the job are left out. Errors: as translate().
Result<SubmitWords> translate_run(const std::vector<GivenOption>& options, bool is_step);

}  // namespace score::scout::slurm
