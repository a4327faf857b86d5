#include "monitor/http/router.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cctype>

namespace score::monitor {

namespace {

constexpr std::string_view kApi = "/api/v1/";
constexpr std::string_view kAdmin = "/api/v1/admin/";

struct Path {
  std::string_view path;
  Endpoint endpoint;
};

constexpr Path kPaths[] = {
    {"/api/v1/snapshot", Endpoint::Snapshot}, {"/api/v1/stream", Endpoint::Stream},
    {"/api/v1/ws", Endpoint::WebSocket},      {"/api/v1/session", Endpoint::Session},
    {"/api/v1/trace", Endpoint::Trace},       {"/login", Endpoint::LoginPage},
    {"/login.js", Endpoint::LoginScript},     {"/metrics", Endpoint::Metrics},
    {"/api/v1/history", Endpoint::History},
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::optional<Endpoint> endpoint_of(std::string_view path) {
  for (const Path& known : kPaths) {
    if (known.path == path) return known.endpoint;
  }
  if (path.starts_with(kAdmin)) return Endpoint::Admin;
  if (path.starts_with(kApi)) return Endpoint::Api;
  if (path.starts_with("/api/")) return std::nullopt;
  return Endpoint::Page;
}

bool is_our_host(std::string_view host, const AccessRules& rules) {
  return std::find(rules.hosts.begin(), rules.hosts.end(), lower(host)) != rules.hosts.end();
}

bool is_our_origin(std::string_view origin, const AccessRules& rules) {
  return std::find(rules.origins.begin(), rules.origins.end(), lower(origin)) !=
         rules.origins.end();
}

bool only_reads(const Request& request) {
  return request.method == "GET" || request.method == "HEAD";
}

HttpError refuse_call(int status, std::string text) {
  return {.status = status, .text = std::move(text), .allow = {}, .is_api = true};
}

bool is_json(const Request& request) {
  const std::string type =
      lower(trim(request.content_type.substr(0, request.content_type.find(';'))));
  return type == "application/json";
}

std::optional<HttpError> check_api_method(const Request& request) {
  constexpr std::string_view kMethods[] = {"GET", "HEAD", "POST", "PATCH", "DELETE"};
  if (std::ranges::find(kMethods, request.method) != std::end(kMethods)) return std::nullopt;
  HttpError refused = refuse_call(405, "only GET, HEAD, POST, PATCH and DELETE");
  refused.allow = "GET, HEAD, POST, PATCH, DELETE";
  return refused;
}

// A browser sends the cookie of a session with every request, so a change needs the page's secret,
// too. A personal token is sent only by who knows it.
std::optional<HttpError> check_call(const Request& request, const AccessRules& rules,
                                    Routed& routed) {
  if (!rules.has_api) {
    return refuse_call(404, "this server has no API for programs; [monitor] api switches it on");
  }
  if (!request.origin.empty() && !is_our_origin(request.origin, rules)) {
    return refuse_call(403, "this Origin may not");
  }
  if (request.caller) {
    routed.caller = request.caller;
  } else if (routed.session) {
    if (!only_reads(request) && !equal_secrets(request.csrf, routed.session->csrf)) {
      return refuse_call(403, "the header X-Scored-Csrf is missing or wrong");
    }
    routed.caller = ApiCaller{routed.session->who, true};
  } else {
    return refuse_call(401, "send a personal token (score token new) in the header Authorization");
  }
  return std::nullopt;
}

// Checks what holds for every caller.
std::optional<HttpError> check_change(const Request& request, const ApiCaller& caller) {
  if (only_reads(request)) return std::nullopt;
  if (!caller.may_change) return refuse_call(403, "this token may only read");
  if (!request.body.empty() && !is_json(request)) {
    return refuse_call(415, "the body must be application/json");
  }
  return std::nullopt;
}

std::optional<HttpError> check_method(const Request& request, Endpoint endpoint) {
  if (endpoint == Endpoint::Admin || endpoint == Endpoint::Login) {
    if (request.method == "POST") return std::nullopt;
    return HttpError{405, "only POST", "POST"};
  }
  const bool may_be_head = endpoint != Endpoint::Stream && endpoint != Endpoint::WebSocket;
  if (request.method == "GET" || (may_be_head && request.method == "HEAD")) return std::nullopt;
  return HttpError{405, "only GET", may_be_head ? "GET, HEAD" : "GET"};
}

bool has_token(const Request& request, const AccessRules& rules) {
  return !rules.token.empty() && equal_secrets(bearer_token(request.authorization), rules.token);
}

bool is_of_login(Endpoint endpoint) {
  return endpoint == Endpoint::Login || endpoint == Endpoint::LoginPage ||
         endpoint == Endpoint::LoginScript;
}

// A token in an address would be written to logs and histories, and a program that follows links
// would use it up.
std::optional<HttpError> check_login(const Request& request, Endpoint& endpoint,
                                     const RequestTarget& target) {
  if (!is_of_login(endpoint)) return std::nullopt;
  if (endpoint == Endpoint::LoginPage && request.method == "POST") endpoint = Endpoint::Login;
  if (target.query.empty()) return std::nullopt;
  return HttpError{405, "log in by POST, with the address as scadm web-login prints it", "POST"};
}

// Cross-site requests carry an Origin that is not ours; tools send none.
std::optional<HttpError> check_origin(const Request& request, const AccessRules& rules) {
  if (request.origin.empty() || is_our_origin(request.origin, rules)) return std::nullopt;
  return HttpError{403, "this Origin may not", {}};
}

std::optional<HttpError> check_post(const Request& request, const Routed& routed,
                                    const AccessRules& rules) {
  if (auto refused = check_origin(request, rules)) return refused;
  if (!routed.session) return HttpError{401, "log in with the address of scadm web-login", {}};
  if (!equal_secrets(request.csrf, routed.session->csrf)) {
    return HttpError{403, "the header X-Scored-Csrf is missing or wrong", {}};
  }
  if (!is_json(request)) return HttpError{415, "the body must be application/json", {}};
  return std::nullopt;
}

}  // namespace

std::string_view bearer_token(std::string_view authorization) {
  constexpr std::string_view kScheme = "Bearer ";
  return authorization.starts_with(kScheme) ? authorization.substr(kScheme.size())
                                            : std::string_view();
}

bool is_api_path(std::string_view path) {
  return endpoint_of(path) == Endpoint::Api;
}

std::variant<Routed, HttpError> route_local(const Request& request) {
  auto target = parse_target(request.target);
  if (!target) return refuse_call(400, "the address has " + target.error().context());
  if (!is_api_path(target->path)) return refuse_call(404, "this socket serves /api/v1/ alone");
  if (auto refused = check_api_method(request)) return *std::move(refused);
  if (auto refused = check_change(request, *request.caller)) return *std::move(refused);
  Routed routed;
  routed.endpoint = Endpoint::Api;
  routed.target = *std::move(target);
  routed.is_head = request.method == "HEAD";
  routed.caller = request.caller;
  return routed;
}

bool equal_secrets(std::string_view a, std::string_view b) {
  unsigned differs = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    differs |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return differs == 0;
}

std::string login_cookie(const std::string& cookie, std::string_view host,
                         const AccessRules& rules) {
  const bool is_public = !rules.public_host.empty() && lower(host) == rules.public_host;
  const bool is_https = rules.scheme == "https" || is_public;
  return rules.cookie_name + "=" + cookie + "; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200" +
         (is_https ? "; Secure" : "");
}

std::string_view login_token(std::string_view body) {
  constexpr std::string_view kName = "token=";
  if (!body.starts_with(kName)) return {};
  return body.substr(kName.size());
}

std::string_view find_cookie(std::string_view header, std::string_view name) {
  for (const auto part : split(header, ';')) {
    const auto trimmed = trim(part);
    const auto equals = trimmed.find('=');
    if (equals != trimmed.npos && trimmed.substr(0, equals) == name) {
      return trimmed.substr(equals + 1);
    }
  }
  return {};
}

std::variant<Routed, HttpError> route(const Request& request, const AccessRules& rules,
                                      WebLogin& logins, TimePoint now) {
  const bool is_api = is_api_path(request.target.substr(0, request.target.find('?')));
  if (request.host.empty()) return HttpError{400, "the header Host is missing", {}, is_api};
  if (!is_our_host(request.host, rules)) return HttpError{421, "this Host is not us", {}, is_api};
  auto target = parse_target(request.target);
  if (!target) return HttpError{400, "the address has " + target.error().context(), {}, is_api};
  auto endpoint = endpoint_of(target->path);
  if (!endpoint) return HttpError{404, "no such path", {}};
  if (auto refused = check_login(request, *endpoint, *target)) return *std::move(refused);
  if (auto refused = *endpoint == Endpoint::Api ? check_api_method(request)
                                                : check_method(request, *endpoint)) {
    return *std::move(refused);
  }
  Routed routed;
  routed.endpoint = *endpoint;
  routed.target = *std::move(target);
  routed.is_head = request.method == "HEAD";
  if (rules.is_elsewhere && *endpoint != Endpoint::Metrics) return routed;
  routed.session = request.remote
                       ? logins.vouched(*request.remote, now)
                       : logins.find(find_cookie(request.cookie, rules.cookie_name), now);
  if (*endpoint == Endpoint::Api) {
    if (auto refused = check_call(request, rules, routed)) return *std::move(refused);
    if (auto refused = check_change(request, *routed.caller)) return *std::move(refused);
    return routed;
  }
  const bool is_let_in =
      !rules.needs_login || routed.session || has_token(request, rules) || is_of_login(*endpoint);
  if (!is_let_in) return HttpError{401, "log in with the address of scadm web-login", {}};
  if (*endpoint == Endpoint::Admin) {
    if (auto refused = check_post(request, routed, rules)) return *std::move(refused);
  }
  if (*endpoint == Endpoint::Login) {
    if (auto refused = check_origin(request, rules)) return *std::move(refused);
  }
  if (*endpoint == Endpoint::WebSocket) {
    if (auto refused = check_origin(request, rules)) return *std::move(refused);
    if (!request.is_upgrade) return HttpError{426, "only as a WebSocket", {}};
  }
  return routed;
}

}  // namespace score::monitor
