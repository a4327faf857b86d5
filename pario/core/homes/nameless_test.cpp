#include "pario/core/homes/nameless.hpp"

#include <gtest/gtest.h>

namespace score::pario {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr FileId kNameless = make_id(5, 0);

TEST(NamelessFiles, FileIsKeptForOtherClients) {
  NamelessFiles files;
  EXPECT_FALSE(files.is_needed(kNameless, 1, 0));
  files.asked(kNameless, 1, false, 0);
  EXPECT_FALSE(files.is_needed(kNameless, 1, 1)) << "only the one who removes it has asked";
  EXPECT_TRUE(files.is_needed(kNameless, 2, 1));
  files.keep(kNameless);
  EXPECT_TRUE(files.expired(10, kSecond).empty());
  EXPECT_FALSE(files.is_needed(kNameless, 2, NamelessFiles::kAskedNs));
  EXPECT_EQ(files.expired(10, NamelessFiles::kAskedNs), std::vector<FileId>{kNameless});
  EXPECT_EQ(files.expired(0, NamelessFiles::kAskedNs), std::vector<FileId>{});
  files.forget(kNameless);
  EXPECT_TRUE(files.expired(10, NamelessFiles::kAskedNs).empty());
}

TEST(NamelessFiles, OpeningClientKeepsItsOwnFile) {
  NamelessFiles files;
  files.asked(kNameless, 1, true, 0);
  EXPECT_TRUE(files.is_needed(kNameless, 1, kSecond));
}

TEST(NamelessFiles, ReportOfOpenFileExtendsTime) {
  NamelessFiles files;
  files.keep(kNameless);
  for (std::int64_t now = 0; now < 100 * kSecond; now += 2 * kSecond) {
    files.opened(kNameless, 3, now);
    EXPECT_TRUE(files.expired(10, now + kSecond).empty());
  }
  EXPECT_EQ(files.expired(10, 200 * kSecond).size(), 1U);
}

}  // namespace
}  // namespace score::pario
