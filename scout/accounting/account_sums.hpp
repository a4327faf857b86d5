// Computes sums of accounting rows by user, account and day. Pure.
#pragma once

#include "base/model/usage.hpp"
#include "base/result.hpp"
#include "proto/client.pb.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

struct AccountSum {
  std::string user, account, day;  // empty if not a key of the sums
  std::uint64_t jobs = 0;
  double elapsed_s = 0;
  double scheduled_s = 0;
  double filled_s = 0;    // processor time of all tasks
  double core_hours = 0;  // cores x scheduled time
  base::Usage usage{};    // of the jobs of which it was recorded
};

class AccountSums {
 public:
  // Creates sums by "user,account,day", in any order; rows are sorted in that order. Errors:
  // Malformed.
  [[nodiscard]] static Result<AccountSums> by(std::string_view keys);

  // Adds a row. Its day is the day of its end, in the time zone of this process.
  void add(const wire::AccountingRow& row);

  [[nodiscard]] std::vector<AccountSum> rows() const;

  // Returns the keys in the order given: "user", "day" ...
  [[nodiscard]] const std::vector<std::string>& keys() const { return keys_; }

 private:
  std::vector<std::string> keys_;
  std::map<std::vector<std::string>, AccountSum> sums_;
};

}  // namespace score::scout
