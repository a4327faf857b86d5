// This fuzz target tests the input and output of commands. It parses SCore's option form, signals
// and the export rule. It prints text of other users: JSON must be free of control characters, and
// labelled output must count every byte.
#include "base/assert.hpp"
#include "base/text/json_writer.hpp"
#include "scout/run/environment.hpp"
#include "scout/run/output_writer.hpp"
#include "scout/run/score_options.hpp"
#include "scout/session/text_table.hpp"
#include "scout/session/words.hpp"
#include "scout/waits/wait_options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using namespace score::scout;

void read_as_options(std::string_view text) {
  CLI::App app;
  std::uint32_t nodes = 0;
  app.add_option("-N,--nodes", nodes);
  std::vector<std::string> words;
  for (const auto word : score::split(text, ' ')) words.emplace_back(word);
  const auto split = split_command(app, words, text.substr(0, text.find('\n')));
  if (split) SCORE_ASSERT(split->command.size() <= words.size());
  if (const auto group = rewrite_score_group(app, text)) {
    for (const auto& word : *group) SCORE_ASSERT(word.starts_with("--"));
  }
  (void)parse_signal(text);
  (void)parse_queue(text);
  if (const auto range = parse_node_range(text)) {
    SCORE_ASSERT(range->least > 0 && (range->most == 0 || range->least <= range->most));
  }
  score::wire::JobConditions conditions;
  (void)parse_after(text, conditions);
  (void)parse_ahead(text, score::WallTime(score::Duration(1'795'435'200'000'000'000)));
  if (const auto job = parse_job_word(text)) SCORE_ASSERT(job->job > 0);
  (void)exported_environment(text, false);
}

void print(std::string_view text) {
  score::JsonWriter json;
  json.value(text);
  const auto& shown = json.text();
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  SCORE_ASSERT(std::none_of(shown.begin(), shown.end(), is_control));
  for (const auto style : {OutputStyle::Plain, OutputStyle::Labelled, OutputStyle::Gathered}) {
    OutputWriter output(style);
    output.take(0, false, text);
    output.take(1, true, text, text.size() / 2);
    SCORE_ASSERT(output.received() == 2 * text.size());
    output.finish({"node00"}, false);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_as_options(text);
  print(text);
  return 0;
}
