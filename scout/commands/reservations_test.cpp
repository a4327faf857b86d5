#include "scout/commands/reservations.hpp"

#include "base/limits.hpp"

#include <gtest/gtest.h>

namespace score::scout {
namespace {

const WallTime kNow = WallTime(24h * 365 * 56);

ReserveWords words(const std::string& start, const std::string& duration,
                   const std::string& users) {
  ReserveWords out;
  out.nodes = "node[00-01]";
  out.start = start;
  out.duration = duration;
  out.users = users;
  return out;
}

std::string problem(const ReserveWords& given) {
  const auto request = make_reserve(given, kNow);
  return request ? "" : request.error().context();
}

TEST(Reserve, WordsOfTheCommandLineAreParsed) {
  ReserveWords given = words("2h", "90", "alice, bob");
  given.accounts = "physics";
  given.name = "course";
  given.ends_jobs = true;
  const auto request = make_reserve(given, kNow);
  ASSERT_TRUE(request);
  const wire::Reservation& r = request->reservation();
  EXPECT_EQ(r.nodes_size(), 2);
  EXPECT_EQ(WallTime(Duration(r.start_wall_ns())), kNow + 2h);
  EXPECT_EQ(WallTime(Duration(r.end_wall_ns())), kNow + 2h + 90min);
  ASSERT_EQ(r.users_size(), 2);
  EXPECT_EQ(r.users(1), "bob");
  EXPECT_EQ(r.accounts(0), "physics");
  EXPECT_EQ(r.name(), "course");
  EXPECT_TRUE(request->ends_jobs());
}

TEST(Reserve, MaintenanceHasNoUsers) {
  for (const char* users : {"-", "maintenance"}) {
    const auto request = make_reserve(words("now", "1h", users), kNow);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->reservation().users_size(), 0);
    EXPECT_EQ(WallTime(Duration(request->reservation().start_wall_ns())), kNow);
  }
}

TEST(Reserve, HostileWordsAreRefused) {
  EXPECT_NE(problem(words("soon", "1h", "-")).find("START"), std::string::npos);
  EXPECT_NE(problem(words("99999999h", "1h", "-")), "");
  EXPECT_NE(problem(words("now", "long", "-")).find("DURATION 'long'"), std::string::npos);
  EXPECT_EQ(problem(words("now", "0s", "-")), "DURATION 0s: use a time from 1s to 366d");
  EXPECT_EQ(problem(words("now", "400d", "-")), "DURATION 400d: use a time from 1s to 366d");
  ReserveWords many = words("now", "1h", "-");
  many.nodes = "node[0-999999]";
  EXPECT_NE(problem(many), "");
  many.nodes = "node[3-1]";
  EXPECT_NE(problem(many), "");
}

TEST(Reserve, ReservationsAreListed) {
  wire::ReservationList list;
  wire::Reservation& r = *list.add_reservations();
  r.set_name("course");
  r.add_nodes("node00");
  r.add_nodes("node01");
  r.set_start_wall_ns(kNow.time_since_epoch().count());
  r.set_end_wall_ns((kNow + 1h).time_since_epoch().count());
  r.add_users("alice");
  r.add_accounts("physics");
  const std::string page = reservations_page(list, {}, kNow);
  EXPECT_NE(page.find("course  active"), std::string::npos) << page;
  EXPECT_NE(page.find("node[00-01]  alice,@physics"), std::string::npos) << page;
  const std::string json = reservations_json(list, kNow - 1s);
  EXPECT_NE(json.find("\"active\": false"), std::string::npos) << json;
}

}  // namespace
}  // namespace score::scout
