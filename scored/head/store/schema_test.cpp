#include "scored/head/store/schema.hpp"

#include "base/os/fd.hpp"
#include "base/text.hpp"
#include "scored/head/store/store.hpp"
#include "tests/support/head/failing_disk.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <stdlib.h>

namespace score::head {
namespace {

namespace fs = std::filesystem;

// The statements by which the releases before version 22 made and upgraded their databases, in the
// order of history. Each was a transaction of its own, so every prefix is a database that may
// exist. A blank line ends the statements of one change of the program.
constexpr const char* kHistory[] = {
    R"(
  PRAGMA application_id = 1396920900;
  PRAGMA user_version = 1;
  CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user INTEGER NOT NULL, request BLOB, name TEXT NOT NULL, command TEXT NOT NULL,
    directory TEXT NOT NULL, resources BLOB NOT NULL, stdin_rank INTEGER NOT NULL,
    detached INTEGER NOT NULL, keep_going INTEGER NOT NULL, immediate_ns INTEGER NOT NULL,
    submitted_ns INTEGER NOT NULL,
    state INTEGER NOT NULL, attempt INTEGER NOT NULL DEFAULT 0, nodes TEXT, tasks BLOB, cores BLOB,
    scheduled_ns INTEGER NOT NULL DEFAULT 0, started_ns INTEGER NOT NULL DEFAULT 0,
    exit_code INTEGER, ended_ns INTEGER, status BLOB);
  CREATE UNIQUE INDEX jobs_request ON jobs (user, request) WHERE request IS NOT NULL;
  CREATE INDEX jobs_active ON jobs (id) WHERE state < 5;
  CREATE INDEX jobs_ended ON jobs (ended_ns) WHERE state >= 5;
  CREATE INDEX jobs_ended_user ON jobs (user, ended_ns) WHERE state >= 5;
  CREATE TABLE specs (job INTEGER PRIMARY KEY, spec BLOB NOT NULL);
  CREATE TABLE accounting (
    job INTEGER PRIMARY KEY, user INTEGER NOT NULL, name TEXT NOT NULL, state INTEGER NOT NULL,
    exit_code INTEGER NOT NULL, nodes TEXT, tasks INTEGER NOT NULL, submitted_ns INTEGER NOT NULL,
    started_ns INTEGER NOT NULL, ended_ns INTEGER NOT NULL, scheduled_ns INTEGER NOT NULL);
  CREATE TABLE settings (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
  INSERT INTO settings VALUES ('head_epoch', 0);
)",

    "CREATE INDEX accounting_ended ON accounting (ended_ns, job)",
    "CREATE INDEX accounting_ended_user ON accounting (user, ended_ns, job)",

    "ALTER TABLE jobs ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0",

    "ALTER TABLE jobs ADD COLUMN ending INTEGER",
    "ALTER TABLE jobs ADD COLUMN reasons TEXT",

    "ALTER TABLE accounting ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0",

    "ALTER TABLE jobs ADD COLUMN start_mark TEXT",

    "ALTER TABLE jobs ADD COLUMN filled_ns INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE accounting ADD COLUMN filled_ns INTEGER NOT NULL DEFAULT 0",

    "ALTER TABLE jobs ADD COLUMN conditions BLOB",
    "ALTER TABLE jobs ADD COLUMN array_id INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE jobs ADD COLUMN array_task INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE jobs ADD COLUMN array_rest TEXT",
    "ALTER TABLE jobs ADD COLUMN array_next INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE jobs ADD COLUMN array_total INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE accounting ADD COLUMN array_id INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE accounting ADD COLUMN array_task INTEGER NOT NULL DEFAULT 0",
    R"(CREATE INDEX jobs_ended_once ON jobs (ended_ns)
    WHERE state >= 5 AND array_id IN (0, id))",
    R"(CREATE INDEX jobs_ended_once_user ON jobs (user, ended_ns)
    WHERE state >= 5 AND array_id IN (0, id))",
    R"(CREATE INDEX accounting_array ON accounting (array_id, array_task)
    WHERE array_id > 0)",

    "ALTER TABLE accounting ADD COLUMN account TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE accounting ADD COLUMN cores INTEGER NOT NULL DEFAULT 0",
    R"(CREATE TABLE uses (
    account TEXT NOT NULL, user INTEGER NOT NULL, core_ms INTEGER NOT NULL, at_ns INTEGER NOT NULL,
    PRIMARY KEY (account, user)) WITHOUT ROWID)",

    "ALTER TABLE accounting ADD COLUMN generic TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE jobs ADD COLUMN units TEXT",

    "ALTER TABLE accounting ADD COLUMN signal INTEGER NOT NULL DEFAULT 0",
};
constexpr std::size_t kRelease010 = std::size(kHistory) - 1;  // without the signal

// Job 7 is waiting; job 6 has ended; job 40 has ended and was pruned.
constexpr const char* kRows = R"(
  INSERT INTO jobs (id, user, name, command, directory, resources, stdin_rank, detached, keep_going,
    immediate_ns, submitted_ns, state) VALUES
    (6, 1000, 'ended', './a', '/home/a', x'01', -2, 0, 0, 0, 5, 5),
    (7, 1000, 'waits', './a', '/home/a', x'01', -2, 0, 0, 0, 5, 0),
    (40, 1000, 'pruned', './a', '/home/a', x'01', -2, 0, 0, 0, 5, 5);
  DELETE FROM jobs WHERE id = 40;
  INSERT INTO specs VALUES (7, 'spec of 7');
  INSERT INTO accounting (job, user, name, state, exit_code, nodes, tasks, submitted_ns, started_ns,
    ended_ns, scheduled_ns) VALUES (6, 1000, 'ended', 5, 3, 'node1', 2, 5, 6, 7, 1);
  INSERT INTO settings VALUES ('quantum', '50ms');
  UPDATE settings SET value = 11 WHERE key = 'head_epoch';
)";

class SchemaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "score_schema_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }

  void TearDown() override { fs::remove_all(directory_); }

  std::string file() const { return directory_ + "/jobs.db"; }

  // Replaces the database by that of an older release.
  void make_old(std::size_t statements) {
    for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(file() + suffix);
    Database old = Database::open(file(), Database::Mode::Create).value();
    ASSERT_TRUE(old.execute("PRAGMA synchronous = OFF; BEGIN"));
    for (std::size_t i = 0; i < statements; ++i) ASSERT_TRUE(old.execute(kHistory[i])) << i;
    ASSERT_TRUE(old.execute(kRows));
    ASSERT_TRUE(old.execute("COMMIT; PRAGMA journal_mode = WAL"));
  }

  // Returns the version and the statements that make the schema.
  static std::string schema_of(const std::string& path) {
    const Database database = Database::open(path, Database::Mode::ReadWrite).value();
    return database.value("PRAGMA user_version").value() +
           database
               .value(
                   "SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema "
                   "WHERE sql IS NOT NULL ORDER BY name)")
               .value();
  }

  // Returns the schema of a new database.
  std::string current_schema() const {
    const std::string fresh = directory_ + "/fresh";
    fs::create_directory(fresh);
    EXPECT_TRUE(Store::open(fresh));
    return schema_of(fresh + "/jobs.db");
  }

  std::string directory_;
};

TEST_F(SchemaTest, NewDatabaseHasTheCurrentVersion) {
  EXPECT_TRUE(current_schema().starts_with(std::to_string(kSchemaVersion) + "CREATE"));
}

TEST_F(SchemaTest, EveryOlderDatabaseIsMigrated) {
  const std::string current = current_schema();
  for (std::size_t statements = 1; statements <= std::size(kHistory); ++statements) {
    SCOPED_TRACE(kHistory[statements - 1]);
    make_old(statements);
    {
      auto opened = Store::open(directory_);
      ASSERT_TRUE(opened) << opened.error().message();
      const auto jobs = opened->active_jobs().value();
      ASSERT_EQ(jobs.size(), 1U);
      EXPECT_EQ(jobs[0].info.id, JobId(7));
      EXPECT_EQ(jobs[0].info.name, "waits");
      EXPECT_EQ(opened->last_job().value(), JobId(40));
      EXPECT_EQ(opened->settings().value().at("quantum"), "50ms");
      EXPECT_EQ(opened->begin_incarnation().value(), Epoch(12));
      auto reader = StoreReader::open(opened->path()).value();
      EXPECT_EQ(reader.spec(JobId(7)).value(), "spec of 7");
      const auto accounted =
          reader.accounting({.user = {}, .since = {}, .after = {}, .limit = 9}).value();
      ASSERT_EQ(accounted.size(), 1U);
      EXPECT_EQ(accounted[0].exit_code, 3);
      EXPECT_EQ(accounted[0].signal, 0);
      EXPECT_FALSE(accounted[0].usage) << "it was not recorded then";
    }
    EXPECT_EQ(schema_of(file()), current);
  }
}

TEST_F(SchemaTest, MigratedDatabaseStoresAllFields) {
  make_old(1);
  SaveProgress change{JobId(7), {}, UseSum{"physics", UserId(1000), 7, WallTime(6s)}};
  change.progress.state = JobState::Running;
  change.progress.placement.units = {{{"gpu", {0, 3}}}};
  change.progress.reasons = {"a reason"};
  change.progress.restarts = 2;
  change.progress.filled = 4ms;
  {
    Store store = Store::open(directory_).value();
    ASSERT_TRUE(store.apply(std::vector<Change>{change, SaveArray{JobId(7), "0-9", 3}}));
  }
  Store store = Store::open(directory_).value();
  const StoredJob job = store.active_jobs().value().at(0);
  EXPECT_EQ(job.progress, change.progress);
  EXPECT_EQ(job.rest, (ArrayRest{"0-9", 3, 0}));
  EXPECT_EQ(store.uses().value().at(0), *change.use);
}

// The writes fail from some point on, as after a crash, until all of them succeed.
TEST_F(SchemaTest, InterruptedMigrationLeavesAWholeVersion) {
  const std::string current = current_schema();
  int interrupted = 0;
  for (bool is_done = false; !is_done; ++interrupted) {
    SCOPED_TRACE(interrupted);
    ASSERT_LT(interrupted, 1000);
    make_old(kRelease010 - 4);
    const std::string old = schema_of(file());
    {
      FailingDisk disk;
      disk.fail_after(interrupted);
      is_done = Store::open(directory_).has_value();
    }
    EXPECT_EQ(schema_of(file()), is_done ? current : old);
    EXPECT_TRUE(Store::open(directory_));
    EXPECT_EQ(schema_of(file()), current);
  }
  EXPECT_GT(interrupted, 4);
}

TEST_F(SchemaTest, FailedSyncLeavesAWholeVersion) {
  make_old(kRelease010);
  const std::string old = schema_of(file());
  {
    FailingDisk disk;
    disk.set(FailingDisk::Mode::BadSyncs);
    EXPECT_FALSE(Store::open(directory_));
  }
  const std::string left = schema_of(file());
  EXPECT_TRUE(left == old || left == current_schema()) << left;
  EXPECT_TRUE(Store::open(directory_));
  EXPECT_EQ(schema_of(file()), current_schema());
}

TEST_F(SchemaTest, NewerDatabaseIsRefusedUnchanged) {
  { ASSERT_TRUE(Store::open(directory_)); }
  {
    auto newer = Database::open(file(), Database::Mode::ReadWrite);
    ASSERT_TRUE(newer);
    ASSERT_TRUE(newer->execute("ALTER TABLE jobs ADD COLUMN later; PRAGMA user_version = 99"));
  }
  const auto before = read_file(file(), 1 << 20).value();
  const auto opened = Store::open(directory_);
  ASSERT_FALSE(opened);
  const std::string message = opened.error().message();
  EXPECT_EQ(
      message.find(fmt::format("{}: schema version 99 is newer than version {}, which this "
                               "program supports; install the release of scored that wrote it",
                               file(), kSchemaVersion)),
      0U)
      << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_EQ(read_file(file(), 1 << 20).value(), before);
}

// The other head may be upgraded later than this one, which follows it.
TEST_F(SchemaTest, ChangesOfAnOlderLeaderFit) {
  make_old(kRelease010);
  Database leader = Database::open(file(), Database::Mode::ReadWrite).value();
  const std::string copy = directory_ + "/copy";
  ASSERT_TRUE(leader.copy_to(copy));
  Database follower = Database::open(copy, Database::Mode::ReadWrite).value();
  ASSERT_TRUE(migrate(follower));
  auto recorder = Recorder::begin(leader);
  ASSERT_TRUE(recorder);
  ASSERT_TRUE(
      leader.execute("UPDATE jobs SET units = 'gpu:1' WHERE id = 7;"
                     "UPDATE accounting SET generic = 'gpu:2', cores = 8;"));
  ASSERT_TRUE(follower.apply_changes(recorder->changes().value()));
  EXPECT_EQ(follower.value("SELECT units FROM jobs WHERE id = 7").value(), "gpu:1");
  EXPECT_EQ(follower.value("SELECT generic || cores || signal FROM accounting").value(), "gpu:280");
}

}  // namespace
}  // namespace score::head
