#include "scout/accounting/account_sums.hpp"

#include "proto/documents/accounting_document.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace score::scout {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kNoon = 1'790'000'000 * kSecond;

wire::AccountingRow row(const std::string& user, const std::string& account, std::int64_t ended) {
  wire::AccountingRow out;
  out.set_user_name(user);
  out.set_account(account);
  out.set_started_wall_ns(ended - 3600 * kSecond);
  out.set_ended_wall_ns(ended);
  out.set_scheduled_ns(1800 * kSecond);
  out.set_filled_ns(60 * kSecond);
  out.set_tasks(2);
  out.set_cores(8);
  return out;
}

TEST(AccountSums, RowsAreAddedByEachKey) {
  auto sums = AccountSums::by("account,user");
  ASSERT_TRUE(sums);
  sums->add(row("bob", "physics", kNoon));
  sums->add(row("alice", "physics", kNoon));
  sums->add(row("alice", "physics", kNoon + 1));
  sums->add(row("alice", "art", kNoon));
  const auto rows = sums->rows();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].account, "art");
  EXPECT_EQ(rows[1].user, "alice");
  EXPECT_EQ(rows[1].jobs, 2U);
  EXPECT_DOUBLE_EQ(rows[1].elapsed_s, 7200);
  EXPECT_DOUBLE_EQ(rows[1].scheduled_s, 3600);
  EXPECT_DOUBLE_EQ(rows[1].filled_s, 120);
  EXPECT_DOUBLE_EQ(rows[1].core_hours, 8);
  EXPECT_EQ(rows[1].day, "");
}

TEST(AccountSums, DayIsTheDayOfTheEnd) {
  auto sums = AccountSums::by("day");
  ASSERT_TRUE(sums);
  sums->add(row("bob", "", kNoon));
  sums->add(row("bob", "", kNoon + 48 * 3600 * kSecond));
  const auto rows = sums->rows();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].day.size(), 10U);
  EXPECT_LT(rows[0].day, rows[1].day);
}

TEST(AccountSums, DayFollowsTheLocalTimeZone) {
  const auto day_in = [](const char* zone) {
    ::setenv("TZ", zone, 1);
    ::tzset();
    auto sums = AccountSums::by("day");
    sums->add(row("bob", "", kNoon));
    return sums->rows().at(0).day;
  };
  EXPECT_EQ(day_in("UTC"), "2026-09-21");
  EXPECT_EQ(day_in("XXX-14"), "2026-09-22");
  EXPECT_EQ(day_in("XXX+14"), "2026-09-21");
  EXPECT_EQ(day_in("XXX+15"), "2026-09-20");
  ::unsetenv("TZ");
  ::tzset();
}

TEST(AccountSums, TasksAreCountedIfCoresAreUnknown) {
  wire::AccountingRow old = row("bob", "", kNoon);
  old.clear_cores();
  EXPECT_DOUBLE_EQ(proto::core_hours_of(old), 1);
}

TEST(AccountSums, OtherKeysAreRefused) {
  for (const char* keys : {"", "week", "user,", "user,user", "day;user"}) {
    EXPECT_FALSE(AccountSums::by(keys)) << keys;
  }
}

}  // namespace
}  // namespace score::scout
