// score token makes, lists and revokes the personal tokens with which programs use the HTTP API.
#include "base/text/json_writer.hpp"
#include "scout/commands/commands.hpp"
#include "scout/session/session.hpp"
#include "scout/session/text_table.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>

namespace score::scout {

namespace {

using wire::TokenState;

constexpr const char* kTokenFields = "token,name,scope,expires";

struct TokenOptions {
  CommonOptions common;
  std::string name;
  double days = 30;
  std::string scope = "submit";
  std::uint64_t token = 0;
};

std::string scope_of(const TokenState& token) {
  return token.only_reads() ? "read" : "submit";
}

const std::vector<TableColumn<TokenState>>& token_columns() {
  static const std::vector<TableColumn<TokenState>> columns = {
      {"token", "TOKEN", Align::Right,
       [](const TokenState& t) { return std::to_string(t.token()); }},
      {"name", "NAME", Align::Left, [](const TokenState& t) { return t.name(); }},
      {"scope", "SCOPE", Align::Left, scope_of},
      {"expires", "EXPIRES", Align::Left,
       [](const TokenState& t) { return local_time(t.expires_wall_ns()); }},
  };
  return columns;
}

std::string tokens_json(const wire::TokenList& list) {
  JsonWriter json;
  json.begin_object().field("schema", "scored.tokens/1").key("tokens").begin_array();
  for (const auto& token : list.tokens()) {
    json.begin_object().field("token", token.token()).field("name", token.name());
    json.field("scope", scope_of(token));
    write_moment(json, "expires_unix_s", token.expires_wall_ns());
    json.end_object();
  }
  json.end_array();
  if (!list.secret().empty()) json.field("secret", list.secret());
  return json.end_object().take() + "\n";
}

Result<int> show(const TokenOptions& options, const wire::TokenList& list) {
  if (options.common.json) {
    print(tokens_json(list));
  } else if (!list.secret().empty()) {
    print(list.secret() + "\n");
  } else {
    const auto columns = choose_columns(token_columns(), kTokenFields);
    if (!columns) return columns.error();
    print(make_table(*columns, list.tokens()).to_text(table_style(options.common)));
  }
  return kExitOk;
}

wire::ManageTokens message_of(const CLI::App& app, const TokenOptions& options) {
  wire::ManageTokens message;
  if (app.got_subcommand("new")) {
    constexpr double kDayNs = 86'400e9;
    message.set_what(wire::ManageTokens::NEW);
    message.set_name(options.name);
    message.set_lifetime_ns(static_cast<std::int64_t>(options.days * kDayNs));
    message.set_only_reads(options.scope == "read");
  } else if (app.got_subcommand("revoke")) {
    message.set_what(wire::ManageTokens::REVOKE);
    message.set_token(options.token);
  }
  return message;
}

}  // namespace

int token_main(const Invocation& invocation) {
  TokenOptions options;
  CLI::App app;
  describe(app, invocation, "Manages your personal tokens, with which programs use the HTTP API");
  add_server_option(app, options.common);
  add_json_option(app, options.common);
  app.require_subcommand(1);
  app.fallthrough();
  auto* made = app.add_subcommand("new", "Make a token and print it; it is shown only once");
  made->add_option("name", options.name, "Name for the list, such as notebook")
      ->type_name("NAME")
      ->required();
  made->add_option("--days", options.days, "Days until it expires, at most 366 (30)")
      ->type_name("N")
      ->check(CLI::Range(0.001, 366.0));
  made->add_option("--scope", options.scope, "Scope of the token: read or submit (submit)")
      ->type_name("SCOPE")
      ->check(CLI::IsMember({"read", "submit"}));
  app.add_subcommand("list", "List your tokens");
  auto* revoked = app.add_subcommand("revoke", "Revoke a token at once");
  revoked->add_option("token", options.token, "Its number in the list")
      ->type_name("NUMBER")
      ->required();
  if (const auto code = parse(app, invocation)) return *code;
  const auto work = [&](HeadLink& head) -> Result<int> {
    auto list = head.ask<wire::TokenList>(message_of(app, options));
    if (!list) return list.error();
    return show(options, *list);
  };
  return with_head(invocation, options.common, work);
}

}  // namespace score::scout
