#include "scout/session/words.hpp"

#include <gtest/gtest.h>

namespace score::scout {
namespace {

std::string moment(std::int64_t wall_ns) {
  JsonWriter json(JsonWriter::Layout::Line);
  write_moment(json.begin_object(), "t", wall_ns);
  return json.end_object().take();
}

TEST(Words, MomentsAreRoundedDownToMilliseconds) {
  EXPECT_EQ(moment(1'795'294'384'802'999'999), R"({"t":1795294384.802})");
  EXPECT_EQ(moment(1'795'294'384'999'999'999), R"({"t":1795294384.999})");
  EXPECT_EQ(moment(1'795'294'384'000'000'000), R"({"t":1795294384.000})");
  EXPECT_EQ(moment(0), R"({"t":0})");
}

TEST(Words, ErrorAboutJobNamesItOnce) {
  const Error none = fail(Errc::NotFound, "no job 9");
  EXPECT_EQ(about_job(none, 9).context(), "no job 9");
  EXPECT_EQ(about_job(none, 99).context(), "job 99: no job 9");
  EXPECT_EQ(about_job(fail(Errc::NotFound, "no job 99"), 9).context(), "job 9: no job 99");
  EXPECT_EQ(about_job(fail(Errc::WrongState, "job 9 has ended"), 9).context(), "job 9 has ended");
  EXPECT_EQ(about_job(fail(Errc::Denied, "only its owner may"), 9).context(),
            "job 9: only its owner may");
}

TEST(Words, JobsStepsAndArrayTasksAreParsed) {
  const auto read = [](std::string_view word) {
    const auto job = parse_job_word(word);
    if (!job) return job.error().context();
    return fmt::format("{} {}{}", job->job, job->tasks,
                       job->step ? fmt::format(" step {}", *job->step) : "");
  };
  EXPECT_EQ(read("12"), "12 ");
  EXPECT_EQ(read("12_7"), "12 7");
  EXPECT_EQ(read("12_[1-5,9]"), "12 1-5,9");
  EXPECT_EQ(read("12.0"), "12  step 0");
  EXPECT_EQ(read("12_7.3"), "12 7 step 3");
  for (const char* word :
       {"",       "_",        "x",      "12_",    "_7",       "12_x", "12_[", "12_[]",
        "12_1-5", "12_[5-1]", "12_7_8", "0_1",    "12_-1",    ".",    "12.",  ".0",
        "12.x",   "12.-1",    "12.0.1", "12.0_7", "12_[1.5]", "12_.0"}) {
    EXPECT_FALSE(parse_job_word(word)) << word;
  }
}

}  // namespace
}  // namespace score::scout
