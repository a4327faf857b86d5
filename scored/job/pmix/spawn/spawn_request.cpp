#include "scored/job/pmix/spawn/spawn_request.hpp"

#include "base/limits.hpp"

#include <pmix.h>

#include <cstring>
#include <string>

namespace score::pmix {

namespace {

namespace limits = base::limits;

// Adds each word of a list that ends with a null pointer, and counts down `left`. Returns false if
// there are more words than that.
template <class Add>
bool each_word(char* const* words, std::size_t& left, Add add) {
  for (; words != nullptr && *words != nullptr; ++words) {
    if (left == 0) return false;
    --left;
    add(*words);
  }
  return true;
}

const char* directory_in(std::span<const pmix_info_t> infos) {
  for (const auto& info : infos) {
    const bool is_directory = PMIX_CHECK_KEY(&info, PMIX_WDIR);
    if (is_directory && info.value.type == PMIX_STRING) return info.value.data.string;
  }
  return nullptr;
}

}  // namespace

std::optional<std::vector<wire::Program>> programs_of(std::span<const pmix_info_t> infos,
                                                      std::span<const pmix_app_t> apps) {
  if (apps.empty() || apps.size() > limits::kMaxSpawnWords) return std::nullopt;
  std::vector<wire::Program> programs;
  std::size_t left = limits::kMaxSpawnWords;
  for (const auto& app : apps) {
    wire::Program program;
    const bool has_command = app.cmd != nullptr && *app.cmd != '\0';
    const bool is_sized =
        app.maxprocs > 0 && static_cast<std::uint32_t>(app.maxprocs) <= limits::kMaxTasksPerJob;
    if (!has_command || !is_sized) return std::nullopt;
    program.set_tasks(static_cast<std::uint32_t>(app.maxprocs));
    const auto add_word = [&](const char* word) { program.add_argv(word); };
    if (!each_word(app.argv, left, add_word)) return std::nullopt;
    // Some clients name the program first; others leave that to the server.
    if (program.argv().empty()) program.add_argv("");
    program.set_argv(0, app.cmd);
    const auto add_variable = [&](const char* variable) {
      if (std::strchr(variable, '=') != nullptr) program.add_env(variable);
    };
    if (!each_word(app.env, left, add_variable)) return std::nullopt;
    const char* directory = app.cwd;
    if (directory == nullptr) directory = directory_in({app.info, app.ninfo});
    if (directory == nullptr) directory = directory_in(infos);
    if (directory != nullptr) program.set_directory(directory);
    programs.push_back(std::move(program));
  }
  return programs;
}

}  // namespace score::pmix
