#pragma once
// UsageTracker records what users and accounts have used (cores x scheduled time), decayed with a
// half-life, and derives the order of users. It is pure: `now` is an argument. Times are wall-clock
// times, because sums outlive the head.
//
// The factor of an account is 2^(-U/S), where U is its part of all use and S its part of all
// shares. The factor of a user is 2^(-E/S), where S is the account's part divided by its users, and
// E is the user's own part u of all use plus the use of the rest of the account divided by its
// users:
//   E = u + (U - u) / users.
// This is Slurm's classic fair share (https://slurm.schedmd.com/classic_fair_share.html) with a
// dampening factor of 1: the factor is 1 for a user who used nothing, and 0.5 for one who used
// exactly the own share.

#include "base/ids.hpp"
#include "base/time.hpp"
#include "scored/head/config/accounts.hpp"
#include "scored/head/store/store.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace score::head {

class UsageTracker {
 public:
  using Key = std::pair<std::string, UserId>;  // account, user

  struct Factors {
    double share = 0;   // of the whole; for a user: of the account
    double used = 0;    // of all use
    double factor = 1;  // see above
  };

  explicit UsageTracker(const AccountRules& rules) { set_rules(rules, WallTime()); }

  // Sets the rules of the configuration. A new half-life applies from now on.
  void set_rules(const AccountRules& rules, WallTime now);

  // ---- use
  // Loads a sum from the store; a sum that has decayed to nothing is dropped.
  void restore(const UseSum& sum, WallTime now);
  // Adds use and returns the new sum, which the caller must store.
  UseSum charge(const Key& key, double core_seconds, WallTime now);
  // Counts a user who has jobs as one of an open account's users, even before the user has used
  // anything. Returns false if the user was known.
  bool note_user(const Key& key);

  // Totals has the sums at one time; the factors of all users are computed from it.
  struct Totals {
    struct Account {
      double use = 0;         // core seconds
      std::size_t known = 0;  // users who used something, or have jobs
    };

    WallTime now{};
    double all = 0;                           // core seconds
    double shares = 0;                        // of all accounts
    std::map<std::string, Account> accounts;  // those with users
  };

  // Returns core seconds, decayed to `now`. If the clock was set back, nothing decays.
  [[nodiscard]] double of(const Key& key, WallTime now) const;
  [[nodiscard]] Totals totals(WallTime now) const;
  [[nodiscard]] std::vector<Key> keys() const;

  // ---- fair shares
  [[nodiscard]] bool is_on() const { return half_life_ > Duration(0); }

  [[nodiscard]] Duration half_life() const { return half_life_; }

  [[nodiscard]] Factors account(const std::string& account, const Totals& totals) const;
  [[nodiscard]] Factors user(const Key& key, const Totals& totals) const;

 private:
  struct Use {
    double core_seconds = 0;
    WallTime at{};
  };

  struct Entitled {
    std::uint32_t shares = 1;
    std::size_t listed = 0;  // users; 0: count the known ones (open, or with groups)
  };

  [[nodiscard]] double decayed(const Use& use, WallTime now) const;
  [[nodiscard]] Entitled entitled(const std::string& account) const;

  Duration half_life_{0};
  std::map<std::string, Entitled> accounts_;
  std::map<Key, Use> uses_;  // sorted by account
};

}  // namespace score::head
