// Our text is the library's text.
#include "monitor/http/exporter.hpp"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <sstream>

namespace score::monitor {
namespace {

std::string of_library(const Exporter& exporter) {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, exporter.families());
  return out.str();
}

TEST(Exporter, WritesWhatTheLibraryWrites) {
  Exporter out;
  out.counter("a_total", "Things.").value(3).value(1e300, {{"node", "n\"0\\\n"}, {"mode", "x"}});
  out.gauge("b_seconds", "").value(0.1).value(-1.5e-9).value(1.0 / 3);
  TimeHistogram lengths;
  lengths.add(30us);
  lengths.add(20us);
  lengths.add(5s);
  out.histogram("c_seconds", "Lengths.").distribution(lengths, {{"phase", "go"}});
  out.histogram("d_seconds", "None.").distribution(WaitHistogram());
  EXPECT_EQ(out.text(), of_library(out));
}

TEST(Exporter, SaysWhatANodeAndAProcessDid) {
  Exporter out;
  NodeTotals totals;
  totals.switches = 7;
  totals.lost = 1500ms;
  export_node(out, totals);
  export_process(out);
  EXPECT_EQ(out.text(), of_library(out));
  EXPECT_NE(out.text().find("scored_gang_switches_total 7\n"), std::string::npos);
  EXPECT_NE(out.text().find("scored_gang_overhead_seconds_total 1.5\n"), std::string::npos);
}

TEST(TimeHistogram, PutsALengthUnderItsBound) {
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
