#pragma once
// Users knows each uid's name, and whether the user may act as an operator. The user directory may
// be slow or hang, so it is asked off the loop's thread (see the runner). Answers are kept for a
// while, and an old answer is used until a new one arrives.

#include "base/async/asio.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"
#include "proto/frames/frames.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

// TaskPlace is where a command runs that a task has started.
struct TaskPlace {
  AttemptId attempt;
  NodeId node;
};

// The peer is the user who sends a command, as the kernel identifies the user.
struct Peer {
  UserId user;
  proto::Role role = proto::Role::Anonymous;  // OtherUser, Operator or Root
  std::string name;                           // "alice", or the number
  std::string via = "socket";                 // or "web", "file", or the login node's name
  // This is set for a command of a task on a node that is not a login node. While the attempt of
  // the task runs there, the command may start and control steps of its job, and ask for lists.
  std::optional<TaskPlace> task{};
};

struct OperatorRule {
  std::vector<std::string> users;  // names or numbers
  std::string group;               // its members are operators too; empty: no group
};

// Returns the account of this name or number; a number need not have an account. The call blocks
// while it asks the user directory.
[[nodiscard]] std::optional<UserId> find_user(const std::string& name);

class Users {
 public:
  // A runner calls `work`, which may block, on a thread of its choice, and then calls `done` in the
  // loop.
  using Runner = std::function<void(std::function<void()> work, std::function<void()> done)>;

  // `self` is the user that the head runs as; this user and root have Role::Root. Without a runner
  // the user directory is asked synchronously. The runner must not call anything after this object
  // is destroyed.
  Users(OperatorRule rule, UserId self, Runner runner = {});

  void set_rule(OperatorRule rule);
  // Sets the users without limits: names or numbers, and groups as "@group".
  void set_exempt(std::vector<std::string> exempt);
  // Sets the groups whose members may use accounts.
  void set_account_groups(std::vector<std::string> groups);
  // Returns the role of a user whom the kernel has identified: OtherUser, Operator or Root. A user
  // who is an operator only as a member of a group has OtherUser until the user directory has
  // answered.
  [[nodiscard]] proto::Role role(UserId user, TimePoint now);
  // Returns true for a user of set_exempt(); group members count once the user directory has
  // answered.
  [[nodiscard]] bool is_exempt(UserId user, TimePoint now);
  // Returns the groups named above of which the user is a member; empty until the user directory
  // has answered. The reference is valid until the next call.
  [[nodiscard]] const std::set<std::string>& groups(UserId user, TimePoint now);
  // Returns the user's name, or the uid as text if it has no name or the name is not known yet.
  [[nodiscard]] std::string name(UserId user, TimePoint now);
  // Returns the account of this name; a number is not accepted, so a remote user called "0" is not
  // taken for uid 0. Returns nullopt also while the answer is not known.
  [[nodiscard]] std::optional<UserId> named(const std::string& name, TimePoint now);

  // Waits until the user directory has answered, at most for `most`. Returns at once if there is an
  // answer for the groups that are currently in force.
  asio::awaitable<void> known(UserId user, TimePoint now, Duration most);
  asio::awaitable<void> known(std::string name, TimePoint now, Duration most);

 private:
  template <class Answer>
  struct Entry {
    Answer answer{};
    bool is_known = false;
    bool is_current = false;  // the answer covers the groups now in force
    bool is_asked = false;    // an answer is on its way
    TimePoint fresh_until{};
    TimePoint trusted_until{};  // until then the answer grants rights
    std::vector<std::function<void()>> waiting;
  };

  struct Account {
    std::string name;              // empty: no such account
    std::set<std::string> groups;  // those of the requested groups that it is in
  };

  using Known = Entry<Account>;
  using Named = Entry<std::optional<UserId>>;

  template <class Key, class Answer, class Ask>
  Entry<Answer>& look_up(std::map<Key, Entry<Answer>>& entries, const Key& key, TimePoint now,
                         const Ask& ask);
  Known& look_up(UserId user, TimePoint now);
  Named& look_up(const std::string& name, TimePoint now);
  void forget_groups();
  [[nodiscard]] std::vector<std::string> all_groups() const;
  [[nodiscard]] static const std::set<std::string>& trusted_groups(const Known& known,
                                                                   TimePoint now);

  OperatorRule rule_;
  std::vector<std::string> exempt_;
  std::vector<std::string> account_groups_;
  std::shared_ptr<const std::vector<std::string>> groups_;  // all_groups()
  UserId self_;
  Runner runner_;
  std::uint64_t rules_ = 0;  // counts changes of the rules
  std::map<UserId, Known> known_;
  std::map<std::string, Named> named_;
};

}  // namespace score::head
