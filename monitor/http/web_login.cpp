#include "monitor/http/web_login.hpp"

#include <algorithm>
#include <utility>

namespace score::monitor {

void WebLogin::forget_old(TimePoint now) {
  std::erase_if(offers_, [now](const auto& offer) { return offer.second.until <= now; });
  std::erase_if(sessions_, [now](const auto& session) { return session.second.until <= now; });
  std::erase_if(vouched_, [now](const auto& session) { return session.second.until <= now; });
}

namespace {

template <class Sessions>
void drop_oldest(Sessions& sessions) {
  sessions.erase(std::min_element(
      sessions.begin(), sessions.end(),
      [](const auto& a, const auto& b) { return a.second.until < b.second.until; }));
}

// Removes the oldest entries of this user, so that one more leaves at most `most`.
template <class Kept>
void make_room(Kept& kept, UserId user, std::size_t most) {
  for (;;) {
    auto oldest = kept.end();
    std::size_t count = 0;
    for (auto one = kept.begin(); one != kept.end(); ++one) {
      if (one->second.who.user != user) continue;
      ++count;
      if (oldest == kept.end() || one->second.until < oldest->second.until) oldest = one;
    }
    if (count < most) return;
    kept.erase(oldest);
  }
}

}  // namespace

Result<std::string> WebLogin::offer(const WebUser& who, TimePoint now) {
  forget_old(now);
  make_room(offers_, who.user, kTokensOfUser);
  if (offers_.size() >= kMaxTokens) return fail(Errc::Busy, "too many logins at once");
  std::string token = random_();
  offers_[token] = {who, now + kTokenLife};
  return token;
}

Result<WebSession> WebLogin::redeem(std::string_view token, TimePoint now) {
  forget_old(now);
  const auto found = offers_.find(token);
  if (found == offers_.end()) {
    return fail(Errc::Denied, "this address was used already, or is too old");
  }
  make_room(sessions_, found->second.who.user, kSessionsOfUser);
  if (sessions_.size() >= kMaxSessions) drop_oldest(sessions_);
  WebSession session{random_(), random_(), std::move(found->second.who)};
  offers_.erase(found);
  sessions_[session.cookie] = {session.csrf, session.who, now + kSessionLife};
  return session;
}

std::optional<WebSession> WebLogin::find(std::string_view cookie, TimePoint now) {
  const auto found = sessions_.find(cookie);
  if (cookie.empty() || found == sessions_.end() || found->second.until <= now) return std::nullopt;
  return WebSession{found->first, found->second.csrf, found->second.who};
}

WebSession WebLogin::vouched(const WebUser& who, TimePoint now) {
  auto found = vouched_.find(who.user);
  if (found == vouched_.end()) {
    forget_old(now);
    if (vouched_.size() >= kMaxSessions) drop_oldest(vouched_);
    found = vouched_.try_emplace(who.user).first;
    found->second.csrf = random_();
  }
  found->second.who = who;
  found->second.until = now + kSessionLife;
  return {"", found->second.csrf, who};
}

void WebLogin::end(std::string_view cookie) {
  const auto found = sessions_.find(cookie);
  if (found != sessions_.end()) sessions_.erase(found);
}

}  // namespace score::monitor
