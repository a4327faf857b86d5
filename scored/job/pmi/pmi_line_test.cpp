#include "scored/job/pmi/pmi_line.hpp"

#include "base/errc.hpp"
#include "base/limits.hpp"

#include <gtest/gtest.h>

namespace score::shepherd {
namespace {

TEST(PmiLine, ReadsNameAndArguments) {
  const auto command = parse_pmi_line("cmd=put kvsname=kvs_1  key=a value=b=c");
  ASSERT_TRUE(command.has_value());
  EXPECT_EQ(command->name, "put");
  EXPECT_EQ(command->find("kvsname"), "kvs_1");
  EXPECT_EQ(command->find("value"), "b=c");
  EXPECT_EQ(command->find("nothing"), std::nullopt);
}

TEST(PmiLine, AbortMessageExtendsToLineEnd) {
  const auto command = parse_pmi_line("cmd=abort exitcode=3 message=no more = memory");
  ASSERT_TRUE(command.has_value());
  EXPECT_EQ(command->find("exitcode"), "3");
  EXPECT_EQ(command->find("message"), "no more = memory");
}

TEST(PmiLine, ServiceNameMayContainBlanks) {
  const auto published = parse_pmi_line("cmd=publish_name service= my port=of call  port=tag#0$x$");
  ASSERT_TRUE(published.has_value());
  EXPECT_EQ(published->find("service"), " my port=of call ");
  EXPECT_EQ(published->find("port"), "tag#0$x$");
  for (const std::string name : {"lookup_name", "unpublish_name"}) {
    const auto command = parse_pmi_line("cmd=" + name + " service=my  service ");
    ASSERT_TRUE(command.has_value());
    EXPECT_EQ(command->find("service"), "my  service ");
  }
  EXPECT_FALSE(parse_pmi_line("cmd=put key=my service").has_value());
}

TEST(PmiLine, RefusesInvalidCommands) {
  for (const std::string_view line : {"", " ", "cmd", "cmd=", "=x", "put key=a", "cmd=put key",
                                      "cmd=put =v", "cmd=put k=\x01", "mcmd=spawn"}) {
    EXPECT_FALSE(parse_pmi_line(line).has_value()) << line;
  }
}

TEST(PmiLineReader, JoinsPiecesAndSplitsLines) {
  PmiLineReader reader;
  const std::string text = "one\ntwo\n\nthree";
  std::vector<std::string> lines;
  for (const char c : text) {
    reader.feed({&c, 1});
    for (auto line = reader.next(); line && *line; line = reader.next()) lines.emplace_back(**line);
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", ""}));
}

TEST(PmiLineReader, RefusesEndlessLine) {
  PmiLineReader reader;
  reader.feed(std::string(base::limits::kMaxPmiLineBytes, 'x'));
  EXPECT_TRUE(reader.next().has_value());
  reader.feed("x");
  for (int again = 0; again < 2; ++again) {
    const auto line = reader.next();
    ASSERT_FALSE(line.has_value());
    EXPECT_TRUE(line.error().is(base::Errc::TooLarge));
  }
}

}  // namespace
}  // namespace score::shepherd
