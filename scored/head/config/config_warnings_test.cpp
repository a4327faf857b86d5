#include "scored/head/config/config_warnings.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace score::head {
namespace {

const HostLookups kHost{[](const std::string& name) { return name == "alice" || name == "1000"; },
                        [](const std::string& name) { return name == "physics"; },
                        [](const std::string& path) { return path == "/there"; }};

std::vector<std::string> warnings(const std::string& lines) {
  const auto config = parse_config("[head]\nnodes = \"a\"\n" + lines, "x.toml");
  EXPECT_TRUE(config) << config.error().message();
  return config ? config_warnings(*config, kHost) : std::vector<std::string>{"bad"};
}

TEST(ConfigWarnings, SoundConfigurationHasNone) {
  EXPECT_TRUE(warnings("").empty());
  EXPECT_TRUE(warnings("operators = [\"alice\", \"1000\"]\noperator_group = \"physics\"\n"
                       "[limits]\nexempt = [\"@physics\"]\n"
                       "[accounts.a]\nusers = [\"alice\", \"@physics\"]\n")
                  .empty());
}

TEST(ConfigWarnings, NameUnknownUsersAndGroups) {
  const auto found = warnings(
      "operators = [\"bob\"]\noperator_group = \"admins\"\n[limits]\nexempt = [\"@none\"]\n"
      "[accounts.a]\nusers = [\"alice\", \"carol\", \"@wheel\"]\n");
  EXPECT_EQ(found, (std::vector<std::string>{"[head] operators: no user bob on this host",
                                             "[head] operator_group: no group admins on this host",
                                             "[limits] exempt: no group none on this host",
                                             "[accounts.a] users: no user carol on this host",
                                             "[accounts.a] users: no group wheel on this host"}));
}

TEST(ConfigWarnings, NameLimitsThatExcludeEachOther) {
  EXPECT_EQ(warnings("long_limit = \"2h\""),
            (std::vector<std::string>{"[head] long_limit: 2h is above long_shared, 1h, so no two "
                                      "long jobs share nodes"}));
  EXPECT_TRUE(warnings("long_limit = \"2h\"\nlong_shared = \"0s\"").empty());
}

TEST(ConfigWarnings, NameMissingFiles) {
  const auto found = warnings(
      "[monitor]\nlisten = \"0.0.0.0:8443\"\nnames = [\"a:8443\"]\ntls_certificate = \"/there\"\n"
      "tls_key = \"/gone\"\ntoken_file = \"/there\"\n");
  EXPECT_EQ(
      found,
      (std::vector<std::string>{"[monitor] tls_key: cannot read /gone; the head will not start"}));
}

}  // namespace
}  // namespace score::head
