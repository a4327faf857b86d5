#include "scored/node/config.hpp"

#include "base/os/fd.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <unistd.h>

namespace score::node {
namespace {

TEST(NodeConfig, ReadsItsTable) {
  const auto config = parse_config(
      "[node]\n"
      "cluster = \"alpha\"\nname = \"n1\"\nhead = \"head:7000\"\nkey_file = \"/k\"\n"
      "run_dir = \"/r\"\ncgroup_root = \"none\"\ncores = 8\nfirst_core = 3\nconfine_cores = "
      "\"off\"\nmemory = \"16G\"\n"
      "method = \"signal\"\npriority = \"normal\"\nlog_level = \"debug\"\n"
      "[head]\nwhatever = 1\n",
      "x.toml");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->cluster, "alpha");
  EXPECT_EQ(config->name, "n1");
  EXPECT_EQ(proto::format_endpoint(config->head), "head:7000");
  EXPECT_EQ(config->cores, 8U);
  EXPECT_EQ(config->first_core, 3U);
  EXPECT_FALSE(config->confine_cores);
  EXPECT_EQ(config->memory, parse_bytes("16G").value());
  EXPECT_EQ(config->method, SwitchMethod::Signal);
  EXPECT_EQ(config->priority, PriorityChoice::Normal);
  EXPECT_EQ(config->log_level, LogLevel::Debug);
}

TEST(NodeConfig, ReadsTwoHeads) {
  const auto read = [](const std::string& lines) { return parse_config("[node]\n" + lines, "x"); };
  const auto config = read("heads = [\"a:1\", \"b:2\"]");
  ASSERT_TRUE(config) << config.error().message();
  ASSERT_EQ(config->heads.size(), 2U);
  EXPECT_EQ(proto::format_endpoint(config->heads[1]), "b:2");
  EXPECT_EQ(proto::format_endpoint(config->head), "a:1");
  EXPECT_TRUE(read("")->heads.empty());
  EXPECT_FALSE(read("heads = [\"a:1\"]"));
  EXPECT_FALSE(read("heads = [\"a:1\", \"a:1\"]"));
  EXPECT_FALSE(read("heads = [\"a:1\", \"x\"]"));
  EXPECT_FALSE(read("head = \"a:1\"\nheads = [\"a:1\", \"b:1\"]"));
}

TEST(NodeConfig, ReportsPlaceAndCauseOfFaults) {
  const auto message = [](std::string_view line) {
    const auto config = parse_config("[node]\n" + std::string(line) + "\n", "x.toml");
    return config ? "accepted" : config.error().context();
  };
  EXPECT_EQ(message("colour = 1"), "x.toml:2: unknown key 'node.colour'");
  EXPECT_EQ(message("cores = 0"), "x.toml:2: cores: 0 is not between 1 and 1024");
  EXPECT_EQ(message("head = \"nowhere\""), "x.toml:2: head: must be \"host:port\"");
  EXPECT_EQ(message("run_dir = \"here\""), "x.toml:2: run_dir: must be an absolute path");
  EXPECT_EQ(message("confine_cores = \"yes\""), "x.toml:2: confine_cores: use one of on, off");
  EXPECT_EQ(message("method = \"magic\""), "x.toml:2: method: use one of auto, freezer, signal");
  EXPECT_EQ(message("name = \"../x\""), "x.toml:2: name: letters, digits and '-' only, at most 63");
}

TEST(NodeConfig, LetsOptionsOverrideTheFile) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("node-config-" + std::to_string(getpid()));
  ASSERT_TRUE(replace_file(path, "[node]\nname = \"n1\"\ncores = 2\n", 0600));
  const auto line = read_command_line({"--role=node", "--config", path, "--name=n2"});
  unlink(path.c_str());
  ASSERT_TRUE(line) << line.error().message();
  EXPECT_EQ(line->config.name, "n2");
  EXPECT_EQ(line->config.cores, 2U);
  EXPECT_FALSE(line->check_only);
}

TEST(NodeConfig, RefusesABadCommandLine) {
  const auto message = [](std::vector<std::string> words) {
    words.insert(words.begin(), "--config=none");
    const auto line = read_command_line(words);
    return line ? "accepted" : line.error().context();
  };
  EXPECT_EQ(message({"--colour", "red"}), "unknown option --colour");
  EXPECT_EQ(message({"--cores"}), "--cores needs a value");
  EXPECT_EQ(message({"--cores=many"}), "--cores: many is not between 1 and 1024");
  EXPECT_EQ(message({"extra"}), "unexpected argument 'extra'");
  EXPECT_EQ(message({"--memory=0"}), "--memory: must be a size, such as \"16G\"");
}

TEST(NodeConfig, ExplainsEveryKey) {
  for (const char* key :
       {"cluster", "name", "head", "key-file", "run-dir", "cgroup-root", "cores", "confine-cores",
        "memory", "method", "priority", "log-level", "config", "check-config"}) {
    EXPECT_NE(usage().find("--" + std::string(key)), usage().npos) << key;
  }
}

}  // namespace
}  // namespace score::node
