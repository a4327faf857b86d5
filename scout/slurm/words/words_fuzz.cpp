// This fuzz target reads command lines and formats of Slurm's commands, and prints a job with them.
#include "base/assert.hpp"
#include "base/text.hpp"
#include "scout/slurm/words/account_fields.hpp"
#include "scout/slurm/words/format.hpp"
#include "scout/slurm/words/job_words.hpp"
#include "scout/slurm/words/queue_fields.hpp"
#include "scout/slurm/words/submit_words.hpp"
#include "scout/slurm/words/update_words.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using namespace score::scout::slurm;

void read_line(std::string_view text) {
  std::vector<std::string> args;
  for (const auto word : score::split(text, ' ')) args.emplace_back(word);
  const auto update = read_update(args);
  if (!update) SCORE_ASSERT(!update.error().context().empty());
  const auto forms = submit_forms({{"wrap", 0, Takes::Value}});
  const auto line = read_options(forms, args, Order::OptionsFirst);
  if (!line) {
    SCORE_ASSERT(!line.error().context().empty());
    return;
  }
  SCORE_ASSERT(line->options.size() + line->words.size() <= text.size() + 1);
  if (const auto ours = translate(line->options, {"wrap"})) {
    for (const auto& word : ours->words) SCORE_ASSERT(word.starts_with("--"));
  }
}

// A row is one line, whatever the format and the job's name are.
void print_job(std::string_view text) {
  score::wire::JobStatus job;
  job.set_job(7);
  job.set_name(std::string(text));
  for (const bool by_letter : {true, false}) {
    auto columns = by_letter ? read_letters(text) : read_names(text);
    if (!columns) continue;
    const auto chosen = choose_fields(queue_fields(), std::move(*columns), by_letter);
    if (chosen) SCORE_ASSERT(item_line(*chosen, job).ends_with('\n'));
  }
  if (const auto columns = read_account_columns(text)) {
    SCORE_ASSERT(account_text(*columns, {&job}, AccountStyle::Table, "|").ends_with('\n'));
  }
  (void)is_state_word(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_line(text);
  print_job(text);
  return 0;
}
