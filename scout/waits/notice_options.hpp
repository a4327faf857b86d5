// Adds the options of notices: --mail-type and --mail-user.
#pragma once

#include "base/result.hpp"
#include "proto/client.pb.h"

#include <string>

namespace CLI {
class App;
}

namespace score::scout {

struct NoticeOptions {
  std::string mail_types;
  std::string mail_user;
};

void add_notice_options(CLI::App& app, NoticeOptions& options);

// Fills submit.notices; without --mail-type no mail is requested. Errors: Malformed and TooLarge,
// which name the option.
Status fill_notices(const NoticeOptions& options, wire::Submit& submit);

// Printed when the head cannot do what --mail-type asks for.
inline constexpr const char* kNoMail =
    "ignoring --mail-type: this cluster sends no mail; an administrator can set [notify] sendmail";

}  // namespace score::scout
