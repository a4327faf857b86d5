#include "scout/doctor/probe_report.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::scout {
namespace {

constexpr std::string_view kOutput =
    "1: node\tnode01\t1\n"
    "0: node\tnode00\t0\n"
    "0: memlock\t8388608\t18446744073709551615\n"
    "0: shm\t67108864\n"
    "0: pm\t1.1\t/usr/lib/libfabric\n"
    "0: mpi\t/usr/lib/libmpi.so.40\t-\n"
    "0: mpi\t/usr/lib/libmpich.so.12\tonly \x1b[31mUCX\n"
    "1: pm\t-\t-\n"
    "0: part\tscored-pmix\there\n"
    "1: part\tscored-pmix\tmissing\n"
    "1: part\tscored-pmix\tmissing\n"
    "1: part\tnonsense\tmissing\n"
    "1: network\tno such device\n"
    "1: readable\t/x/scored-pmix\n"
    "0: pair\t1\t12345\t900000000\n"
    "1: pair\t2\t-\t0\n";

TEST(ProbeReport, FactsOfEachNodeAreParsed) {
  const auto report = parse_probe_report(kOutput);
  ASSERT_EQ(report.nodes.size(), 2U);
  EXPECT_EQ(report.nodes[0].name, "node00");
  EXPECT_EQ(report.nodes[0].memlock, ~std::uint64_t{0});
  EXPECT_EQ(report.nodes[0].shm, 67'108'864U);
  EXPECT_EQ(report.nodes[1].shm, 0U);
  EXPECT_EQ(report.nodes[0].pm, "1.1");
  EXPECT_EQ(report.nodes[0].provider, "/usr/lib/libfabric");
  ASSERT_EQ(report.nodes[0].mpis.size(), 2U);
  EXPECT_EQ(report.nodes[0].mpis[0].objection, "");
  EXPECT_EQ(report.nodes[0].mpis[1].objection, "only \\x1b[31mUCX");
  EXPECT_EQ(report.nodes[1].pm, "");
  EXPECT_EQ(report.nodes[1].network_error, "no such device");
  EXPECT_TRUE(report.nodes[0].missing_parts.empty());
  EXPECT_TRUE(report.nodes[0].readable_programs.empty());
  EXPECT_EQ(report.nodes[1].readable_programs, std::vector<std::string>{"/x/scored-pmix"});
  EXPECT_EQ(report.nodes[1].missing_parts, std::vector<std::string_view>{"scored-pmix"});
}

TEST(ProbeReport, PairsHaveTheNamesOfNodes) {
  const auto report = parse_probe_report(kOutput);
  ASSERT_EQ(report.pairs.size(), 1U);  // rank 2 printed nothing
  EXPECT_EQ(report.pairs[0].from, "node00");
  EXPECT_EQ(report.pairs[0].to, "node01");
  EXPECT_EQ(report.pairs[0].round_trip_ns, 12345);
  EXPECT_EQ(report.pairs[0].bytes_per_second, 9e8);
}

TEST(ProbeReport, TruncatedAndRandomTextIsHandled) {
  for (std::size_t size = 0; size <= kOutput.size(); ++size) {
    EXPECT_LE(parse_probe_report(kOutput.substr(0, size)).nodes.size(), 2U);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string text(kOutput);
    for (int j = 0; j < 8; ++j) text[random() % text.size()] = static_cast<char>(random());
    const auto report = parse_probe_report(text);
    EXPECT_LE(report.nodes.size(), 10U);
  }
}

}  // namespace
}  // namespace score::scout
