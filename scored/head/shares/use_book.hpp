#pragma once
// What users and accounts have used (cores x scheduled time), decayed with a half-life, and what
// follows from it for who is next. Pure: `now` is an argument, times are the wall clock's, because
// sums outlive the head.
//
// The factor of an account is 2^(-U/S): U its part of all use, S its part of all shares. That of a
// user is 2^(-E/S): S the account's part divided by its users, and E the user's own part of all use
// plus what the rest of the account used, divided by its users:
//   E = u + (U - u) / users.
// This is Slurm's classic fair share (https://slurm.schedmd.com/classic_fair_share.html) with a
// dampening factor of 1: 1 for who used nothing, 0.5 for who used what he is entitled to.

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

class UseBook {
 public:
  using Key = std::pair<std::string, UserId>;  // account, user

  struct Factors {
    double share = 0;   // of the whole; of a user: of the account
    double used = 0;    // of all use
    double factor = 1;  // see above
  };

  explicit UseBook(const AccountRules& rules) { set_rules(rules, WallTime()); }

  // Of the configuration. A new half-life holds from now on.
  void set_rules(const AccountRules& rules, WallTime now);

  // ---- use
  // Of the store; one of which nothing is left is forgotten.
  void restore(const UseSum& sum, WallTime now);
  // The new sum, to be stored.
  UseSum charge(const Key& key, double core_seconds, WallTime now);
  // A user who has jobs counts as one of an open account's users before he has used anything.
  // False: he was known.
  bool note_user(const Key& key);

  // Sums at one time, from which the factors of all users follow.
  struct Totals {
    struct Account {
      double use = 0;         // core seconds
      std::size_t known = 0;  // users who used something, or have jobs
    };

    WallTime now{};
    double all = 0;                           // core seconds
    double shares = 0;                        // of all accounts
    std::map<std::string, Account> accounts;  // with users
  };

  // Core seconds, decayed to now. A clock that was set back decays nothing.
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
    std::size_t listed = 0;  // users; 0: those who are known (open, or with groups)
  };

  [[nodiscard]] double decayed(const Use& use, WallTime now) const;
  [[nodiscard]] Entitled entitled(const std::string& account) const;

  Duration half_life_{0};
  std::map<std::string, Entitled> accounts_;
  std::map<Key, Use> uses_;  // in the order of accounts
};

}  // namespace score::head
