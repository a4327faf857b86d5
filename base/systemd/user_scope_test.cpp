#include "base/systemd/user_scope.hpp"

#include "base/os/cgroup.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace score {
namespace {

TEST(UserScope, WithoutAUserManagerNothingChanges) {
  setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
  setenv("XDG_RUNTIME_DIR", "/nonexistent", 1);
  const auto before = own_cgroup();
  EXPECT_FALSE(join_user_scope());
  const auto after = own_cgroup();
  ASSERT_EQ(before.has_value(), after.has_value());
  EXPECT_TRUE(!before || *before == *after);
}

}  // namespace
}  // namespace score
