#include "base/request/notices.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace score::inline base {

namespace {

constexpr std::array<std::string_view, 10> kNames = {
    "begin",         "end",           "fail",          "requeue",   "time_limit",
    "time_limit_90", "time_limit_80", "time_limit_50", "node_down", "node_up"};
constexpr std::size_t kJobNames = 8;
constexpr std::string_view kArrayTasks = "array_tasks";

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& letter : out) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return out;
}

// Returns false for a word that is not one of --mail-type.
bool add_mail_type(const std::string& word, NoticeChoice& choice) {
  if (word == "none") {
    choice = NoticeChoice();
    return true;
  }
  if (word == "all") {
    for (const auto kind :
         {NoticeKind::Begin, NoticeKind::End, NoticeKind::Fail, NoticeKind::Requeue}) {
      choice.kinds.add(kind);
    }
    return true;
  }
  NoticeChoice wider = choice;
  if (!add_notice_word(word, wider) || (wider.kinds.bits & ~kJobNoticeBits) != 0) return false;
  choice = wider;
  return true;
}

}  // namespace

std::string_view name_of(NoticeKind kind) {
  return kNames.at(static_cast<std::size_t>(kind));
}

bool add_notice_word(std::string_view word, NoticeChoice& choice) {
  if (word == kArrayTasks) {
    choice.array_tasks = true;
    return true;
  }
  const auto* const found = std::ranges::find(kNames, word);
  if (found == kNames.end()) return false;
  choice.kinds.add(static_cast<NoticeKind>(found - kNames.begin()));
  return true;
}

Result<NoticeChoice> parse_mail_types(std::string_view text) {
  NoticeChoice choice;
  for (const auto part : split(text, ',')) {
    const auto word = trim(part);
    if (add_mail_type(lower(word), choice)) continue;
    return fail(Errc::Malformed,
                "'{}' is not one of BEGIN, END, FAIL, REQUEUE, TIME_LIMIT, "
                "TIME_LIMIT_90, TIME_LIMIT_80, TIME_LIMIT_50, ALL, NONE, ARRAY_TASKS",
                escape_terminal(word, 80));
  }
  return choice;
}

Status check_mail_address(std::string_view address) {
  constexpr std::string_view kForbidden = " \"(),:;<>[\\]";
  constexpr std::string_view kForbiddenFirst = "-|/@";
  const auto bad = [&](std::string_view why) {
    return fail(Errc::Malformed, "'{}' is not an address of mail: {}", escape_terminal(address, 80),
                why);
  };
  if (address.empty()) return bad("it is empty");
  if (address.size() > kMaxMailAddress) {
    return fail(Errc::TooLarge, "an address of mail has at most {} characters, not {}",
                kMaxMailAddress, address.size());
  }
  const auto is_visible = [](char letter) { return letter > ' ' && letter < 0x7F; };
  const bool is_plain = std::ranges::all_of(address, [&](char letter) {
    return is_visible(letter) && kForbidden.find(letter) == kForbidden.npos;
  });
  if (!is_plain) return bad("give one address, such as alice or alice@example.org");
  if (kForbiddenFirst.find(address.front()) != kForbiddenFirst.npos) {
    return bad("it cannot begin with -, |, / or @");
  }
  return {};
}

}  // namespace score::inline base
