#pragma once
// Makes the texts of notices: mail for people, JSON for programs (schema scored.notice/1). The
// texts are bounded, and text of users is escaped, so that it can neither add a header nor change a
// terminal.

#include "base/request/notices.hpp"
#include "base/time.hpp"
#include "proto/client.pb.h"
#include "scored/head/notices/notice.hpp"

#include <string>
#include <string_view>

namespace score::head {

struct NoticeHead {
  NoticeKind kind = NoticeKind::End;
  std::string id;
  std::string cluster;
  WallTime at{};
};

struct MailHead {
  std::string from;  // empty: no such line
  std::string to;
};

// Returns the message as sendmail reads it: header lines, an empty line, the text.
[[nodiscard]] std::string mail_of(const NoticeHead& head, const MailHead& mail,
                                  const wire::JobStatus& job);

// Returns one JSON document in one line. `address` is that of mail; empty: none.
[[nodiscard]] std::string json_of(const NoticeHead& head, const wire::JobStatus& job,
                                  const std::string& address);
[[nodiscard]] std::string json_of(const NoticeHead& head, const NodeHappening& node);

// Returns the text as the value of a header line: in RFC 2047's form if it is not visible ASCII.
[[nodiscard]] std::string header_text(std::string_view text);

}  // namespace score::head
