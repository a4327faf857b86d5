// This fuzz target parses batch scripts as scbatch does: directives in our form and in Slurm's.
#include "base/assert.hpp"
#include "scout/batch/script.hpp"
#include "scout/batch/shell_words.hpp"
#include "scout/batch/slurm_options.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using namespace score::scout;

void read(std::string_view text) {
  const auto options = read_script(text);
  if (!options) {
    SCORE_ASSERT(!options.error().context().empty());
    return;
  }
  std::size_t before = 0;
  for (const auto& line : options->lines) {
    SCORE_ASSERT(line.number > before && !line.words.empty());
    before = line.number;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read(text);
  const auto words = shell_words(text);
  if (!words) return 0;
  if (const auto translated = from_slurm(*words)) {
    for (const auto& word : translated->words) SCORE_ASSERT(word.starts_with("--"));
  }
  return 0;
}
