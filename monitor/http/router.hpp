#pragma once
// The router checks a request completely before anything happens, in the order of
// docs/reference/stream.md. It is pure, so that the fuzzer and the permission tests need no socket.

#include "base/result.hpp"
#include "monitor/http/api_caller.hpp"
#include "monitor/http/url.hpp"
#include "monitor/http/web_login.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace score::monitor {

// Request holds the fields of an HTTP request that we use. Absent headers are empty.
struct Request {
  std::string method, target;
  std::string host, origin, cookie, csrf, authorization, content_type, if_none_match;
  std::string idempotency_key, if_match, last_event_id;
  std::optional<WebUser> remote;    // as named by the trusted proxy
  std::optional<ApiCaller> caller;  // as proven by a personal token or the socket for programs
  bool is_upgrade = false;          // to a WebSocket
  std::string body;
};

enum class Endpoint : std::uint8_t {
  Page,
  Snapshot,
  Stream,
  WebSocket,
  Session,
  Trace,
  History,
  Admin,
  Login,        // by POST
  LoginPage,    // sends the token on, which stands behind the "#" that no server sees
  LoginScript,  // the script of that page
  Metrics,
  Api,  // requests of programs
};

struct Routed {
  Endpoint endpoint = Endpoint::Page;
  RequestTarget target;
  std::optional<WebSession> session;  // none: a viewer
  std::optional<ApiCaller> caller;    // of a request of the API
  bool is_head = false;               // headers only
};

struct HttpError {
  int status = 400;
  std::string text;     // one line
  std::string allow;    // of a 405
  bool is_api = false;  // answered by a problem document
};

// AccessRules describes the addresses of this server.
struct AccessRules {
  std::vector<std::string> hosts;    // values that Host may have, with port, lower case
  std::vector<std::string> origins;  // of our own pages: scheme, name and port, lower case
  std::string scheme = "http";
  bool needs_login = false;   // off loopback
  bool is_elsewhere = false;  // only /metrics is served: no login is needed for the redirect
  bool has_api = false;       // requests of programs are served
  std::string token;          // of Authorization: Bearer; empty: none
  std::string cookie_name = "scored";
  std::string public_host;  // of a proxy that speaks https; empty: none
};

// Returns the token of "Authorization: Bearer TOKEN"; it is empty if the header is different.
[[nodiscard]] std::string_view bearer_token(std::string_view authorization);

// Returns true if the path belongs to the API for programs.
[[nodiscard]] bool is_api_path(std::string_view path);

// This checks a request that came through the socket for programs, which serves the API alone.
[[nodiscard]] std::variant<Routed, HttpError> route_local(const Request& request);

// Checks the login and its age. Sessions are looked up; nothing is changed.
[[nodiscard]] std::variant<Routed, HttpError> route(const Request& request,
                                                    const AccessRules& rules, WebLogin& logins,
                                                    TimePoint now);

// Returns the Set-Cookie value after a login. It is marked Secure only if the request came over
// https: by our own TLS, or for the public name, which exists only behind https. No header of the
// request is trusted for this.
[[nodiscard]] std::string login_cookie(const std::string& cookie, std::string_view host,
                                       const AccessRules& rules);

// Returns the token in the body of a login, "token=T". It is empty if the body is different.
[[nodiscard]] std::string_view login_token(std::string_view body);

// Returns the value of one cookie in a Cookie header, or "" if it is missing.
[[nodiscard]] std::string_view find_cookie(std::string_view header, std::string_view name);

// Compares the texts in constant time.
[[nodiscard]] bool equal_secrets(std::string_view a, std::string_view b);

}  // namespace score::monitor
