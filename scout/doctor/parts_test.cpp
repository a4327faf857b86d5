#include "scout/doctor/parts.hpp"

#include <gtest/gtest.h>

namespace score::scout {
namespace {

Evidence three_nodes() {
  Evidence evidence;
  evidence.probe.emplace();
  for (const char* name : {"n0", "n1", "n2"}) {
    evidence.probe->nodes.emplace_back();
    evidence.probe->nodes.back().name = name;
  }
  evidence.probe->nodes[1].missing_parts = {"scored-pmix", "fusermount3"};
  evidence.probe->nodes[2].missing_parts = {"scored-pmix"};
  return evidence;
}

TEST(Parts, PageNamesTheNodesThatLackAPart) {
  const auto page = parts_page(three_nodes());
  EXPECT_NE(
      page.find("parts   scored-pmix              not on n[1-2], for jobs of Open MPI: install "
                "the package scored-node, or build with libpmix-dev\n"),
      page.npos)
      << page;
  EXPECT_NE(page.find("scored-pario             on all nodes\n"), page.npos) << page;
}

TEST(Parts, PageGivesTheReasonWithoutAReport) {
  Evidence evidence;
  evidence.why_no_probe = "no node takes jobs";
  EXPECT_EQ(parts_page(evidence), "parts   unknown: no node takes jobs\n");
}

TEST(Parts, MissingPartIsOneWarning) {
  Findings found;
  judge_parts(*three_nodes().probe, found);
  ASSERT_EQ(found.all().size(), 2U);
  EXPECT_EQ(found.all()[0].line(),
            "n[1-2]: scored-pmix is missing, for jobs of Open MPI: install the package "
            "scored-node, or build with libpmix-dev");
}

}  // namespace
}  // namespace score::scout
