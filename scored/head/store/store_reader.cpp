// These are the lookups of the loop's thread; see store.hpp.
#include "scored/head/store/packing.hpp"
#include "scored/head/store/store.hpp"

namespace score::head {
namespace {

std::int64_t count(WallTime time) {
  return time.time_since_epoch().count();
}

std::int64_t number(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

AccountedJob read_account(const Statement& row) {
  AccountedJob job;
  job.id = JobId(static_cast<std::uint64_t>(row.integer(0)));
  job.user = UserId(static_cast<std::uint32_t>(row.integer(1)));
  job.name = row.bytes(2);
  job.state = static_cast<JobState>(row.integer(3));
  job.exit_code = static_cast<std::int32_t>(row.integer(4));
  job.nodes = unpack_names(row.bytes(5));
  job.tasks = static_cast<std::uint32_t>(row.integer(6));
  job.submitted = WallTime(Duration(row.integer(7)));
  job.started = WallTime(Duration(row.integer(8)));
  job.ended = WallTime(Duration(row.integer(9)));
  job.scheduled = Duration(row.integer(10));
  job.restarts = static_cast<std::uint32_t>(row.integer(11));
  job.filled = Duration(row.integer(12));
  job.array = JobId(static_cast<std::uint64_t>(row.integer(13)));
  job.task = static_cast<std::uint32_t>(row.integer(14));
  job.account = row.bytes(15);
  job.cores = static_cast<std::uint32_t>(row.integer(16));
  job.generic = row.bytes(17);
  job.signal = static_cast<std::int32_t>(row.integer(18));
  job.usage = unpack_usage(row.bytes(19));
  job.partition = row.bytes(20);
  job.licenses = row.bytes(21);
  return job;
}

}  // namespace

Result<StoreReader> StoreReader::open(const std::string& path) {
  auto database = Database::open(path, Database::Mode::Read);
  if (!database) return database.error();
  StoreReader reader;
  reader.database_ = std::move(*database);
  auto prepared = prepare_all(
      reader.database_,
      {{reader.spec_, "SELECT spec FROM specs WHERE job = ?"},
       {reader.request_, "SELECT id FROM jobs WHERE user = ? AND request = ?"},
       {reader.status_, "SELECT status FROM jobs WHERE id = ? AND state >= 5"},
       {reader.ended_, "SELECT status FROM jobs WHERE state >= 5 ORDER BY ended_ns DESC LIMIT ?1"},
       {reader.ended_of_user_,
        "SELECT status FROM jobs WHERE state >= 5 AND user = ?2 ORDER BY ended_ns DESC "
        "LIMIT ?1"},
       {reader.ended_once_,
        "SELECT status FROM jobs WHERE state >= 5 AND array_id IN (0, id) "
        "ORDER BY ended_ns DESC LIMIT ?1"},
       {reader.ended_once_of_user_,
        "SELECT status FROM jobs WHERE state >= 5 AND array_id IN (0, id) AND user = ?2 "
        "ORDER BY ended_ns DESC LIMIT ?1"},
       {reader.account_,
        "SELECT job, user, name, state, exit_code, nodes, tasks, submitted_ns, started_ns, "
        "ended_ns, scheduled_ns, restarts, filled_ns, array_id, array_task, account, cores, "
        "generic, signal, usage, partition_name, licenses "
        "FROM accounting "
        "WHERE (ended_ns, job) > (?2, ?3) "
        "ORDER BY ended_ns, job LIMIT ?1"},
       {reader.account_of_user_,
        "SELECT job, user, name, state, exit_code, nodes, tasks, submitted_ns, started_ns, "
        "ended_ns, scheduled_ns, restarts, filled_ns, array_id, array_task, account, cores, "
        "generic, signal, usage, partition_name, licenses "
        "FROM accounting "
        "WHERE user = ?4 AND (ended_ns, job) > (?2, ?3) "
        "ORDER BY ended_ns, job LIMIT ?1"},
       {reader.account_of_job_,
        "SELECT job, user, name, state, exit_code, nodes, tasks, submitted_ns, started_ns, "
        "ended_ns, scheduled_ns, restarts, filled_ns, array_id, array_task, account, cores, "
        "generic, signal, usage, partition_name, licenses "
        "FROM accounting "
        "WHERE (job = ?4 OR (array_id = ?4 AND array_id > 0)) AND (ended_ns, job) > (?2, ?3) "
        "ORDER BY ended_ns, job LIMIT ?1"},
       {reader.setting_, "SELECT value FROM settings WHERE key = ?"},
       {reader.profile_, "SELECT profile FROM jobs WHERE id = ? AND state >= 5"},
       {reader.outcome_, "SELECT state, started_ns FROM accounting WHERE job = ?"},
       {reader.ended_tasks_,
        "SELECT TOTAL(state = 5), TOTAL(state NOT IN (5, 7)) FROM accounting "
        "WHERE array_id = ?1 AND array_id > 0 AND job != ?1"},
       {reader.ended_task_,
        "SELECT job FROM accounting WHERE array_id = ?1 AND array_id > 0 AND array_task = ?2 "
        "AND job != ?1"}});
  if (!prepared) return prepared.error();
  return reader;
}

namespace {

Error no_record(JobId job) {
  return fail(Errc::NotFound, "no record of job {}", job);
}

// Returns the first column of the only row, and resets the statement for its next use.
Result<std::string> only_row(Statement& statement, Error missing) {
  auto row = statement.step();
  Result<std::string> answer = std::move(missing);
  if (row && *row) answer = statement.bytes(0);
  if (!row) answer = row.error();
  statement.reset();
  return answer;
}

}  // namespace

Result<std::string> StoreReader::spec(JobId job) {
  return only_row(spec_.bind(1, number(job.value())), no_record(job));
}

Result<std::string> StoreReader::ended_status(JobId job) {
  return only_row(status_.bind(1, number(job.value())), no_record(job));
}

Result<std::string> StoreReader::setting(std::string_view key) {
  return only_row(setting_.bind_text(1, key), fail(Errc::NotFound, "no setting {}", key));
}

Result<std::string> StoreReader::profile(JobId job) {
  return only_row(profile_.bind(1, number(job.value())), no_record(job));
}

Result<StoreReader::EndedJob> StoreReader::outcome(JobId job) {
  outcome_.bind(1, number(job.value()));
  auto row = outcome_.step();
  Result<EndedJob> ended = fail(Errc::NotFound, "no job {}", job);
  if (row && *row)
    ended = EndedJob{static_cast<JobState>(outcome_.integer(0)),
                     WallTime(Duration(outcome_.integer(1)))};
  if (!row) ended = row.error();
  outcome_.reset();
  return ended;
}

static_assert(static_cast<int>(JobState::Completed) == 5 &&
                  static_cast<int>(JobState::Cancelled) == 7,
              "ended_tasks counts states by these numbers");

Result<StoreReader::EndedTasks> StoreReader::ended_tasks(JobId array) {
  auto row = ended_tasks_.bind(1, number(array.value())).step();
  Result<EndedTasks> tasks = EndedTasks();
  if (row && *row) {
    tasks->completed = static_cast<std::uint32_t>(ended_tasks_.integer(0));
    tasks->broken = static_cast<std::uint32_t>(ended_tasks_.integer(1));
  }
  if (!row) tasks = row.error();
  ended_tasks_.reset();
  return tasks;
}

Result<JobId> StoreReader::ended_task(JobId array, std::uint32_t task) {
  auto row = ended_task_.bind(1, number(array.value())).bind(2, task).step();
  Result<JobId> job = fail(Errc::NotFound, "no job {}_{}", array, task);
  if (row && *row) job = JobId(static_cast<std::uint64_t>(ended_task_.integer(0)));
  if (!row) job = row.error();
  ended_task_.reset();
  return job;
}

Result<std::optional<JobId>> StoreReader::find_request(UserId user, const RequestId& request) {
  request_.bind(1, user.value()).bind_blob(2, pack_request(request));
  auto row = request_.step();
  std::optional<JobId> found;
  if (row && *row) found = JobId(static_cast<std::uint64_t>(request_.integer(0)));
  request_.reset();
  if (!row) return row.error();
  return found;
}

Result<std::vector<std::string>> StoreReader::lately_ended(std::optional<UserId> user,
                                                           std::int64_t limit, bool with_tasks) {
  Statement& all = with_tasks ? ended_ : ended_once_;
  Statement& of_user = with_tasks ? ended_of_user_ : ended_once_of_user_;
  Statement& statement = user ? of_user : all;
  statement.bind(1, limit);
  if (user) statement.bind(2, user->value());
  std::vector<std::string> found;
  auto row = statement.step();
  for (; row && *row; row = statement.step()) found.push_back(statement.bytes(0));
  statement.reset();
  if (!row) return row.error();
  return found;
}

Result<std::vector<AccountedJob>> StoreReader::accounting(const AccountQuery& query) {
  Statement& statement = query.job ? account_of_job_ : query.user ? account_of_user_ : account_;
  statement.bind(1, query.limit).bind(2, count(query.since)).bind(3, number(query.after.value()));
  if (query.job) {
    statement.bind(4, number(query.job->value()));
  } else if (query.user) {
    statement.bind(4, query.user->value());
  }
  std::vector<AccountedJob> found;
  auto row = statement.step();
  for (; row && *row; row = statement.step()) found.push_back(read_account(statement));
  statement.reset();
  if (!row) return row.error();
  return found;
}

}  // namespace score::head
