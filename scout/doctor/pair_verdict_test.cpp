#include "scout/doctor/pair_verdict.hpp"

#include <gtest/gtest.h>

namespace score::scout {
namespace {

// Returns a report with all pairs of n nodes, 20 us and 1 GB/s each.
ProbeReport report_of(int n) {
  ProbeReport report;
  const auto name = [](int i) { return "node0" + std::to_string(i); };
  for (int i = 0; i < n; ++i) {
    ProbedNode node;
    node.name = name(i);
    report.nodes.push_back(node);
    for (int j = i + 1; j < n; ++j) report.pairs.push_back({name(i), name(j), 20'000, 1e9});
  }
  return report;
}

void silence(ProbeReport& report, const std::string& node) {
  for (auto& pair : report.pairs) {
    if (pair.from == node || pair.to == node) pair.round_trip_ns.reset();
  }
}

std::vector<Finding> judge(const ProbeReport& report) {
  Findings found;
  judge_pairs(report, kInstalledRemedies, found);
  return found.all();
}

TEST(PairVerdict, AllPairsThatAnswerAreOk) {
  const auto found = judge(report_of(4));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].level, Level::Ok);
  EXPECT_EQ(found[0].text, "PM connects 6 pairs of 4 nodes: median round trip 20 us, 1.0 GB/s");
  EXPECT_EQ(judge(report_of(1))[0].level, Level::Ok);
}

TEST(PairVerdict, DisconnectedNodeIsNamed) {
  auto report = report_of(4);
  silence(report, "node02");
  const auto found = judge(report);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].level, Level::Fault);
  EXPECT_EQ(found[0].nodes, std::vector<std::string>{"node02"});
  EXPECT_NE(found[0].remedy.find("firewall"), std::string::npos);
}

TEST(PairVerdict, SilentPairOfConnectedNodesIsNamed) {
  auto report = report_of(4);
  report.pairs[1].round_trip_ns.reset();
  const auto found = judge(report);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].text, "PM does not connect node00 and node02");
}

TEST(PairVerdict, SilenceOfAllIsReportedOnce) {
  auto report = report_of(3);
  for (const auto* node : {"node00", "node01", "node02"}) silence(report, node);
  const auto found = judge(report);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].text, "PM reaches none of 3 pairs of nodes");
}

TEST(PairVerdict, MuchSlowerPairIsAWarning) {
  auto report = report_of(4);
  report.pairs[3].bytes_per_second = 12e6;
  auto found = judge(report);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].level, Level::Warning);
  EXPECT_NE(found[0].text.find("node01 and node02: round trip 20 us, 12 MB/s"), std::string::npos);
  report.pairs[3] = {"node01", "node02", 30'000'000, 1e9};
  EXPECT_EQ(judge(report)[0].level, Level::Warning);
  report.pairs[3] = {"node01", "node02", 900'000, 1e9};
  EXPECT_EQ(judge(report)[0].level, Level::Ok);
}

TEST(PairVerdict, BandwidthThatIsNotMeasuredIsNoNumber) {
  auto report = report_of(4);
  report.pairs[3].bytes_per_second.reset();
  auto found = judge(report);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].level, Level::Warning);
  EXPECT_EQ(found[0].text,
            "the bandwidth of node01 and node02 is not measured: 4 MiB take longer than 4 s");
  for (auto& pair : report.pairs) pair.bytes_per_second.reset();
  report.pairs[0].round_trip_ns = 30'000'000;
  found = judge(report);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].text,
            "node00 and node01: round trip 30000 us, bandwidth not measured; the median of all "
            "pairs is 20 us, bandwidth not measured");
  EXPECT_EQ(found[1].text, "the bandwidth of 6 pairs is not measured: 4 MiB take longer than 4 s");
}

TEST(PairVerdict, FailureToOpenPmIsReported) {
  auto report = report_of(2);
  report.nodes[1].network_error = "No such device";
  const auto found = judge(report);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].line().substr(0, 47), "node01: PM cannot be opened: No such device: se");
}

}  // namespace
}  // namespace score::scout
