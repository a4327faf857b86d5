#pragma once
// HeadApi answers requests of programs: each becomes the message of a command, which goes through a
// connection to this head as any command does, and its reply becomes a document. So permissions,
// shares, audit and the log have one path. Thread: the loop's.

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "monitor/http/api.hpp"
#include "scored/head/api/api_requests.hpp"
#include "scored/head/api/head_client.hpp"
#include "scored/head/api/personal_tokens.hpp"
#include "scored/head/config/users.hpp"

#include <optional>
#include <string>

namespace score::head {

class HeadApi final : public monitor::Api {
 public:
  struct Parts {  // all must outlive the object
    Clock& clock;
    Users& users;
    const PersonalTokens& tokens;
    AdmitClient admit;
  };

  explicit HeadApi(Parts parts) : parts_(std::move(parts)) {}

  asio::awaitable<std::optional<monitor::ApiCaller>> caller_with(std::string token) override;
  asio::awaitable<monitor::ApiCaller> caller_of(UserId user) override;
  asio::awaitable<monitor::ApiAnswer> answer(monitor::ApiCall call) override;

 private:
  using Answer = asio::awaitable<monitor::ApiAnswer>;

  asio::awaitable<std::string> name_of(UserId user);

  Parts parts_;
};

}  // namespace score::head
