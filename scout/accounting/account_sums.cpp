#include "scout/accounting/account_sums.hpp"

#include "base/text.hpp"
#include "proto/documents/accounting_document.hpp"
#include "scout/session/usage_words.hpp"
#include "scout/session/words.hpp"

#include <algorithm>

namespace score::scout {

namespace {

constexpr double kSecond = 1e9;

// Returns the day as the column "ended" shows it.
std::string day_of(std::int64_t wall_ns) {
  return local_time(wall_ns).substr(0, 10);  // YYYY-MM-DD
}

}  // namespace

Result<AccountSums> AccountSums::by(std::string_view keys) {
  AccountSums sums;
  for (const auto key : split(keys, ',')) {
    const std::string name(trim(key));
    if (name != "user" && name != "account" && name != "day") {
      return fail(Errc::Malformed, "--by: '{}' is not user, account or day",
                  escape_terminal(name, 80));
    }
    if (std::ranges::find(sums.keys_, name) != sums.keys_.end()) {
      return fail(Errc::Malformed, "--by: {} is named twice", name);
    }
    sums.keys_.push_back(name);
  }
  return sums;
}

void AccountSums::add(const wire::AccountingRow& row) {
  std::vector<std::string> values;
  for (const std::string& key : keys_) {
    values.push_back(key == "user"      ? row.user_name()
                     : key == "account" ? row.account()
                                        : day_of(row.ended_wall_ns()));
  }
  AccountSum& sum = sums_[values];
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    (keys_[i] == "user" ? sum.user : keys_[i] == "account" ? sum.account : sum.day) = values[i];
  }
  const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) / kSecond; };
  ++sum.jobs;
  if (row.started_wall_ns() > 0) {
    sum.elapsed_s += seconds(row.ended_wall_ns() - row.started_wall_ns());
  }
  sum.scheduled_s += seconds(row.scheduled_ns());
  sum.filled_s += seconds(row.filled_ns());
  sum.core_hours += proto::core_hours_of(row);
  if (const auto usage = usage_in(row)) sum.usage += *usage;
}

std::vector<AccountSum> AccountSums::rows() const {
  std::vector<AccountSum> rows;
  for (const auto& [values, sum] : sums_) rows.push_back(sum);
  return rows;
}

}  // namespace score::scout
