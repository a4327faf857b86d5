#pragma once
// Users by uid: name for display, and whether the user may act as an operator. The directory of
// users may be slow or hang: it is asked beside the loop (set_runner), answers are kept for a
// while, and an old one serves until the new one is there.

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

// Who gives a command, as the kernel says.
struct Peer {
  UserId user;
  proto::Role role = proto::Role::Anonymous;  // OtherUser, Operator or Root
  std::string name;                           // "alice", or the number
  std::string via = "socket";                 // or "web", "file", or the login node's name
  // A command on this node, which is no login node: it may start and control steps of its user's
  // jobs there, and ask for lists.
  std::optional<NodeId> steps_on{};
};

struct OperatorRule {
  std::vector<std::string> users;  // names or numbers
  std::string group;               // its members too; empty: no group
};

// The account of this name or number; it need not exist for a number. Asks the directory: blocks.
[[nodiscard]] std::optional<UserId> find_user(const std::string& name);

class Users {
 public:
  // Calls `work`, wherever that may block, and then `done` in the loop.
  using Runner = std::function<void(std::function<void()> work, std::function<void()> done)>;

  // self: the user the head runs as; he and root have Role::Root. Without a runner the directory is
  // asked at once. The runner must call nothing after the end of this object.
  Users(OperatorRule rule, UserId self, Runner runner = {});

  void set_rule(OperatorRule rule);
  // Users without limits: names or numbers, and groups as "@group".
  void set_exempt(std::vector<std::string> exempt);
  // Groups whose members may use accounts.
  void set_account_groups(std::vector<std::string> groups);
  // Role of a user whom the kernel has identified: OtherUser, Operator or Root. Who is operator
  // only as a member of a group is OtherUser until the directory has answered.
  [[nodiscard]] proto::Role role(UserId user, TimePoint now);
  // As set_exempt() says; members of groups as above.
  [[nodiscard]] bool is_exempt(UserId user, TimePoint now);
  // Those of all groups named above of which the user is a member; empty until the directory has
  // answered. Valid until the next call.
  [[nodiscard]] const std::set<std::string>& groups(UserId user, TimePoint now);
  // The number as text if the uid has no name, or it is not known yet.
  [[nodiscard]] std::string name(UserId user, TimePoint now);
  // The account of this name, never of a number: a user who chooses his name elsewhere is not uid 0
  // for calling himself "0". nullopt too while it is not known.
  [[nodiscard]] std::optional<UserId> named(const std::string& name, TimePoint now);

  // Waits until the directory has answered, or for `most`. At once if it did before, of the groups
  // that count now.
  asio::awaitable<void> known(UserId user, TimePoint now, Duration most);
  asio::awaitable<void> known(std::string name, TimePoint now, Duration most);

 private:
  template <class Answer>
  struct Entry {
    Answer answer{};
    bool is_known = false;
    bool is_current = false;  // of the groups that count now
    bool is_asked = false;    // an answer is on its way
    TimePoint fresh_until{};
    TimePoint trusted_until{};  // for rights
    std::vector<std::function<void()>> waiting;
  };

  struct Account {
    std::string name;              // empty: none
    std::set<std::string> groups;  // of those that were asked about
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
  std::uint64_t rules_ = 0;  // counts their changes
  std::map<UserId, Known> known_;
  std::map<std::string, Named> named_;
};

}  // namespace score::head
