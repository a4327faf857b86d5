#include "scout/accounting/profile_view.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace score::scout {
namespace {

wire::Profile profile_of(int points) {
  constexpr std::int64_t kStep = 10'000'000'000;
  wire::Profile profile;
  profile.set_step_ns(kStep);
  for (int i = 1; i <= points; ++i) {
    wire::ProfilePoint& point = *profile.add_points();
    point.set_end_wall_ns(1'800'000'000'000'000'000 + i * kStep);
    point.set_cpu_ns(i == 3 ? 2 * kStep : kStep / 100);
    point.set_memory_bytes(1'000'000);
  }
  return profile;
}

TEST(Chart, ShowsSmallValuesAndLeavesZeroesOut) {
  EXPECT_EQ(chart({0, 0.01, 5, 10}, 10, 2), (std::vector<std::string>{"   #", " ###"}));
  EXPECT_EQ(chart({0, 0}, 0, 2), (std::vector<std::string>{"", ""}));
}

TEST(ProfilePage, FitsTheTerminal) {
  for (const std::size_t columns : {10U, 40U, 80U}) {
    const std::string page = profile_page(profile_of(180), columns);
    std::size_t begin = 0;
    while (begin < page.size()) {
      const std::size_t end = page.find('\n', begin);
      const std::string line = page.substr(begin, end - begin);
      if (line.find('#') != std::string::npos) {
        EXPECT_LE(line.size(), std::max<std::size_t>(columns, 29));
      }
      begin = end + 1;
    }
    EXPECT_NE(page.find("processors busy: 2.0 at most"), std::string::npos) << page;
  }
}

TEST(ProfilePage, SaysThatThereIsNothing) {
  EXPECT_NE(profile_page(wire::Profile(), 80).find("less than 10 s"), std::string::npos);
}

}  // namespace
}  // namespace score::scout
