#include "scout/session/words.hpp"

#include <gtest/gtest.h>

namespace score::scout {
namespace {

std::string moment(std::int64_t wall_ns) {
  JsonWriter json(JsonWriter::Layout::Line);
  write_moment(json.begin_object(), "t", wall_ns);
  return json.end_object().take();
}

TEST(Words, MomentsKeepTheirMillisecondsAndAreNeverRoundedUp) {
  EXPECT_EQ(moment(1'795'294'384'802'999'999), R"({"t":1795294384.802})");
  EXPECT_EQ(moment(1'795'294'384'999'999'999), R"({"t":1795294384.999})");
  EXPECT_EQ(moment(1'795'294'384'000'000'000), R"({"t":1795294384.000})");
  EXPECT_EQ(moment(0), R"({"t":0})");
}

TEST(Words, AnErrorAboutAJobNamesItOnce) {
  const Error none = fail(Errc::NotFound, "no job 9");
  EXPECT_EQ(about_job(none, 9).context(), "no job 9");
  EXPECT_EQ(about_job(none, 99).context(), "job 99: no job 9");
  EXPECT_EQ(about_job(fail(Errc::NotFound, "no job 99"), 9).context(), "job 9: no job 99");
  EXPECT_EQ(about_job(fail(Errc::WrongState, "job 9 has ended"), 9).context(), "job 9 has ended");
  EXPECT_EQ(about_job(fail(Errc::Denied, "only its owner may"), 9).context(),
            "job 9: only its owner may");
}

}  // namespace
}  // namespace score::scout
