#include "monitor/metrics/exporter.hpp"

#include <gtest/gtest.h>

namespace score::monitor {
namespace {

testing::AssertionResult has(const std::string& text, const std::string& line) {
  if (text.find(line + "\n") != text.npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "no line '" << line << "' in\n" << text;
}

TEST(Exporter, WritesCountersAndGaugesWithHelpAndLabels) {
  Exporter out;
  out.counter("a_total", "Things.").value(3).value(1e300, {{"node", "n\"0\\\n"}, {"mode", "x"}});
  out.gauge("b_seconds", "").value(-1500ms).value(0.1, {{"node", "n0"}});
  const std::string text = out.text();
  EXPECT_TRUE(has(text, "# HELP a_total Things."));
  EXPECT_TRUE(has(text, "# TYPE a_total counter"));
  EXPECT_TRUE(has(text, "a_total 3"));
  EXPECT_TRUE(has(text, "a_total{mode=\"x\",node=\"n\\\"0\\\\\\n\"} 1.000000000000000e+300") ||
              has(text, "a_total{mode=\"x\",node=\"n\\\"0\\\\\\n\"} 1e+300"));
  EXPECT_TRUE(has(text, "# TYPE b_seconds gauge"));
  EXPECT_TRUE(has(text, "b_seconds -1.5"));
  EXPECT_TRUE(has(text, "b_seconds{node=\"n0\"} 0.1"));
}

TEST(Exporter, WritesCumulativeHistogram) {
  TimeHistogram lengths;
  lengths.add(30us);
  lengths.add(20us);
  lengths.add(5s);
  Exporter out;
  out.histogram("c_seconds", "Lengths.").distribution(lengths, {{"phase", "go"}});
  const std::string text = out.text();
  EXPECT_TRUE(has(text, "c_seconds_count{phase=\"go\"} 3"));
  EXPECT_TRUE(has(text, "c_seconds_sum{phase=\"go\"} 5.00005"));
  EXPECT_TRUE(has(text, "c_seconds_bucket{phase=\"go\",le=\"2e-05\"} 1"));
  EXPECT_TRUE(has(text, "c_seconds_bucket{phase=\"go\",le=\"0.2\"} 2"));
  EXPECT_TRUE(has(text, "c_seconds_bucket{phase=\"go\",le=\"+Inf\"} 3"));
}

TEST(Exporter, LeavesOutAFamilyWithoutValues) {
  Exporter out;
  out.counter("a_total", "Things.");
  EXPECT_EQ(out.text(), "");
}

TEST(Exporter, ExportsTotalsOfNodeAndProcess) {
  Exporter out;
  NodeTotals totals;
  totals.switches = 7;
  totals.overhead = {.wake = 1s, .go = 1500ms};
  export_node(out, totals);
  export_process(out);
  const std::string text = out.text();
  EXPECT_TRUE(has(text, "scored_gang_switches_total 7"));
  EXPECT_TRUE(has(text, "scored_gang_overhead_seconds_total{part=\"wake\"} 1"));
  EXPECT_TRUE(has(text, "scored_gang_overhead_seconds_total{part=\"go\"} 1.5"));
  EXPECT_TRUE(has(text, "# TYPE process_resident_memory_bytes gauge"));
}

TEST(TimeHistogram, CountsALengthUnderItsBound) {
  TimeHistogram lengths;
  lengths.add(20us);
  lengths.add(21us);
  lengths.add(1h);
  EXPECT_EQ(lengths.counts[0], 1U);
  EXPECT_EQ(lengths.counts[1], 1U);
  EXPECT_EQ(lengths.counts.back(), 1U);
}

}  // namespace
}  // namespace score::monitor
