#include "scored/head/config/users.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>
#include <utility>

namespace score::head {
namespace {

constexpr Duration kKeepFor = 60s;
constexpr std::size_t kMaxKnown = 10'000;
constexpr int kMaxGroupsAsked = 1'024;

struct Account {
  std::string name;
  gid_t group = 0;
};

// Empty name: no such account.
Account find_account(UserId user) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16'384> buffer{};
  if (::getpwuid_r(user.value(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr) {
    return {};
  }
  return {entry.pw_name, entry.pw_gid};
}

bool is_in_group(const Account& account, const std::string& group) {
  ::group entry{};
  ::group* found = nullptr;
  std::vector<char> buffer(256 * 1024);
  if (::getgrnam_r(group.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr) {
    return false;
  }
  std::array<gid_t, kMaxGroupsAsked> groups{};
  int count = kMaxGroupsAsked;
  if (::getgrouplist(account.name.c_str(), account.group, groups.data(), &count) < 0) return false;
  return std::find(groups.begin(), groups.begin() + count, entry.gr_gid) != groups.begin() + count;
}

}  // namespace

namespace {

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

Users::Users(OperatorRule rule, UserId self) : rule_(std::move(rule)), self_(self) {}

void Users::set_rule(OperatorRule rule) {
  rule_ = std::move(rule);
  known_.clear();
}

void Users::set_exempt(std::vector<std::string> exempt) {
  exempt_ = std::move(exempt);
  known_.clear();
}

std::optional<UserId> Users::named(const std::string& name, TimePoint now) {
  const auto found = named_.find(name);
  if (found != named_.end() && now < found->second.until) return found->second.user;
  if (named_.size() >= kMaxKnown) named_.clear();
  return (named_[name] = {ask_for_user(name), now + kKeepFor}).user;
}

proto::Role Users::role(UserId user, TimePoint now) {
  if (user == UserId(0) || user == self_) return proto::Role::Root;
  return look_up(user, now).is_operator ? proto::Role::Operator : proto::Role::OtherUser;
}

const std::string& Users::name(UserId user, TimePoint now) {
  return look_up(user, now).name;
}

const Users::Known& Users::look_up(UserId user, TimePoint now) {
  const auto found = known_.find(user);
  if (found != known_.end() && now < found->second.until) return found->second;
  if (known_.size() >= kMaxKnown) known_.clear();
  const Account account = find_account(user);
  Known& known = known_[user];
  known.name = account.name.empty() ? std::to_string(user.value()) : account.name;
  known.is_operator = is_operator(user, account.name);
  known.is_exempt = is_exempt(user, account.name);
  known.until = now + kKeepFor;
  return known;
}

bool Users::is_exempt(UserId user, TimePoint now) {
  return look_up(user, now).is_exempt;
}

bool Users::is_exempt(UserId user, const std::string& name) const {
  return std::any_of(exempt_.begin(), exempt_.end(), [&](const std::string& one) {
    if (one == std::to_string(user.value())) return true;
    if (name.empty()) return false;
    return one.starts_with('@') ? is_in_group(find_account(user), one.substr(1)) : one == name;
  });
}

bool Users::is_operator(UserId user, const std::string& name) const {
  for (const std::string& allowed : rule_.users) {
    if (allowed == std::to_string(user.value()) || (!name.empty() && allowed == name)) return true;
  }
  if (name.empty() || rule_.group.empty()) return false;
  return is_in_group(find_account(user), rule_.group);
}

}  // namespace score::head
