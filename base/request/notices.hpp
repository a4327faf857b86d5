#pragma once
// Defines the kinds of notices about jobs and nodes, their words, and what is accepted as an
// address of mail. Commands and the head share it.

#include "base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace score::inline base {

enum class NoticeKind : std::uint8_t {
  Begin,        // its tasks have started
  End,          // it has ended, in any state
  Fail,         // it has ended, neither completed nor cancelled
  Requeue,      // it lost a node and is restarted from the beginning
  TimeLimit,    // it was ended because it reached a limit of time
  TimeLimit90,  // it has used 90 % of such a limit
  TimeLimit80,
  TimeLimit50,
  NodeDown,  // the head has given up a node
  NodeUp,    // a node that was down is back
};

// NoticeKinds is a set of kinds. Requests and the store keep it as `bits`, so the order of the
// kinds must not change.
struct NoticeKinds {
  std::uint32_t bits = 0;

  [[nodiscard]] bool has(NoticeKind kind) const {
    return ((bits >> static_cast<unsigned>(kind)) & 1U) != 0;
  }

  void add(NoticeKind kind) { bits |= 1U << static_cast<unsigned>(kind); }

  [[nodiscard]] bool empty() const { return bits == 0; }

  friend bool operator==(const NoticeKinds&, const NoticeKinds&) = default;
};

// The bits of all kinds that are about jobs.
inline constexpr std::uint32_t kJobNoticeBits = 0xFF;

// NoticeChoice says which notices somebody wants.
struct NoticeChoice {
  NoticeKinds kinds{};
  bool array_tasks = false;  // of each task of an array, instead of the array as a whole

  friend bool operator==(const NoticeChoice&, const NoticeChoice&) = default;
};

// Returns the kind's name in JSON and in [[notify.webhook]] events: "time_limit_90".
[[nodiscard]] std::string_view name_of(NoticeKind kind);

// Adds what a word of [[notify.webhook]] events means: a name_of() or "array_tasks". Returns false
// for any other word.
[[nodiscard]] bool add_notice_word(std::string_view word, NoticeChoice& choice);

// Parses the value of --mail-type: words in either case, separated by commas. ALL stands for BEGIN,
// END, FAIL and REQUEUE; NONE takes back the words before it. Errors: Malformed, which quotes the
// word and lists all words.
[[nodiscard]] Result<NoticeChoice> parse_mail_types(std::string_view text);

inline constexpr std::size_t kMaxMailAddress = 254;  // bytes; RFC 5321, section 4.5.3.1.3

// Checks one address, such as "alice" or "alice@example.org". It becomes an argument of the mail
// program and a line of a header, so only visible ASCII is accepted, without what separates or
// quotes addresses, and no first character that the mail program takes for an option, a file or a
// program. Errors: Malformed, TooLarge.
[[nodiscard]] Status check_mail_address(std::string_view address);

}  // namespace score::inline base
