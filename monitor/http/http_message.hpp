#pragma once
// Converts between Beast's messages and ours.

#include "base/async/asio.hpp"
#include "base/result.hpp"
#include "monitor/http/router.hpp"
#include "monitor/http/site.hpp"

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include <string>
#include <string_view>

namespace score::monitor {

namespace beast = boost::beast;
namespace http = beast::http;

inline constexpr std::size_t kMaxHeaderBytes = 16 * 1024;
inline constexpr std::size_t kMaxTargetBytes = 4 * 1024;
inline constexpr std::size_t kMaxBodyBytes = 64 * 1024;
inline constexpr std::size_t kMaxCallBytes = 4 * 1024 * 1024;  // of a caller that is known
inline constexpr std::size_t kMaxMessageBytes = 4 * 1024;

using Response = http::response<http::string_body>;

// Returns the fields of a parsed request that we use.
[[nodiscard]] Request request_of(const http::request<http::string_body>& message);
// Returns the status for a request that could not be read, or 0 to close without an answer.
// `has_target` says that its first line was read.
[[nodiscard]] int status_of(const beast::error_code& failed, bool has_target);
// Makes a response with the headers that all answers have.
[[nodiscard]] Response make_response(int status, std::string_view type, std::string body);
[[nodiscard]] Response make_refusal(const HttpError& refusal);
// Redirects browsers and tools to the daemon that shows the cluster, or names that daemon.
[[nodiscard]] Response make_elsewhere(const Elsewhere& where, const Request& request,
                                      Endpoint endpoint);
[[nodiscard]] std::string error_body(std::string_view text);
[[nodiscard]] int status_of(const Error& error);

}  // namespace score::monitor
