#include "monitor/http/http_message.hpp"

#include "base/text/json_writer.hpp"
#include "monitor/http/api.hpp"

#include <boost/beast/core/error.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/websocket/rfc6455.hpp>

#include <cctype>
#include <utility>

namespace score::monitor {

namespace {

std::string field(const http::request<http::string_body>& message, http::field name) {
  return std::string(message[name]);
}

}  // namespace

Request request_of(const http::request<http::string_body>& message) {
  Request request;
  request.method = message.method_string();
  request.target = message.target();
  // A header that decides something must occur only once; if it is repeated, none of them counts.
  const auto only = [&](http::field name) {
    return message.count(name) == 1 ? field(message, name) : std::string();
  };
  request.host = only(http::field::host);
  request.origin =
      message.count(http::field::origin) > 1 ? "?" : field(message, http::field::origin);
  request.cookie = only(http::field::cookie);
  request.authorization = only(http::field::authorization);
  request.content_type = only(http::field::content_type);
  request.if_none_match = field(message, http::field::if_none_match);
  request.csrf = std::string(message["X-Scored-Csrf"]);
  request.idempotency_key = std::string(message["Idempotency-Key"]);
  request.if_match = field(message, http::field::if_match);
  request.last_event_id = std::string(message["Last-Event-ID"]);
  request.is_upgrade = beast::websocket::is_upgrade(message);
  request.body = message.body();
  return request;
}

int status_of(const beast::error_code& failed, bool has_target) {
  if (failed == http::error::header_limit) return has_target ? 431 : 414;
  if (failed == http::error::body_limit) return 413;
  if (failed == beast::error::timeout) return 408;
  if (failed == http::error::end_of_stream || failed == http::error::partial_message) return 0;
  if (failed.category() == make_error_code(http::error::bad_method).category()) return 400;
  return 0;
}

Response make_response(int status, std::string_view type, std::string body) {
  Response response(static_cast<http::status>(status), 11);
  response.set(http::field::server, "scored");
  if (!type.empty()) response.set(http::field::content_type, type);
  response.set(http::field::cache_control, "no-store");
  response.set("Content-Security-Policy",
               "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
               "object-src 'none'");
  response.set("X-Content-Type-Options", "nosniff");
  response.set("X-Frame-Options", "DENY");
  response.set("Referrer-Policy", "no-referrer");
  response.set("Cross-Origin-Opener-Policy", "same-origin");
  response.set("Cross-Origin-Resource-Policy", "same-origin");
  response.set("Permissions-Policy", "camera=(), geolocation=(), microphone=()");
  response.body() = std::move(body);
  return response;
}

std::string error_body(std::string_view text) {
  JsonWriter json(JsonWriter::Layout::Line);
  json.begin_object().field("ok", false).field("error", text).end_object();
  return json.take() + "\n";
}

std::string problem_document(int status, std::string_view text, std::string_view field) {
  const auto reason = http::obsolete_reason(static_cast<http::status>(status));
  const std::string_view title(reason.data(), reason.size());
  std::string code(title);
  for (char& c : code) {
    c = c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  JsonWriter json(JsonWriter::Layout::Line);
  json.begin_object().field("type", "about:blank").field("title", title).field("status", status);
  json.field("detail", text).field("code", code).field("message", text);
  if (!field.empty()) json.field("field", field);
  return json.end_object().take() + "\n";
}

Response make_refusal(const HttpError& refusal) {
  Response response =
      refusal.is_api ? make_response(refusal.status, "application/problem+json",
                                     problem_document(refusal.status, refusal.text))
                     : make_response(refusal.status, "application/json", error_body(refusal.text));
  if (refusal.status == 401 && refusal.is_api) {
    response.set(http::field::www_authenticate, "Bearer");
  }
  if (!refusal.allow.empty()) response.set(http::field::allow, refusal.allow);
  if (refusal.status == 426) response.set(http::field::upgrade, "websocket");
  return response;
}

namespace {

// The page is reloaded regularly, because this daemon may soon be the one that shows the cluster.
std::string waiting_page(std::string_view text) {
  std::string page =
      "<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content=5>"
      "<title>Scored</title><p>";
  for (const char c : text) {
    if (c == '<') {
      page += "&lt;";
    } else if (c == '&') {
      page += "&amp;";
    } else {
      page += c;
    }
  }
  return page + "</p></html>\n";
}

}  // namespace

Response make_elsewhere(const Elsewhere& where, const Request& request, Endpoint endpoint) {
  const bool only_reads = request.method == "GET" || request.method == "HEAD";
  if (only_reads && !request.is_upgrade && !where.url.empty()) {
    Response response = make_response(307, "text/plain; charset=utf-8", where.text + "\n");
    response.set(http::field::location, where.url + request.target);
    return response;
  }
  const bool is_page = endpoint == Endpoint::Page || endpoint == Endpoint::LoginPage;
  Response response = is_page
                          ? make_response(503, "text/html; charset=utf-8", waiting_page(where.text))
                          : make_response(503, "application/json", error_body(where.text));
  response.set(http::field::retry_after, "5");
  return response;
}

int status_of(const Error& error) {
  if (error.is(Errc::Malformed) || error.is(Errc::TooLarge)) return 400;
  if (error.is(Errc::Denied)) return 403;
  if (error.is(Errc::NotFound)) return 404;
  if (error.is(Errc::Busy)) return 503;
  return 409;
}

}  // namespace score::monitor
