#include "scored/node/attempts/counted_devices.hpp"

#include <gtest/gtest.h>

namespace score::node {
namespace {

using Shares = std::vector<base::GenericShare>;

std::vector<GenericConfig> kinds() {
  return {{{"gpu", 2}, {"/dev/null", "/dev/zero"}}, {{"nic", 1}, {}}};
}

TEST(CountedDevices, DeniesAllButTheJobsOwn) {
  const CountedDevices devices(kinds(), true);
  EXPECT_EQ(devices.denied(Shares{}).value(), "c1:3 c1:5");
  EXPECT_EQ(devices.denied(Shares{{"gpu", {1}}, {"nic", {0}}}).value(), "c1:3");
  EXPECT_EQ(devices.denied(Shares{{"gpu", {0, 1}}}).value(), "");
  EXPECT_EQ(devices.restricted_kinds(), std::vector<std::string>{"gpu"});
}

TEST(CountedDevices, NothingIsDeniedWithoutLauncherSupport) {
  const CountedDevices devices(kinds(), false);
  EXPECT_EQ(devices.denied(Shares{}).value(), "");
  EXPECT_TRUE(devices.restricted_kinds().empty());
}

TEST(CountedDevices, TwoUnitsMayHaveOneFile) {
  const CountedDevices devices({{{"part", 2}, {"/dev/null", "/dev/null"}}}, true);
  EXPECT_EQ(devices.denied(Shares{{"part", {1}}}).value(), "");
}

TEST(CountedDevices, HostDevicesAreFoundInTheirOwnDirectory) {
  ASSERT_EQ(setenv("SCORED_DEVICES", "/proc/self/root/dev", 1), 0);
  EXPECT_EQ(CountedDevices(kinds(), true).denied(Shares{}).value(), "c1:3 c1:5");
  ASSERT_EQ(setenv("SCORED_DEVICES", "/no/such", 1), 0);
  EXPECT_EQ(CountedDevices(kinds(), true).denied(Shares{}).value(), "");
  const CountedDevices elsewhere({{{"gpu", 1}, {"/proc/self/root/dev/null"}}}, true);
  EXPECT_EQ(elsewhere.denied(Shares{}).value(), "c1:3") << "only /dev is elsewhere";
  unsetenv("SCORED_DEVICES");
}

TEST(CountedDevices, NamesTheFileThatIsMissing) {
  const CountedDevices devices({{{"gpu", 2}, {"/no/such", "/etc/passwd"}}}, true);
  EXPECT_EQ(devices.denied(Shares{}).value(), "") << "none of them can be opened";
  const auto missing = devices.denied(Shares{{"gpu", {0}}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().context(), "gpu 0: /no/such");
  const auto file = devices.denied(Shares{{"gpu", {1}}});
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().context(), "gpu 1: /etc/passwd is not a device");
}

}  // namespace
}  // namespace score::node
