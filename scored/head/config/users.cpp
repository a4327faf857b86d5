#include "scored/head/config/users.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <grp.h>
#include <memory>
#include <pwd.h>
#include <unistd.h>
#include <utility>

namespace score::head {
namespace {

constexpr Duration kKeepFor = 60s;
constexpr Duration kTrustFor = 1h;  // of operators, while the user directory does not answer
constexpr std::size_t kMaxKnown = 10'000;
constexpr int kMaxGroupsAsked = 1'024;

struct Entity {  // an account in the user directory
  std::string name;
  gid_t group = 0;
};

// Returns an entity with an empty name if there is no such account.
Entity find_account(UserId user) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16'384> buffer{};
  if (::getpwuid_r(user.value(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr) {
    return {};
  }
  return {entry.pw_name, entry.pw_gid};
}

std::optional<gid_t> find_group(const std::string& name, std::vector<char>& buffer) {
  ::group entry{};
  ::group* found = nullptr;
  if (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr) {
    return std::nullopt;
  }
  return entry.gr_gid;
}

// Returns the groups of `wanted` of which the account is a member.
std::set<std::string> find_groups(const Entity& account, const std::vector<std::string>& wanted) {
  std::set<std::string> member;
  if (account.name.empty() || wanted.empty()) return member;
  std::array<gid_t, kMaxGroupsAsked> groups{};
  int count = kMaxGroupsAsked;
  if (::getgrouplist(account.name.c_str(), account.group, groups.data(), &count) < 0) return member;
  const auto* const end = groups.begin() + count;
  std::vector<char> buffer(256 * 1024);
  for (const std::string& name : wanted) {
    const auto group = find_group(name, buffer);
    if (group && std::find(groups.cbegin(), end, *group) != end) member.insert(name);
  }
  return member;
}

bool is_listed(const std::vector<std::string>& list, UserId user, const std::string& name) {
  return std::ranges::find(list, std::to_string(user.value())) != list.end() ||
         (!name.empty() && std::ranges::find(list, name) != list.end());
}

// Returns the names of the entries "@group".
std::vector<std::string> groups_in(const std::vector<std::string>& list) {
  std::vector<std::string> groups;
  for (const std::string& one : list) {
    if (one.starts_with('@') && one.size() > 1) groups.push_back(one.substr(1));
  }
  return groups;
}

std::optional<UserId> ask_for_user(const std::string& name) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16'384> buffer{};
  const int error = ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (error != 0 || found == nullptr) return std::nullopt;
  return UserId(entry.pw_uid);
}

}  // namespace

std::optional<UserId> find_user(const std::string& name) {
  if (const auto user = ask_for_user(name)) return user;
  const auto number = parse_number<std::uint32_t>(name);
  return number ? std::optional(UserId(*number)) : std::nullopt;
}

Users::Users(OperatorRule rule, UserId self, Runner runner)
    : rule_(std::move(rule)), self_(self), runner_(std::move(runner)) {
  forget_groups();
  if (runner_) return;
  runner_ = [](const auto& work, const auto& done) {
    work();
    done();
  };
}

// Forgets group memberships, so that they are looked up again; user names stay.
void Users::forget_groups() {
  ++rules_;
  groups_ = std::make_shared<const std::vector<std::string>>(all_groups());
  for (auto& [id, known] : known_) {
    known.fresh_until = TimePoint::min();
    known.is_current = false;
  }
}

std::vector<std::string> Users::all_groups() const {
  std::vector<std::string> groups = groups_in(exempt_);
  if (!rule_.group.empty()) groups.push_back(rule_.group);
  groups.insert(groups.end(), account_groups_.begin(), account_groups_.end());
  std::ranges::sort(groups);
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

void Users::set_rule(OperatorRule rule) {
  rule_ = std::move(rule);
  forget_groups();
}

void Users::set_exempt(std::vector<std::string> exempt) {
  exempt_ = std::move(exempt);
  forget_groups();
}

void Users::set_account_groups(std::vector<std::string> groups) {
  account_groups_ = std::move(groups);
  forget_groups();
}

// `ask` is called on a different thread, so it must capture by value everything that it needs.
template <class Key, class Answer, class Ask>
Users::Entry<Answer>& Users::look_up(std::map<Key, Entry<Answer>>& entries, const Key& key,
                                     TimePoint now, const Ask& ask) {
  if (entries.size() >= kMaxKnown && !entries.contains(key)) {
    std::erase_if(entries, [](const auto& entry) { return !entry.second.is_asked; });
  }
  Entry<Answer>& entry = entries[key];
  if (entry.is_asked || (entry.is_known && now < entry.fresh_until)) return entry;
  entry.is_asked = true;
  const auto answer = std::make_shared<Answer>();
  runner_([ask, key, answer] { *answer = ask(key); },
          [this, &entries, key, answer, now, rules = rules_] {
            Entry<Answer>& answered = entries[key];
            const bool is_current = rules == rules_;
            answered.answer = std::move(*answer);
            answered.is_known = true;
            answered.is_current = is_current;
            answered.is_asked = false;
            answered.fresh_until = is_current ? now + kKeepFor : TimePoint::min();
            answered.trusted_until = is_current ? now + kTrustFor : TimePoint::min();
            for (const auto& done : std::exchange(answered.waiting, {})) done();
          });
  return entry;
}

Users::Known& Users::look_up(UserId user, TimePoint now) {
  return look_up(known_, user, now, [groups = groups_](UserId asked) {
    const Entity found = find_account(asked);
    return Account{found.name, find_groups(found, *groups)};
  });
}

Users::Named& Users::look_up(const std::string& name, TimePoint now) {
  return look_up(named_, name, now, [](const std::string& asked) { return ask_for_user(asked); });
}

std::optional<UserId> Users::named(const std::string& name, TimePoint now) {
  return look_up(name, now).answer;
}

proto::Role Users::role(UserId user, TimePoint now) {
  if (user == UserId(0) || user == self_) return proto::Role::Root;
  const Known& known = look_up(user, now);
  const bool is_member = trusted_groups(known, now).contains(rule_.group);
  const bool is_operator = is_member || is_listed(rule_.users, user, known.answer.name);
  return is_operator ? proto::Role::Operator : proto::Role::OtherUser;
}

std::string Users::name(UserId user, TimePoint now) {
  const std::string& name = look_up(user, now).answer.name;
  return name.empty() ? std::to_string(user.value()) : name;
}

bool Users::is_exempt(UserId user, TimePoint now) {
  const Known& known = look_up(user, now);
  if (is_listed(exempt_, user, known.answer.name)) return true;
  const std::set<std::string>& groups = trusted_groups(known, now);
  return std::ranges::any_of(exempt_, [&](const std::string& one) {
    return one.starts_with('@') && groups.contains(one.substr(1));
  });
}

const std::set<std::string>& Users::trusted_groups(const Known& known, TimePoint now) {
  static const std::set<std::string> none;
  return now < known.trusted_until ? known.answer.groups : none;
}

const std::set<std::string>& Users::groups(UserId user, TimePoint now) {
  return trusted_groups(look_up(user, now), now);
}

namespace {

template <class Entry>
asio::awaitable<void> wait_for(Entry& entry, Duration most) {
  const auto answered =
      std::make_shared<asio::steady_timer>(co_await asio::this_coro::executor, most);
  entry.waiting.push_back([answered] { answered->cancel(); });
  [[maybe_unused]] auto [ec] = co_await answered->async_wait(kNoThrow);
}

}  // namespace

asio::awaitable<void> Users::known(UserId user, TimePoint now, Duration most) {
  Known& entry = look_up(user, now);
  if (!entry.is_current) co_await wait_for(entry, most);
}

asio::awaitable<void> Users::known(std::string name, TimePoint now, Duration most) {
  Named& entry = look_up(name, now);
  if (!entry.is_known) co_await wait_for(entry, most);
}

}  // namespace score::head
