#include "proto/documents/accounting_document.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace score::proto {
namespace {

wire::AccountingRow row() {
  wire::AccountingRow made;
  made.set_job(7);
  made.set_name("a,\"b\"\nc");
  made.set_cores(2);
  made.set_started_wall_ns(1'000'000'000);
  made.set_ended_wall_ns(11'000'000'000);
  made.set_scheduled_ns(5'000'000'000);
  return made;
}

TEST(AccountingDocument, TimesAndSharesOfARecord) {
  EXPECT_EQ(elapsed_ns(row()), 10'000'000'000);
  EXPECT_DOUBLE_EQ(share_of(row()), 0.5);
  EXPECT_DOUBLE_EQ(core_hours_of(row()), 10.0 / 3600);
  EXPECT_EQ(share_of(wire::AccountingRow()), 0);
}

TEST(AccountingDocument, CellsAreQuotedWhereNeeded) {
  EXPECT_EQ(csv_line({"a", "b c", "", "d,e", "f\"g"}), "a,b c,,\"d,e\",\"f\"\"g\"\n");
  EXPECT_NE(csv_record(row()).find("\"a,\"\"b\"\"\nc\""), std::string::npos);
}

TEST(AccountingDocument, RecordHasTheColumnsOfItsHeader) {
  wire::AccountingRow plain;
  EXPECT_EQ(std::ranges::count(csv_record(plain), ','), std::ranges::count(csv_header(), ','));
}

}  // namespace
}  // namespace score::proto
