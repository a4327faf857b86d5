#include "scout/slurm/slurm_command.hpp"

#include "base/text.hpp"
#include "scout/session/job_filter.hpp"

#include <pwd.h>
#include <unistd.h>

namespace score::scout::slurm {

namespace {

// Programs that read it expect a version of Slurm first; this is the one whose output is followed.
constexpr std::string_view kVersion = "slurm 23.11.0 (scored " SCORE_VERSION ")\n";

constexpr std::size_t kHelpWidth = 78;

std::string help_text(const Invocation& invocation, std::span<const OptionForm> forms,
                      const CommandInfo& info) {
  std::string text = fmt::format("Usage: {} {}\n\nSlurm's {} for Scored: {}.\n\nOptions:\n",
                                 invocation.name, info.usage, invocation.name, info.does);
  std::string line = " ";
  for (const OptionForm& form : forms) {
    std::string word = " ";
    if (form.letter != 0) word += fmt::format("-{},", form.letter);
    word += fmt::format("--{}", form.name);
    if (form.takes == Takes::Value) word += "=X";
    if (form.takes == Takes::Maybe) word += "[=X]";
    if (line.size() + word.size() > kHelpWidth) {
      text += line + "\n";
      line = " ";
    }
    line += word;
  }
  return text + line + "\n\nThe guide lists what differs: score-slurm-commands(1).\n";
}

}  // namespace

ReadLine read_line(const Invocation& invocation, std::span<const OptionForm> forms,
                   const CommandInfo& info) {
  std::vector<OptionForm> all(forms.begin(), forms.end());
  all.push_back({"help"});
  all.push_back({"usage"});
  all.push_back({"version", 'V'});
  auto read = read_options(all, invocation.args, info.order);
  if (!read) return {{}, print_failure(invocation, read.error())};
  if (read->has("help") || read->has("usage")) {
    print(help_text(invocation, all, info));
    return {{}, kExitOk};
  }
  if (read->has("version")) {
    print(kVersion);
    return {{}, kExitOk};
  }
  return {std::move(*read), std::nullopt};
}

int print_failure(const Invocation& invocation, std::string_view text) {
  tell(fmt::format("{}: error: {}", invocation.name, text));
  return kExitFailed;
}

int print_failure(const Invocation& invocation, const Error& error) {
  return print_failure(invocation, escape_terminal(words_of(error), 4096));
}

int ask_head(const Invocation& invocation, const std::function<Result<int>(HeadLink&)>& work) {
  Invocation about = invocation;
  about.name += ": error";
  const int code = with_head(about, {}, work, kReadsOnly);
  return code == kExitError ? kExitFailed : code;
}

WordSet word_set(std::string_view list) {
  return words_of_lists({std::string(list)});
}

std::string own_user() {
  const passwd* user = getpwuid(geteuid());
  return user != nullptr ? user->pw_name : std::to_string(geteuid());
}

}  // namespace score::scout::slurm
