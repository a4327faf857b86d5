#include "scored/head/store/store.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::head {
namespace {

namespace fs = std::filesystem;

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "score_store_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }

  void TearDown() override { fs::remove_all(directory_); }

  std::string file() const { return directory_ + "/jobs.db"; }

  std::string directory_;
};

AddJob add(std::uint64_t id, RequestId request = {}) {
  AddJob job;
  job.info.id = JobId(id);
  job.info.user = UserId(1000);
  job.info.request = request;
  job.info.name = "ring";
  job.info.command = "./ring 1";
  job.info.directory = "/home/a";
  job.info.resources = std::string("\0\1", 2);
  job.info.stdin_rank = 0;
  job.info.submitted = WallTime(5s);
  job.spec = "spec of " + std::to_string(id);
  job.info.spec_bytes = Bytes(job.spec.size());
  return job;
}

base::Usage some_usage() {
  base::Usage usage;
  usage.cpu_user = 3'000'000'001ns;
  usage.cpu_system = 7ms;
  usage.memory_peak = Bytes(400'000'000);
  usage.memory_peak_sum = Bytes(1'600'000'000);
  usage.page_faults = 12;
  usage.read = Bytes(1);
  usage.write = Bytes(100'000'000);
  usage.pm_messages = 5;
  usage.pm_sent = Bytes(1'000);
  usage.switches_voluntary = 8;
  usage.switches_involuntary = 9;
  usage.nodes_unknown = 1;
  return usage;
}

JobProgress placed(JobState state) {
  JobProgress progress;
  progress.state = state;
  progress.placement.attempt = AttemptId(257);
  progress.placement.nodes = {"node1", "node0"};
  progress.placement.tasks_on_node = {2, 1};
  progress.placement.cores = {{0, 3}, {}};
  progress.placement.units = {{{"gpu", {0, 3}}, {"nic", {1}}}, {}};
  progress.scheduled = 3ms;
  progress.filled = 4ms;
  progress.steps_usage = some_usage();
  progress.started = WallTime(7s);
  progress.start_mark = TimePoint(70s);
  progress.restarts = 2;
  return progress;
}

SaveEnd end_of(std::uint64_t id, std::string status = "status") {
  SaveEnd end;
  end.id = JobId(id);
  end.progress = placed(JobState::Failed);
  end.exit_code = 3;
  end.usage = some_usage();
  end.ended = WallTime(9s + std::chrono::seconds(id));
  end.status = std::move(status);
  end.profile = "profile of " + std::to_string(id);
  return end;
}

Status apply(Store& store, std::vector<Change> changes) {
  return store.apply(changes);
}

TEST_F(StoreTest, ReturnsActiveJobsUnchanged) {
  {
    Store store = Store::open(directory_).value();
    ASSERT_TRUE(apply(store, {add(1), add(2), SaveProgress{JobId(2), placed(JobState::Running)}}));
  }
  Store store = Store::open(directory_).value();
  const auto jobs = store.active_jobs().value();
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].info, add(1).info);
  EXPECT_EQ(jobs[0].progress, JobProgress());
  EXPECT_EQ(jobs[1].progress, placed(JobState::Running));
  EXPECT_EQ(store.last_job().value(), JobId(2));
}

TEST_F(StoreTest, RemembersHowAJobIsEnding) {
  JobProgress ending = placed(JobState::Completing);
  ending.ending = JobState::TimedOut;
  ending.exit_code = 124;
  ending.reasons = {"time limit 1.0s reached", "and more"};
  {
    Store store = Store::open(directory_).value();
    ASSERT_TRUE(apply(store, {add(1), SaveProgress{JobId(1), ending}}));
  }
  Store store = Store::open(directory_).value();
  EXPECT_EQ(store.active_jobs().value().at(0).progress, ending);
}

TEST_F(StoreTest, StoresUseTogetherWithProgress) {
  const UseSum first{"physics", UserId(1000), 90'000, WallTime(5s)};
  const UseSum other{"", UserId(1000), 7, WallTime(6s)};
  const UseSum last{"physics", UserId(1000), 120'000, WallTime(9s)};
  {
    Store store = Store::open(directory_).value();
    ASSERT_TRUE(apply(store, {add(1), SaveProgress{JobId(1), placed(JobState::Running), first}}));
    SaveEnd end{JobId(1), placed(JobState::Completed), 0, 0, {}, WallTime(9s), "x"};
    end.account = "physics";
    end.generic = "gpu:2";
    end.partition = "short";
    end.licenses = "matlab:2";
    end.use = last;
    ASSERT_TRUE(apply(store, {add(2), SaveProgress{JobId(2), {}, other}, end}));
  }
  Store store = Store::open(directory_).value();
  const auto uses = store.uses().value();
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0], other);
  EXPECT_EQ(uses[1], last);
  auto reader = StoreReader::open(store.path()).value();
  AccountQuery query;
  query.limit = 10;
  const auto rows = reader.accounting(query).value();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].account, "physics");
  EXPECT_EQ(rows[0].generic, "gpu:2");
  EXPECT_EQ(rows[0].partition, "short");
  EXPECT_EQ(rows[0].licenses, "matlab:2");
  EXPECT_EQ(rows[0].cores, 2u);
}

TEST_F(StoreTest, StartMarkIsValidOnlyInSameBoot) {
  {
    Store store = Store::open(directory_).value();
    ASSERT_TRUE(apply(store, {add(1), SaveProgress{JobId(1), placed(JobState::Running)}}));
  }
  EXPECT_EQ(Store::open(directory_).value().active_jobs().value().at(0).progress.start_mark,
            TimePoint(70s));
  for (const char* mark : {"5f0c0a4e-0000-4000-8000-000000000000 70000000000", "", "x", "x y"}) {
    {
      auto booted = Database::open(file(), Database::Mode::ReadWrite);
      ASSERT_TRUE(booted);
      ASSERT_TRUE(booted->execute(fmt::format("UPDATE jobs SET start_mark = '{}'", mark).c_str()));
    }
    const auto job = Store::open(directory_).value().active_jobs().value().at(0);
    EXPECT_EQ(job.progress.start_mark, TimePoint()) << mark;
    EXPECT_EQ(job.progress.started, WallTime(7s));
  }
}

TEST_F(StoreTest, EndsAJobOnceAndDropsItsSpecification) {
  Store store = Store::open(directory_).value();
  StoreReader reader = StoreReader::open(store.path()).value();
  ASSERT_TRUE(apply(store, {add(1)}));
  EXPECT_EQ(reader.spec(JobId(1)).value(), "spec of 1");
  EXPECT_TRUE(reader.ended_status(JobId(1)).error().is(Errc::NotFound));
  EXPECT_TRUE(reader.profile(JobId(1)).error().is(Errc::NotFound));
  ASSERT_TRUE(apply(store, {end_of(1, "first")}));
  ASSERT_TRUE(apply(store, {end_of(1, "second")}));
  EXPECT_TRUE(store.active_jobs().value().empty());
  EXPECT_TRUE(reader.spec(JobId(1)).error().is(Errc::NotFound));
  EXPECT_EQ(reader.ended_status(JobId(1)).value(), "first");
  EXPECT_EQ(reader.profile(JobId(1)).value(), "profile of 1");
}

TEST_F(StoreTest, FindsARequestOnlyForItsUser) {
  Store store = Store::open(directory_).value();
  StoreReader reader = StoreReader::open(store.path()).value();
  const RequestId request = RequestId::random();
  ASSERT_TRUE(apply(store, {add(1, request), add(2), add(3)}));
  EXPECT_EQ(reader.find_request(UserId(1000), request).value(), JobId(1));
  EXPECT_EQ(reader.find_request(UserId(1001), request).value(), std::nullopt);
  EXPECT_TRUE(apply(store, {add(4, request)}).error().is(Errc::Exists));
}

TEST_F(StoreTest, NeverReusesAJobNumber) {
  Store store = Store::open(directory_).value();
  ASSERT_TRUE(apply(store, {add(41), end_of(41)}));
  ASSERT_TRUE(store.prune(0));
  EXPECT_EQ(store.last_job().value(), JobId(41));
}

TEST_F(StoreTest, AppliesAllChangesOrNone) {
  Store store = Store::open(directory_).value();
  ASSERT_TRUE(apply(store, {add(1)}));
  EXPECT_FALSE(apply(store, {add(2), add(1)}));
  EXPECT_EQ(store.active_jobs().value().size(), 1u);
  EXPECT_TRUE(apply(store, {add(2)}));
}

TEST_F(StoreTest, CountsIncarnationsAndKeepsSettings) {
  {
    Store store = Store::open(directory_).value();
    EXPECT_EQ(store.begin_incarnation().value(), Epoch(1));
    ASSERT_TRUE(apply(store, {SaveSetting{"quantum", "50ms"}, SaveSetting{"slots", "4"}}));
    ASSERT_TRUE(apply(store, {SaveSetting{"slots", std::nullopt}}));
  }
  Store store = Store::open(directory_).value();
  EXPECT_EQ(store.begin_incarnation().value(), Epoch(2));
  const auto settings = store.settings().value();
  EXPECT_EQ(settings.at("quantum"), "50ms");
  EXPECT_EQ(settings.count("slots"), 0u);
}

TEST_F(StoreTest, KeepsChangedResources) {
  Store store = Store::open(directory_).value();
  ASSERT_TRUE(apply(store, {add(1), SaveResources{JobId(1), "heavier"}}));
  EXPECT_EQ(store.active_jobs().value().at(0).info.resources, "heavier");
}

TEST_F(StoreTest, KeepsChangedRequest) {
  Store store = Store::open(directory_).value();
  ASSERT_TRUE(apply(store, {add(1), SaveRequest{JobId(1), "heavier", "renamed", "later"}}));
  const JobInfo info = store.active_jobs().value().at(0).info;
  EXPECT_EQ(info.resources, "heavier");
  EXPECT_EQ(info.name, "renamed");
  EXPECT_EQ(info.conditions, "later");
  ASSERT_TRUE(apply(store, {end_of(1, "end"), SaveRequest{JobId(1), "x", "y", "z"}}));
  EXPECT_TRUE(store.active_jobs().value().empty());
}

TEST_F(StoreTest, EndRemovesARequestedRequeue) {
  Store store = Store::open(directory_).value();
  ASSERT_TRUE(apply(store, {add(1), SaveSetting{"requeue:1", "257 1 alice"}}));
  ASSERT_TRUE(apply(store, {end_of(1, "end")}));
  EXPECT_EQ(store.settings().value().count("requeue:1"), 0u);
}

TEST_F(StoreTest, ListsTheLatestEndedFirst) {
  Store store = Store::open(directory_).value();
  StoreReader reader = StoreReader::open(store.path()).value();
  for (std::uint64_t id = 1; id <= 5; ++id) {
    ASSERT_TRUE(apply(store, {add(id), end_of(id, std::to_string(id))}));
  }
  EXPECT_EQ(reader.lately_ended(std::nullopt, 2).value(), (std::vector<std::string>{"5", "4"}));
  EXPECT_EQ(reader.lately_ended(UserId(1000), 1).value(), std::vector<std::string>{"5"});
  EXPECT_TRUE(reader.lately_ended(UserId(1), 9).value().empty());
}

TEST_F(StoreTest, AccountingIsOrderedByEnd) {
  Store store = Store::open(directory_).value();
  StoreReader reader = StoreReader::open(store.path()).value();
  for (const std::uint64_t id : {3, 1, 2}) {
    ASSERT_TRUE(apply(store, {add(id), end_of(id, "")}));
  }
  const auto all = reader.accounting({.user = {}, .since = {}, .after = {}, .limit = 9}).value();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_TRUE(std::ranges::is_sorted(
      all, {}, [](const AccountedJob& job) { return std::pair(job.ended, job.id); }));
  AccountQuery next{.user = UserId(1000), .since = all[0].ended, .after = all[0].id, .limit = 1};
  const auto page = reader.accounting(next).value();
  ASSERT_EQ(page.size(), 1U);
  EXPECT_EQ(page[0].id, all[1].id);
  EXPECT_EQ(page[0].filled, 4ms);
  EXPECT_EQ(page[0].usage, some_usage());
  EXPECT_EQ(page[0].restarts, 2U);
  next.user = UserId(1);
  EXPECT_TRUE(reader.accounting(next).value().empty());
}

TEST_F(StoreTest, EveryAccountingListHasTheSignal) {
  Store store = Store::open(directory_).value();
  StoreReader reader = StoreReader::open(store.path()).value();
  SaveEnd end = end_of(1);
  end.signal = 11;
  ASSERT_TRUE(apply(store, {add(1), end}));
  AccountQuery of_user{.user = UserId(1000), .since = {}, .after = {}, .limit = 9};
  AccountQuery of_job{.user = {}, .since = {}, .after = {}, .limit = 9, .job = JobId(1)};
  AccountQuery all{.user = {}, .since = {}, .after = {}, .limit = 9};
  for (const AccountQuery& query : {of_user, of_job, all}) {
    const auto rows = reader.accounting(query).value();
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].signal, 11);
  }
}

TEST_F(StoreTest, RefusesASecondHead) {
  Store store = Store::open(directory_).value();
  const auto second = Store::open(directory_);
  ASSERT_FALSE(second);
  EXPECT_TRUE(second.error().is(Errc::Busy));
}

TEST_F(StoreTest, RefusesToReplaceALostDatabase) {
  { ASSERT_TRUE(Store::open(directory_)); }
  fs::remove(file());
  const auto again = Store::open(directory_);
  ASSERT_FALSE(again);
  EXPECT_TRUE(again.error().is(Errc::NotFound));
}

TEST_F(StoreTest, RefusesEmptyForeignAndDamagedDatabases) {
  {
    Store store = Store::open(directory_).value();
    for (std::uint64_t id = 1; id <= 200; ++id) ASSERT_TRUE(apply(store, {add(id)}));
  }
  const auto size = fs::file_size(file());
  {
    std::fstream damage(file(), std::ios::in | std::ios::out | std::ios::binary);
    damage.seekp(static_cast<std::streamoff>(size / 2));
    damage << std::string(8192, '\xa5');
  }
  EXPECT_FALSE(Store::open(directory_));
  std::ofstream(file(), std::ios::trunc) << "This is no database, although it is long enough.";
  EXPECT_FALSE(Store::open(directory_));
  std::ofstream(file(), std::ios::trunc).close();
  EXPECT_FALSE(Store::open(directory_));
}

TEST_F(StoreTest, RefusesADirectoryWritableByOthers) {
  fs::permissions(directory_, fs::perms::all);
  const auto store = Store::open(directory_);
  ASSERT_FALSE(store);
  EXPECT_TRUE(store.error().is(Errc::Denied));
}

// A crash of the machine leaves the files as they were at some instant. Every copy taken between
// two transactions must hold exactly the transactions before it.
TEST_F(StoreTest, CopyAtAnyInstantHasAllCommits) {
  Store store = Store::open(directory_).value();
  std::mt19937 random(1);
  for (std::uint64_t id = 1; id <= 60; ++id) {
    AddJob job = add(id);
    job.spec.assign(random() % 200'000, 's');
    ASSERT_TRUE(apply(store, {job}));
    if (random() % 4 != 0) continue;
    const std::string copy = directory_ + "/copy";
    fs::create_directory(copy);
    for (const char* name : {"jobs.db", "jobs.db-wal"}) {
      if (fs::exists(directory_ + "/" + name)) fs::copy(directory_ + "/" + name, copy + "/" + name);
    }
    EXPECT_EQ(Store::open(copy).value().active_jobs().value().size(), id);
    fs::remove_all(copy);
  }
}

// If the log is cut anywhere (because the last write did not reach the disk), a prefix of the
// transactions remains, and each of them is complete.
TEST_F(StoreTest, TruncatedLogKeepsAPrefix) {
  Store store = Store::open(directory_).value();
  for (std::uint64_t id = 1; id <= 10; ++id)
    ASSERT_TRUE(apply(store, {add(2 * id), add(2 * id + 1)}));
  const auto size = fs::file_size(file() + "-wal");
  std::mt19937 random(2);
  for (int i = 0; i < 20; ++i) {
    const std::string copy = directory_ + "/copy";
    fs::create_directory(copy);
    fs::copy(file(), copy + "/jobs.db");
    fs::copy(file() + "-wal", copy + "/jobs.db-wal");
    fs::resize_file(copy + "/jobs.db-wal", random() % size);
    const auto jobs = Store::open(copy).value().active_jobs().value();
    EXPECT_EQ(jobs.size() % 2, 0u);
    for (std::size_t at = 0; at < jobs.size(); ++at) EXPECT_EQ(jobs[at].info.id.value(), at + 2);
    fs::remove_all(copy);
  }
}

// A flipped bit anywhere is either refused with a reason or harmless. In the log, a damaged last
// commit looks like one that was torn by a crash. A flip in a frame's 16 bytes of salt and checksum
// looks like the end of the log.
TEST_F(StoreTest, FlippedBitNeverLosesJobsSilently) {
  constexpr std::uint64_t kJobs = 60;
  constexpr int kFlips = 300;
  std::mt19937 random(3);
  for (const bool in_log : {true, false}) {
    const std::string home = directory_ + (in_log ? "/log" : "/database");
    fs::create_directory(home);
    auto store = std::make_optional(Store::open(home).value());
    for (std::uint64_t id = 1; id <= kJobs; ++id) ASSERT_TRUE(apply(*store, {add(id)}));
    if (!in_log) store.reset();  // the last connection moves the log into the database
    const std::string name = in_log ? "jobs.db-wal" : "jobs.db";
    const auto size = fs::file_size(home + "/" + name);
    int refused = 0, lost = 0;
    for (int i = 0; i < kFlips; ++i) {
      const std::string copy = directory_ + "/copy";
      fs::create_directory(copy);
      fs::copy(home + "/jobs.db", copy + "/jobs.db");
      if (in_log) fs::copy(home + "/jobs.db-wal", copy + "/jobs.db-wal");
      const auto at = static_cast<std::streamoff>(random() % size);
      std::fstream file(copy + "/" + name, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(at);
      const auto flipped = static_cast<char>(file.get() ^ (1 << (random() % 8)));
      file.seekp(at);
      file.put(flipped);
      file.close();
      auto damaged = Store::open(copy);
      auto jobs = damaged ? damaged->active_jobs() : damaged.error();
      refused += jobs ? 0 : 1;
      lost += jobs && jobs->size() + 1 < kJobs ? 1 : 0;
      fs::remove_all(copy);
    }
    std::printf("%s: %d of %d flips refused, %d lost jobs\n", name.c_str(), refused, kFlips, lost);
    EXPECT_LE(lost, kFlips / 100) << name;
    if (in_log) {
      EXPECT_GE(refused, kFlips * 9 / 10);
    }
  }
}

// The child writes each number to the pipe only after its commit.
void add_and_acknowledge(const std::string& directory, int pipe) {
  auto store = Store::open(directory);
  for (std::uint64_t id = 1; store && id <= 100'000; ++id) {
    if (!apply(*store, {add(id)})) break;
    if (::write(pipe, &id, sizeof id) != sizeof id) break;
  }
  ::_exit(1);
}

TEST_F(StoreTest, KillLosesNoAcknowledgedJob) {
  for (const std::uint64_t kill_after : {1u, 17u, 100u}) {
    const std::string directory = directory_ + "/" + std::to_string(kill_after);
    fs::create_directory(directory);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) add_and_acknowledge(directory, ends[1]);
    ::close(ends[1]);
    std::uint64_t acknowledged = 0;
    while (acknowledged < kill_after &&
           ::read(ends[0], &acknowledged, sizeof acknowledged) == sizeof acknowledged) {
    }
    ::kill(child, SIGKILL);
    while (::read(ends[0], &acknowledged, sizeof acknowledged) == sizeof acknowledged) {
    }
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);
    EXPECT_GE(acknowledged, kill_after);
    EXPECT_GE(Store::open(directory).value().active_jobs().value().size(), acknowledged);
  }
}

TEST_F(StoreTest, KeepsTheConditionsOfAJob) {
  {
    auto store = Store::open(directory_);
    ASSERT_TRUE(store);
    AddJob job = add(1);
    job.info.conditions = std::string("\0\7", 2);
    ASSERT_TRUE(apply(*store, {job}));
  }
  auto store = Store::open(directory_);
  ASSERT_TRUE(store);
  EXPECT_EQ(store->active_jobs()->at(0).info.conditions, std::string("\0\7", 2));
}

TEST_F(StoreTest, KeepsAnArrayAndItsTasks) {
  {
    auto store = Store::open(directory_);
    ASSERT_TRUE(store);
    AddJob array = add(1);
    array.info.array = JobId(1);
    array.rest = {"0-99%8", 0, 100};
    AddJob task = add(2);
    task.info.array = JobId(1);
    task.info.task = 7;
    ASSERT_TRUE(apply(*store, {array, task, SaveArray{JobId(1), "", 8}}));
  }
  auto store = Store::open(directory_);
  ASSERT_TRUE(store);
  auto jobs = store->active_jobs();
  ASSERT_TRUE(jobs);
  EXPECT_TRUE(jobs->at(0).info.is_array());
  EXPECT_EQ(jobs->at(0).rest, (ArrayRest{"0-99%8", 8, 100}));
  EXPECT_TRUE(jobs->at(1).info.is_task());
  EXPECT_EQ(jobs->at(1).info.task, 7U);
  ASSERT_TRUE(apply(*store, {SaveArray{JobId(1), "0-49%8", 9}}));
  EXPECT_EQ(store->active_jobs()->at(0).rest, (ArrayRest{"0-49%8", 9, 100}));
  auto reader = StoreReader::open(store->path());
  ASSERT_TRUE(reader);
  EXPECT_FALSE(reader->spec(JobId(2)));  // its array has it
  EXPECT_FALSE(reader->ended_task(JobId(1), 7));
  ASSERT_TRUE(apply(*store, {end_of(2)}));
  EXPECT_EQ(*reader->ended_task(JobId(1), 7), JobId(2));
  EXPECT_EQ(reader->ended_tasks(JobId(1))->completed, 0U);
  EXPECT_EQ(reader->ended_tasks(JobId(1))->broken, 1U);
  EXPECT_EQ(reader->outcome(JobId(2))->state, JobState::Failed);
  EXPECT_TRUE(reader->outcome(JobId(1)).error().is(Errc::NotFound));
  EXPECT_EQ(reader->accounting({std::nullopt, {}, {}, 10})->at(0).task, 7U);
}

}  // namespace
}  // namespace score::head
