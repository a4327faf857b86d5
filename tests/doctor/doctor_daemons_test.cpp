// The daemons' own code makes the messages here, so that a verdict cannot depend on a value that no
// daemon sends.
#include "scored/node/facts.hpp"
#include "scout/doctor/verdicts.hpp"
#include "tests/support/head/head_fixture.hpp"

#include <filesystem>
#include <fstream>

namespace score {
namespace {

using node::SwitchPriority;

class DoctorOfDaemons : public head::HeadFixture {
 protected:
  // Returns the head's facts about its only node, whose hello has `switching`.
  scout::Evidence evidence_of(const wire::Switching& switching) {
    wire::NodeHello hello = proto::make_hello(base::NodeHello{{"n0", 1, Bytes(1 << 30)}, {}, {}});
    *hello.mutable_switching() = switching;
    const auto connection = std::make_shared<head::FakeConnection>("node");
    session_ =
        std::make_unique<head::NodeSession>(head_->for_nodes(), clock_, NodeId(0), connection);
    EXPECT_TRUE(session_->greet({proto::frame_type<wire::NodeHello>(), hello.SerializeAsString()}));
    head::FakeClient client = connect(head::kAlice);
    client.say(wire::ListNodes());
    scout::Evidence evidence;
    evidence.nodes = client.connection->all<wire::NodeList>().at(0);
    client.say(wire::GetInfo());
    evidence.info = client.connection->all<wire::Info>().at(0);
    evidence.why_no_facts = evidence.why_no_probe = "not asked";
    return evidence;
  }

  static scout::Finding finding(const scout::Evidence& evidence, std::string_view check) {
    for (const scout::Finding& one : scout::judge(evidence)) {
      if (one.check == check) return one;
    }
    ADD_FAILURE() << "no finding of " << check;
    return {};
  }

 private:
  std::unique_ptr<head::NodeSession> session_;
};

TEST_F(DoctorOfDaemons, RealTimeSwitcherIsFine) {
  const auto evidence = evidence_of(node::describe_switching(true, SwitchPriority::RealTime));
  const auto found = finding(evidence, "priority");
  EXPECT_EQ(found.level, scout::Level::Ok) << found.line();
}

TEST_F(DoctorOfDaemons, SwitcherWithNiceValueIsNamed) {
  const auto found =
      finding(evidence_of(node::describe_switching(true, SwitchPriority::Nice)), "priority");
  EXPECT_EQ(found.level, scout::Level::Warning);
  EXPECT_NE(found.line().find("no real-time priority (nice)"), std::string::npos) << found.line();
}

TEST_F(DoctorOfDaemons, SwitcherWithoutPriorityIsNamed) {
  const auto found =
      finding(evidence_of(node::describe_switching(false, SwitchPriority::None)), "priority");
  EXPECT_EQ(found.level, scout::Level::Warning);
  EXPECT_NE(found.line().find("(tasks lowered)"), std::string::npos) << found.line();
}

TEST_F(DoctorOfDaemons, NodeWithoutPmNetworkIsReachedAsConfigured) {
  const auto found =
      finding(evidence_of(node::describe_switching(true, SwitchPriority::RealTime)), "control");
  EXPECT_EQ(found.level, scout::Level::Ok) << found.line();
}

// Each file of a node has a role, and each role has its own rule in the verdicts.
TEST(DoctorOfNodeFiles, KeyThatOthersCanReadIsAFault) {
  const auto directory =
      std::filesystem::temp_directory_path() / fmt::format("doctor.{}", getpid());
  std::filesystem::create_directory(directory);
  node::NodeConfig config;
  config.key_file = directory / "key";
  config.file = directory / "scored.toml";
  config.launcher_dir = directory;
  for (const auto& path : {config.key_file, config.file, config.launcher_dir + "/launcher.sock"}) {
    std::ofstream(path) << "x";
    std::filesystem::permissions(path, std::filesystem::perms(0644));
  }
  const wire::HostFacts facts = node::collect_facts(config, nullptr);
  std::filesystem::remove_all(directory);
  scout::Findings found;
  for (const wire::FileFact& file : facts.files()) {
    scout::judge_file({"n0", facts.user(), scout::kInstalledRemedies}, file, found);
  }
  std::string all;
  for (const auto& one : found.all()) all += one.line() + "\n";
  EXPECT_NE(all.find("has mode 0644: others can use it: chmod 600"), std::string::npos) << all;
  EXPECT_NE(all.find("has mode 0644: others can connect: chmod 600"), std::string::npos) << all;
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 2) << all;
}

}  // namespace
}  // namespace score
