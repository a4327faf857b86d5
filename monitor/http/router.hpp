#pragma once
// Checks of a request, all before anything happens, in the order of docs/reference/stream.md.
// Pure, so that the fuzzer and the permission tests need no socket.

#include "base/result.hpp"
#include "monitor/http/url.hpp"
#include "monitor/http/web_login.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace score::monitor {

// The fields of an HTTP request that we use. Absent headers are empty.
struct Request {
  std::string method, target;
  std::string host, origin, cookie, csrf, authorization, content_type, if_none_match;
  std::optional<WebUser> remote;  // as named by the trusted proxy
  bool is_upgrade = false;        // to a WebSocket
  std::string body;
};

enum class Endpoint : std::uint8_t {
  Page,
  Snapshot,
  Stream,
  WebSocket,
  Session,
  Trace,
  Admin,
  Login,        // by POST
  LoginPage,    // sends the token on: it stands behind the address's "#", which no server sees
  LoginScript,  // ... does that
  Metrics,
};

struct Routed {
  Endpoint endpoint = Endpoint::Page;
  Target target;
  std::optional<WebSession> session;  // none: a viewer
  bool is_head = false;               // headers only
};

struct Refusal {
  int status = 400;
  std::string text;   // one line
  std::string allow;  // of a 405
};

// The addresses of this server.
struct DoorRules {
  std::vector<std::string> hosts;    // that Host may name, with port, lower case
  std::vector<std::string> origins;  // of our own pages: scheme, name and port, lower case
  std::string scheme = "http";
  bool needs_login = false;   // off loopback
  bool is_elsewhere = false;  // nothing is done here but /metrics: no login is needed to hear where
  std::string token;          // of Authorization: Bearer; empty: none
  std::string cookie_name = "scored";
  std::string public_host;  // of a proxy that speaks https; empty: none
};

// The login and its time; sessions are looked up, nothing is changed.
[[nodiscard]] std::variant<Routed, Refusal> route(const Request& request, const DoorRules& rules,
                                                  WebLogin& logins, TimePoint now);

// For Set-Cookie after a login. Only for https where the request came that way: by our own TLS, or
// for the public name, which is only there behind https. No header of the request says so.
[[nodiscard]] std::string login_cookie(const std::string& cookie, std::string_view host,
                                       const DoorRules& rules);

// Of the body of a login: "token=T". Empty: it is not one.
[[nodiscard]] std::string_view login_token(std::string_view body);

// The value of one cookie in a Cookie header; empty: not there.
[[nodiscard]] std::string_view find_cookie(std::string_view header, std::string_view name);

// Whether they are equal, in constant time.
[[nodiscard]] bool equal_secrets(std::string_view a, std::string_view b);

}  // namespace score::monitor
