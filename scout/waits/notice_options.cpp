#include "scout/waits/notice_options.hpp"

#include "base/request/notices.hpp"

#include <CLI/CLI.hpp>

namespace score::scout {

namespace {

// These return the error in the value; empty if there is none. The parser names the option.
std::string check_types(const std::string& text) {
  const auto choice = parse_mail_types(text);
  return choice ? std::string() : choice.error().context();
}

std::string check_user(const std::string& text) {
  const auto sound = check_mail_address(text);
  return sound ? std::string() : sound.error().context();
}

}  // namespace

void add_notice_options(CLI::App& app, NoticeOptions& options) {
  app.add_option("--mail-type", options.mail_types,
                 "Send mail about these events: BEGIN, END, FAIL, REQUEUE, TIME_LIMIT, "
                 "TIME_LIMIT_90, TIME_LIMIT_80, TIME_LIMIT_50, ALL (the first four), NONE; "
                 "ARRAY_TASKS: about each task of an array")
      ->type_name("TYPE[,TYPE...]")
      ->check(check_types);
  app.add_option("--mail-user", options.mail_user, "Where to send mail; default: your user name")
      ->type_name("ADDRESS")
      ->check(check_user);
}

Status fill_notices(const NoticeOptions& options, wire::Submit& submit) {
  if (options.mail_types.empty()) return {};
  const auto choice = parse_mail_types(options.mail_types);
  if (!choice) return choice.error().with_context("--mail-type");
  if (!options.mail_user.empty()) {
    if (auto sound = check_mail_address(options.mail_user); !sound) {
      return sound.error().with_context("--mail-user");
    }
  }
  if (choice->kinds.empty()) return {};
  wire::NoticeRequest& notices = *submit.mutable_notices();
  notices.set_kinds(choice->kinds.bits);
  notices.set_array_tasks(choice->array_tasks);
  notices.set_address(options.mail_user);
  return {};
}

}  // namespace score::scout
