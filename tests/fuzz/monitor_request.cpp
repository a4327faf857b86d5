// This fuzz target parses bytes of a web client as the server does, and routes them with the
// secrets of a real session. The result must be a decision that follows the rules.

#include "base/assert.hpp"
#include "monitor/http/http_message.hpp"
#include "monitor/model/action.hpp"
#include "monitor/model/viewer_options.hpp"

#include <boost/beast/http/parser.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using namespace score::monitor;

std::optional<Request> parsed(std::string_view bytes) {
  http::request_parser<http::string_body> parser;
  parser.eager(true);
  parser.header_limit(kMaxHeaderBytes);
  parser.body_limit(kMaxBodyBytes);
  beast::error_code failed;
  const score::asio::const_buffer buffer(bytes.data(), bytes.size());
  parser.put(buffer, failed);
  if (failed) {
    (void)status_of(failed, !parser.get().target().empty());
    return std::nullopt;
  }
  if (!parser.is_done()) return std::nullopt;
  return request_of(parser.get());
}

void check(const Request& request, const AccessRules& rules, WebLogin& logins) {
  const auto routed = route(request, rules, logins, score::TimePoint(score::Duration(1)));
  if (const auto* refusal = std::get_if<HttpError>(&routed)) {
    SCORE_ASSERT(refusal->status >= 400 && refusal->status < 500);
    return;
  }
  const Routed& may = std::get<Routed>(routed);
  SCORE_ASSERT(may.target.path.starts_with('/'));
  SCORE_ASSERT(may.target.path.find("..") == std::string::npos ||
               may.target.path.find("/../") == std::string::npos);
  SCORE_ASSERT(may.endpoint != Endpoint::Admin || may.session.has_value());
  if (may.endpoint == Endpoint::Admin) {
    (void)parse_action(may.target.path.substr(may.target.path.rfind('/') + 1), request.body);
  }
  (void)read_query(may.target.query, ViewerOptions());
}

// Checks a daemon that only refers to the one that shows the cluster: a redirect must lead only
// there.
void check_elsewhere(const Request& request, AccessRules rules, WebLogin& logins) {
  rules.is_elsewhere = true;
  const auto routed = route(request, rules, logins, score::TimePoint(score::Duration(1)));
  const auto* may = std::get_if<Routed>(&routed);
  if (may == nullptr || may->endpoint == Endpoint::Metrics) return;
  const Response response = make_elsewhere({"http://b:1", "b is <there>"}, request, may->endpoint);
  const std::string_view place = response[http::field::location];
  SCORE_ASSERT(response.result_int() == (place.empty() ? 503U : 307U));
  SCORE_ASSERT(place.empty() || (place.starts_with("http://b:1/") && place.size() > 10));
  for (const char c : place) SCORE_ASSERT(static_cast<unsigned char>(c) > ' ');
  SCORE_ASSERT(response.body().find("<there>") == std::string::npos || !place.empty() ||
               response[http::field::content_type].starts_with("application/json"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto request = parsed(bytes);
  if (!request) return 0;
  WebLogin logins([] { return std::string("s"); });
  const auto token = logins.offer({score::UserId(1), "u"}, score::TimePoint());
  (void)logins.redeem(*token, score::TimePoint());
  AccessRules rules;
  rules.hosts = {"h"};
  rules.origins = {"http://h"};
  check(*request, rules, logins);
  rules.needs_login = true;
  rules.token = "t";
  check(*request, rules, logins);
  check_elsewhere(*request, rules, logins);
  return 0;
}
