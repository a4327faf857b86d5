#include "scout/session/command.hpp"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace score::scout {
namespace {

// Checks that the help of an application has the line, whatever blanks separate its columns.
void expect_line(const CLI::App& app, const std::string& left, const std::string& right) {
  const std::string help = app.help();
  const auto at = help.find("  " + left + " ");
  ASSERT_NE(at, help.npos) << help;
  const auto text = help.find_first_not_of(" \n", at + 2 + left.size());
  EXPECT_EQ(help.substr(text, help.find('\n', text) - text), right) << help;
}

TEST(Help, RangesAreInWords) {
  unsigned nodes = 0;
  int priority = 0;
  double watch = 0;
  CLI::App app;
  describe(app, {.name = "x", .args = {}}, "Does x");
  app.add_option("--nodes", nodes, "Virtual nodes (4)")->check(CLI::Range(1U, 4096U));
  app.add_option("--nice", priority, "Nice")->type_name("P")->check(CLI::Range(-9, 9));
  app.add_option("--watch", watch, "Repeat (default: 2)")
      ->type_name("N")
      ->expected(0, 1)
      ->default_str("2")
      ->check(CLI::Range(0.1, 3600.0));
  expect_line(app, "--nodes N", "Virtual nodes; from 1 to 4096 (4)");
  expect_line(app, "--nice P", "Nice; from -9 to 9");
  expect_line(app, "--watch [N]", "Repeat; from 0.1 to 3600 (default: 2)");
}

TEST(Help, ChoicesHaveNoBraces) {
  std::string mode, color;
  CLI::App app;
  describe(app, {.name = "x", .args = {}}, "Does x");
  app.add_option("--mode", mode, "Mode")->check(CLI::IsMember({"block", "cyclic"}));
  app.add_option("--color", color, "Colours")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "never"}));
  expect_line(app, "--mode block|cyclic", "Mode");
  expect_line(app, "--color WHEN", "Colours");
}

TEST(Help, ListsRequiredAndExcludedOptionsAreMarked) {
  std::vector<std::string> nodes, users;
  std::string token;
  bool is_on = false, is_off = false;
  CLI::App app;
  describe(app, {.name = "x", .args = {}}, "Does x");
  app.add_option("--nodes", nodes, "Nodes")->type_name("NODES");
  app.add_option("--users", users, "Users")->type_name("USER,...");
  app.add_option("--token", token, "Token")->type_name("TOKEN")->required();
  auto* on = app.add_flag("--on", is_on, "Turn on");
  app.add_flag("--off", is_off, "Turn off")->excludes(on);
  expect_line(app, "--nodes NODES ...", "Nodes");
  expect_line(app, "--users USER,...", "Users");
  expect_line(app, "--token TOKEN (required)", "Token");
  expect_line(app, "--on", "Turn on; not with --off");
  expect_line(app, "--off", "Turn off; not with --on");
}

}  // namespace
}  // namespace score::scout
