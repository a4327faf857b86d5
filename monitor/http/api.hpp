#pragma once
// Api is the interface of a head to programs that send requests over HTTP: everything below
// /api/v1/ that is not part of the dashboard (docs/reference/api.md).

#include "base/async/asio.hpp"
#include "monitor/http/api_caller.hpp"
#include "monitor/http/url.hpp"

#include <functional>
#include <optional>
#include <string>

namespace score::monitor {

// ApiCall is a request that the router has admitted.
struct ApiCall {
  ApiCaller caller;
  std::string method;  // "GET"; HEAD is a GET of which only the headers are sent
  RequestTarget target;
  std::string body;
  std::string idempotency_key;  // of the header of this name; empty: none
  std::string if_match;         // likewise
  std::string last_event_id;    // likewise
};

struct ApiAnswer {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::string location;  // path of what was made; empty: none
  std::string allow;     // of a 405: "GET, POST"; empty: none
  std::string etag;      // of what is shown, with its quotes; empty: none
  // If it is set, the body is sent in pieces: each call returns the next one, "" at the end, or
  // nothing if the rest cannot be had. Then the response stays incomplete, which its reader sees.
  std::function<asio::awaitable<std::optional<std::string>>()> next{};
};

class Api {
 public:
  Api() = default;
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;
  virtual ~Api() = default;

  // Returns the caller that the personal token stands for, or nothing if it is not valid.
  virtual asio::awaitable<std::optional<ApiCaller>> caller_with(std::string token) = 0;
  // Returns the caller for a process of this user on the head's own host.
  virtual asio::awaitable<ApiCaller> caller_of(UserId user) = 0;
  virtual asio::awaitable<ApiAnswer> answer(ApiCall call) = 0;
};

// Returns the problem document of RFC 9457 for one line of text, with `code` and `message` for
// programs. `field` names the member of the request that is wrong; empty: none.
[[nodiscard]] std::string problem_document(int status, std::string_view text,
                                           std::string_view field = {});

}  // namespace score::monitor
