#pragma once
// Users by uid: name for display, and whether the user may act as an operator. Answers are kept for
// a while, so that a slow name service is not asked for each connection.

#include "base/ids.hpp"
#include "base/time.hpp"
#include "proto/frames/frames.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

// Who gives a command, as the kernel says.
struct Peer {
  UserId user;
  proto::Role role = proto::Role::Anonymous;  // OtherUser, Operator or Root
  std::string name;                           // "alice", or the number
  std::string via = "socket";                 // or "web", "file", or the login node's name
};

struct OperatorRule {
  std::vector<std::string> users;  // names or numbers
  std::string group;               // its members too; empty: no group
};

// The account of this name or number; it need not exist for a number.
[[nodiscard]] std::optional<UserId> find_user(const std::string& name);

class Users {
 public:
  // self: the user the head runs as; he and root have Role::Root.
  Users(OperatorRule rule, UserId self);

  void set_rule(OperatorRule rule);
  // Users without limits: names or numbers, and groups as "@group".
  void set_exempt(std::vector<std::string> exempt);
  // Role of a user whom the kernel has identified: OtherUser, Operator or Root.
  [[nodiscard]] proto::Role role(UserId user, TimePoint now);
  // As set_exempt() says.
  [[nodiscard]] bool is_exempt(UserId user, TimePoint now);
  // The number as text if the uid has no name.
  [[nodiscard]] const std::string& name(UserId user, TimePoint now);
  // The account of this name, never of a number: a user who chooses his name elsewhere is not uid 0
  // for calling himself "0".
  [[nodiscard]] std::optional<UserId> named(const std::string& name, TimePoint now);

 private:
  struct Known {
    std::string name;
    bool is_operator = false;
    bool is_exempt = false;
    TimePoint until{};
  };

  struct Named {
    std::optional<UserId> user;
    TimePoint until{};
  };

  const Known& look_up(UserId user, TimePoint now);
  [[nodiscard]] bool is_operator(UserId user, const std::string& name) const;
  [[nodiscard]] bool is_exempt(UserId user, const std::string& name) const;

  OperatorRule rule_;
  std::vector<std::string> exempt_;
  UserId self_;
  std::map<UserId, Known> known_;
  std::map<std::string, Named> named_;
};

}  // namespace score::head
