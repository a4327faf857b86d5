#pragma once
// WebLogin manages logins of the dashboard: one-time addresses become cookies. Nothing survives a
// restart of the head. It is pure: randomness and time are passed in.

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/shares.hpp"
#include "base/time.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace score::monitor {

struct WebUser {
  UserId user;
  std::string name;

  friend bool operator==(const WebUser&, const WebUser&) = default;
};

struct WebSession {
  std::string cookie;  // secret
  std::string csrf;    // secret of the page
  WebUser who;
};

class WebLogin {
 public:
  static constexpr Duration kTokenLife = 60s;
  static constexpr Duration kSessionLife = 12h;
  static constexpr std::size_t kMaxTokens = shares::kWebTokens.places;
  static constexpr std::size_t kMaxSessions = shares::kWebSessions.places;
  // At these limits the oldest entry of the user makes room.
  static constexpr std::size_t kTokensOfUser = shares::kWebTokens.per_user;
  static constexpr std::size_t kSessionsOfUser = shares::kWebSessions.per_user;

  // Returns 256 random bits as text, different each time.
  using Random = std::function<std::string()>;

  explicit WebLogin(Random random) : random_(std::move(random)) {}

  // Returns a token for an address. Errors: Busy.
  [[nodiscard]] Result<std::string> offer(const WebUser& who, TimePoint now);
  // Opens a session; the oldest session makes room. Errors: Denied: unknown, used or expired.
  [[nodiscard]] Result<WebSession> redeem(std::string_view token, TimePoint now);
  [[nodiscard]] std::optional<WebSession> find(std::string_view cookie, TimePoint now);
  // Returns the session of a user that the trusted proxy authenticated. It is made at the first
  // request, and no cookie opens it.
  [[nodiscard]] WebSession vouched(const WebUser& who, TimePoint now);
  void end(std::string_view cookie);

 private:
  struct Offer {
    WebUser who;
    TimePoint until{};
  };

  struct Session {
    std::string csrf;
    WebUser who;
    TimePoint until{};
  };

  void forget_old(TimePoint now);

  Random random_;
  std::map<std::string, Offer, std::less<>> offers_;
  std::map<std::string, Session, std::less<>> sessions_;  // by cookie
  std::map<UserId, Session> vouched_;
};

}  // namespace score::monitor
