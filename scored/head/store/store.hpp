#pragma once
// The store is the head's state on disk: jobs, settings, incarnations, accounting. It is an SQLite
// database in WAL mode with synchronous=FULL, so a committed transaction survives a crash of the
// machine.
//
//   Store        is the only writer. Changes are plain values; each apply() is one transaction.
//                After open() it belongs to the commit thread (commit_log.hpp).
//   StoreReader  does read-only lookups by key for the loop's thread; it sees committed state.
//
// The states of jobs are stored as numbers of base::JobState. Finished jobs keep a row (for ids,
// repeated requests and `scq`); their specification is deleted.

#include "base/model/model.hpp"
#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "base/text/shared_text.hpp"
#include "base/units.hpp"
#include "gang/leadership/lease.hpp"
#include "scored/head/store/sqlite.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace score::head {

// JobInfo holds what is fixed by the submission.
struct JobInfo {
  JobId id;
  UserId user;
  RequestId request;             // none if the client gave none
  std::string name;              // as given
  SharedText command;            // for display, escaped
  SharedText directory;          // for display, escaped
  SharedText resources;          // serialised wire::ResourceRequest
  std::int64_t stdin_rank = -2;  // -1 all, -2 none
  bool keep_going = false;
  Duration immediate{0};  // 0: no limit on the wait
  WallTime submitted{};
  Bytes spec_bytes{0};  // of its specification, on disk
  // These values repeat parts of `resources`; the store does not read them.
  JobId step_of{0};        // for a step: the job that it is inside
  std::uint32_t step = 0;  // its number within that job
  bool allocation = false;
  SharedText conditions{};  // its conditions, see pack_conditions(); empty: none
  JobId array{};            // the array that it is a task of; its own id if it is an array
  std::uint32_t task = 0;   // its number in the array
  SharedText account{};     // also from `resources`; empty: none
  SharedText notices{};     // serialised wire::NoticeRequest; empty: none
  SharedText partition{};   // likewise

  [[nodiscard]] bool is_array() const { return array != JobId() && array == id; }

  [[nodiscard]] bool is_task() const { return array != JobId() && array != id; }

  friend bool operator==(const JobInfo&, const JobInfo&) = default;
};

struct Placement {
  AttemptId attempt;
  std::vector<std::string> nodes;                        // by node index
  std::vector<std::uint32_t> tasks_on_node;              // by node index
  std::vector<std::vector<std::uint32_t>> cores;         // by node index
  std::vector<std::vector<base::GenericShare>> units{};  // by node index; empty: none

  friend bool operator==(const Placement&, const Placement&) = default;
};

// JobProgress has the values that change while the job is active.
struct JobProgress {
  JobState state = JobState::Pending;
  Placement placement;
  Duration scheduled{0};
  Duration filled{0};          // see gang::JobView
  base::Usage steps_usage{};   // likewise
  WallTime started{};          // 0: not yet
  TimePoint start_mark{};      // the same on the monotonic clock; 0: not yet, or before a reboot
  bool detached = false;       // continues without a front end
  std::uint32_t restarts = 0;  // number of requeues
  // This state is set while the job is Completing; it says how the job will end.
  std::optional<JobState> ending;
  std::int32_t exit_code = 0;
  std::vector<std::string> reasons;
  // The greatest part of a limit of time, in percent, of which the user was sent a notice.
  std::uint32_t noticed = 0;

  friend bool operator==(const JobProgress&, const JobProgress&) = default;
};

// ArrayRest is the remainder of an array: its tasks from `next` on, as parse_array() reads them, of
// the `total` that were submitted.
struct ArrayRest {
  std::string tasks{};
  std::uint32_t next = 0;
  std::uint32_t total = 0;

  friend bool operator==(const ArrayRest&, const ArrayRest&) = default;
};

struct StoredJob {
  JobInfo info;
  JobProgress progress;
  ArrayRest rest{};  // of an array

  friend bool operator==(const StoredJob&, const StoredJob&) = default;
};

// ---- changes ---------------------------------------------------------------------------------

struct AddJob {
  JobInfo info;
  bool detached = false;
  std::string spec;  // serialised wire::LaunchSpec; a task of an array uses the array's
  ArrayRest rest{};  // of an array
};

// UseSum is what a user has used in an account, decayed to the time `at`. It is stored together
// with the progress of the job that it includes, so a crash neither loses use nor counts it twice.
struct UseSum {
  std::string account;
  UserId user;
  std::int64_t core_ms = 0;  // cores x scheduled time
  WallTime at{};

  friend bool operator==(const UseSum&, const UseSum&) = default;
};

struct SaveProgress {
  JobId id;
  JobProgress progress;
  std::optional<UseSum> use{};
};

// Stores the final state and the accounting row; deletes the job's specification and settings.
struct SaveEnd {
  JobId id;
  JobProgress progress;  // state is final
  std::int32_t exit_code = 0;
  std::int32_t signal = 0;  // as in wire::JobStatus
  base::Usage usage{};
  WallTime ended{};
  std::string status;     // serialised wire::JobStatus, for later listings
  std::string profile{};  // serialised wire::Profile; empty: it has no points
  bool is_step = false;   // a step's time belongs to its job, so it has no accounting row
  std::string account{};  // for that row
  std::string generic{};  // likewise: what the job requested on each node
  std::string partition{};
  std::string licenses{};  // as requested
  std::optional<UseSum> use{};
};

// Stores that its user or an operator changed the request (weight, hold).
struct SaveResources {
  JobId id;
  std::string resources;  // serialised wire::ResourceRequest
};

// Stores that its user or an operator changed what its submission requested.
struct SaveRequest {
  JobId id;
  std::string resources;  // as in JobInfo, with the next two
  std::string name;
  std::string conditions;
};

// The key of a setting about a job is this prefix and the job's id.
inline constexpr std::string_view kCancelPrefix = "cancel:";
inline constexpr std::string_view kKeepPrefix = "keep:";
inline constexpr std::string_view kRequeuePrefix = "requeue:";

struct SaveSetting {
  std::string key;
  std::optional<std::string> value;  // nullopt: delete it
};

// Stores that the tasks before `next` have become jobs or were cancelled.
struct SaveArray {
  JobId id;
  std::string tasks;  // without cancelled ones; "": unchanged
  std::uint32_t next = 0;
};

// This setting is the index in `heads` of the head that writes the log's term; it travels with the
// log.
inline constexpr std::string_view kLogHead = "log_head";

// This setting holds the load of the last week; see monitor/meters/stored_history.hpp.
inline constexpr std::string_view kLoadHistory = "load_history";

// The text of these files next to the database is a setting with this prefix and the file's name;
// see LoggedFile.
inline constexpr std::string_view kFilePrefix = "file:";
inline constexpr std::string_view kNodeKeysFile = "node-keys";
inline constexpr std::string_view kUsedTokensFile = "setup-tokens-used";
inline constexpr std::string_view kPersonalTokensFile = "personal-tokens";
inline constexpr std::string_view kNodeChangesFile = "node-changes";

struct Barrier {};  // changes nothing; acknowledged when everything added before is durable

using Change = std::variant<AddJob, SaveProgress, SaveEnd, SaveResources, SaveRequest, SaveSetting,
                            SaveArray, Barrier>;

class Store {
 public:
  // Opens or makes DIRECTORY/jobs.db and locks the directory against a second head. Each error has
  // a line that an operator can act on: a different head has it (Busy), the file is damaged or
  // belongs to a different program or version (Malformed), it existed before and is missing or
  // empty (NotFound), and the kernel's errors (ENOSPC, EACCES ...).
  [[nodiscard]] static Result<Store> open(const std::string& directory);

  // Either all changes become durable, or an error is returned and nothing was changed.
  [[nodiscard]] Status apply(std::span<const Change> changes);

  // Returns this start's number, which is larger than all earlier ones and durable when the call
  // returns.
  [[nodiscard]] Result<Epoch> begin_incarnation();
  // Returns the largest number ever given to a job; 0 if there is none.
  [[nodiscard]] Result<JobId> last_job();
  // Returns the jobs that have not ended, in ascending order.
  [[nodiscard]] Result<std::vector<StoredJob>> active_jobs();
  [[nodiscard]] Result<std::map<std::string, std::string>> settings();
  [[nodiscard]] Result<std::vector<UseSum>> uses();
  // Deletes the oldest finished jobs above the limit; their accounting rows stay.
  [[nodiscard]] Status prune(std::int64_t keep_finished);

  [[nodiscard]] const std::string& path() const { return path_; }

  // ---- with two heads (docs/adr/0089)
  // Returns the greatest incarnation that was stored.
  [[nodiscard]] Result<Epoch> greatest_incarnation();
  // Raises the incarnation to at least this one.
  [[nodiscard]] Status raise_incarnation(Epoch least);
  // Stores the vote of this head, the one at `self` in the list of heads, for the other one.
  [[nodiscard]] Status store_vote(gang::HeadIndex self, Epoch term);
  // Returns the terms that the head at `self` must know after a restart.
  [[nodiscard]] Result<gang::StoredTerms> stored_terms(gang::HeadIndex self);
  // Returns the position of its log. A store without a position, or whose last head was a single
  // one, starts a position at its incarnation, and stores that.
  [[nodiscard]] Result<gang::LogPosition> open_log();
  // Must be called by a single head, whose changes are in no log.
  [[nodiscard]] Status forget_log();
  // From now on each apply() is a transaction of the log of this term; transactions count from 1.
  [[nodiscard]] Status begin_log(Epoch term);

  [[nodiscard]] bool has_log() const { return log_.has_value(); }

  [[nodiscard]] std::uint64_t log_sequence() const { return log_ ? log_->sequence : 0; }

  // Returns the changes of the last apply(), for apply_shipped() of the other head; a second call
  // returns nothing.
  [[nodiscard]] std::string take_changes() { return std::exchange(changes_, {}); }

  // Applies changes as the follower. Errors: Malformed; the caller must then ask for a copy of the
  // whole database.
  [[nodiscard]] Status apply_shipped(std::string_view changes, gang::LogPosition after);

  // Copies the committed state to a file.
  [[nodiscard]] Status copy_to(const std::string& path) const { return database_.copy_to(path); }

  // Writes each file whose text is in the settings, if it differs. A start does that first, because
  // the settings may be newer.
  [[nodiscard]] Status write_files();

  // Makes the file the database, and keeps a link to the old one. After an error the old one is
  // unchanged.
  [[nodiscard]] Status replace_with(const std::string& path);

 private:
  Store() = default;
  [[nodiscard]] Status apply_all(std::span<const Change> changes);
  [[nodiscard]] Status apply_recorded(std::span<const Change> changes);
  [[nodiscard]] Status put_position(gang::LogPosition position);
  [[nodiscard]] Result<std::optional<gang::LogPosition>> stored_position();
  [[nodiscard]] Status open_database(const std::string& directory);
  [[nodiscard]] Status prepare();
  [[nodiscard]] Status apply_one(const AddJob& change);
  [[nodiscard]] Status apply_one(const SaveProgress& change);
  [[nodiscard]] Status apply_one(const SaveEnd& change);
  [[nodiscard]] Status apply_one(const SaveResources& change);
  [[nodiscard]] Status apply_one(const SaveRequest& change);
  [[nodiscard]] Status apply_one(const SaveSetting& change);
  [[nodiscard]] Status apply_one(const SaveArray& change);

  [[nodiscard]] Status apply_one(const Barrier&) { return {}; }

  [[nodiscard]] Status save_use(const std::optional<UseSum>& use);

  std::string path_;
  std::string boot_;  // identifies the current boot of this machine
  UniqueFd lock_;
  Database database_;

  // All statements are together, so that none can keep a replaced database open.
  struct Statements {
    Statement add_job, add_spec, save_progress, save_end, drop_spec, drop_settings, account,
        save_resources, save_request, put, drop, save_array, save_use;
  };

  Statements statements_;
  std::optional<gang::LogPosition> log_;  // set for a head in charge of two
  std::string changes_;
};

// AccountedJob is the accounting record of a job that ended.
struct AccountedJob {
  JobId id;
  UserId user;
  std::string name;
  JobState state{};
  std::int32_t exit_code = 0;
  std::int32_t signal = 0;         // as in wire::JobStatus
  std::vector<std::string> nodes;  // by node index; empty: never placed
  std::uint32_t tasks = 0;
  WallTime submitted{}, started{}, ended{};  // started 0: never
  Duration scheduled{0}, filled{0};
  std::uint32_t restarts = 0;
  JobId array{};           // see JobInfo
  std::uint32_t task = 0;  // see JobInfo
  std::string account;
  std::uint32_t cores = 0;
  std::string generic;                 // "gpu:2" on each node; empty: none
  std::optional<base::Usage> usage{};  // none: the job ended before usage was recorded
  std::string partition{};
  std::string licenses{};  // "matlab:2"; empty: none
};

struct AccountQuery {
  std::optional<UserId> user;  // nullopt: all
  WallTime since{};
  JobId after;  // of jobs that ended at `since`, only those with greater ids
  std::int64_t limit = 0;
  std::optional<JobId> job{};  // only this job, and the tasks of it
};

class StoreReader {
 public:
  // `path` must be that of an open Store.
  [[nodiscard]] static Result<StoreReader> open(const std::string& path);

  // Errors: NotFound (the job has ended or never existed).
  [[nodiscard]] Result<std::string> spec(JobId job);
  [[nodiscard]] Result<std::optional<JobId>> find_request(UserId user, const RequestId& request);
  // Returns the serialised wire::JobStatus of a finished job. Errors: NotFound.
  [[nodiscard]] Result<std::string> ended_status(JobId job);
  // Returns the value of a setting. Errors: NotFound.
  [[nodiscard]] Result<std::string> setting(std::string_view key);
  // Returns the serialised wire::Profile of a finished job. Errors: NotFound.
  [[nodiscard]] Result<std::string> profile(JobId job);

  struct EndedJob {
    JobState state{};
    WallTime started{};  // 0: never
  };

  // Returns how a job ended, even if its row in the list of jobs is gone. Errors: NotFound.
  [[nodiscard]] Result<EndedJob> outcome(JobId job);

  struct EndedTasks {
    std::uint32_t completed = 0;
    std::uint32_t broken = 0;  // neither Completed nor Cancelled
  };

  // Returns how many tasks of an array ended in which way.
  [[nodiscard]] Result<EndedTasks> ended_tasks(JobId array);
  // Returns the job of an ended task of an array. Errors: NotFound.
  [[nodiscard]] Result<JobId> ended_task(JobId array, std::uint32_t task);
  // Returns the statuses of the jobs that ended last, latest first, of one user or of all.
  // `with_tasks` includes the tasks of arrays.
  [[nodiscard]] Result<std::vector<std::string>> lately_ended(std::optional<UserId> user,
                                                              std::int64_t limit,
                                                              bool with_tasks = true);
  // Returns jobs in the order of their ends; jobs with the same end are ordered by id.
  [[nodiscard]] Result<std::vector<AccountedJob>> accounting(const AccountQuery& query);

 private:
  Database database_;
  Statement spec_, request_, status_, ended_, ended_of_user_, ended_once_, ended_once_of_user_,
      account_, account_of_user_, account_of_job_, outcome_, ended_tasks_, ended_task_, profile_,
      setting_;
};

}  // namespace score::head
