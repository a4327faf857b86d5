#pragma once
// The parts of gang::Cluster, for its sources only. One object, its functions in files by theme:
//
//   cluster.cpp            the public face
//   cluster_nodes.cpp      nodes come and go, reconciliation, failure detector
//   cluster_jobs.cpp       a job's launch and end, what nodes say about attempts, deadlines
//   cluster_placement.cpp  who is placed next and where, promises, compaction of rows
//   cluster_publish.cpp    from the matrix to timetables, scheduled time
//   cluster_idle.cpp       idle and deadlocked jobs
//   cluster_meetings.cpp   barrier mode
//   cluster_recovery.cpp   a restarted head
//   cluster_views.cpp      what is shown
//   cluster_invariants.cpp what must always hold
//
// Every public call that changes something ends in settle(): place who waits, publish what changed.

#include "gang/head/cluster.hpp"
#include "gang/head/failure_detector.hpp"
#include "gang/job/job_state.hpp"
#include "gang/matrix/cycle.hpp"
#include "gang/matrix/matrix.hpp"
#include "gang/matrix/shape.hpp"
#include "gang/matrix/stride.hpp"

#include <array>
#include <functional>
#include <set>
#include <tuple>
#include <unordered_map>

namespace score::gang {

// What a node was told to follow, independent of when it starts: equal columns need no message.
struct Column {
  std::uint64_t cycle = 0;                   // serial; 0 if the node need not know the cycle
  std::vector<std::vector<AttemptId>> rows;  // [row of the cycle]; one: all rows run the same
  std::vector<AttemptId> managed;
  std::vector<AttemptId> background;

  [[nodiscard]] bool is_shared() const { return rows.size() > 1; }

  [[nodiscard]] bool runs_anything() const {
    return is_shared() || (!rows.empty() && !rows.front().empty());
  }

  friend bool operator==(const Column&, const Column&) = default;
};

struct Node {
  NodeId id{0};
  base::NodeInfo info;
  bool seen = false;  // info came from the node itself
  NodeState state = NodeState::Unknown;
  bool connected = false;
  bool drained = false;
  std::string drain_reason;
  std::string down_reason;
  base::Bytes reserved{0};
  std::set<JobId> jobs;         // placed here, overlay jobs too
  std::set<AttemptId> zombies;  // run here, but have ended for us: nothing is placed beside them
  std::optional<JobId> exclusive;
  std::optional<Column> column;  // what it was last told; nullopt: unknown
  TimePoint column_start{};
  bool awaited = false;  // by a restarted head
  bool stuck = false;    // did not end an attempt in time: Suspect until its zombies are gone
};

// How far one node is with one attempt.
enum class Member : std::uint8_t {
  Asked,     // PrepareTasks sent
  Prepared,  // answered
  Started,   // StartTasks sent
  Gone,      // nothing runs there (any more), or the node is lost
};

// Waiting jobs in the order in which they are tried: High first, then priority, then age.
struct WaitKey {
  bool low = true;
  std::int64_t minus_priority = 0;
  std::uint64_t number = 0;  // of submission
  JobId job{0};

  friend auto operator<=>(const WaitKey&, const WaitKey&) = default;
};

// In which rows a job runs from `from` on, and the sum of their clocks then.
struct Accrual {
  TimePoint from{};
  Duration before{0};  // scheduled until `from`
  std::vector<RowId> rows;
  Duration base{0};
};

enum class DeadlineKind : std::uint8_t { Launch, Begin, Kill, Wall, Scheduled, Quiet };
inline constexpr std::size_t kDeadlineKinds = 6;

// Who has come to a meeting of the newest boundary that was heard of.
struct Gathering {
  TimePoint boundary{};
  std::vector<bool> there;  // [node index within the job]; empty: all have met
};

struct Job {
  JobId id{0};
  UserId user{0};
  base::ResourceRequest request;
  Shape shape;
  JobState state = JobState::Pending;
  std::uint64_t attempts = 0;  // number of the current one, from 1
  std::uint32_t restarts = 0;  // of them, after a lost node
  std::string lost;            // which
  WaitKey wait;
  bool keep_going = false;
  std::vector<bool> allowed;  // [node index] by only_nodes and except_nodes; empty: all

  bool placed = false;
  Footprint cells;
  std::vector<std::uint32_t> tasks_on_node;
  RowId home{0};  // 0: none (overlay)
  std::vector<Member> members;
  std::vector<base::Activity> parts;     // [node index within the job]
  std::optional<TimePoint> quiet_since;  // all parts are idle
  std::optional<TimePoint> waits_since;  // all parts wait for messages only
  JobActivity activity = JobActivity::Busy;
  bool background = false;  // by the newest layout
  std::array<Gathering, base::kMeetings> gatherings;
  std::vector<std::uint32_t> node_of_rank;  // [rank]: node index within the job
  std::uint32_t waited_for = 0;             // members that are Asked
  std::uint32_t remaining = 0;              // members that are not Gone
  std::set<std::size_t> to_begin;           // members told to start that have not said Started
  Duration begin_from{0};                   // its scheduled time when the last of them was told

  std::vector<base::TaskExit> exits;  // [rank], if exit_known
  std::vector<bool> exit_known;       // [rank]; empty until placed
  std::vector<std::string> reasons;
  int exit_code = 0;
  std::optional<JobState> ending;

  struct Failure {  // of a task
    std::string reason;
    int exit_code = 0;
    TimePoint at{};        // cluster time; 0: not known
    bool is_loss = false;  // it went without a word: others may notice
  };

  std::optional<Failure> failure;  // that `reasons` tell of

  std::optional<TimePoint> submitted, started, ended;
  std::array<std::optional<TimePoint>, kDeadlineKinds> deadlines;
  Accrual accrual;
  std::optional<Accrual> previous;  // in force until accrual.from

  [[nodiscard]] AttemptId attempt() const { return base::make_attempt(id, attempts); }

  [[nodiscard]] bool overlay() const { return request.overlay; }

  // In the timetable: has cores, was started, was not suspended, has not ended.
  [[nodiscard]] bool is_active() const { return state == JobState::Running && !overlay(); }

  [[nodiscard]] bool is_managed() const {
    return is_active() || (state == JobState::Suspended && !overlay());
  }
};

// Room kept for the first in line: nothing behind it in line may take it.
struct Promise {
  JobId job{0};
  WaitKey wait;             // its place in line
  RowId row{0};             // 0: every row (an exclusive job)
  std::vector<bool> nodes;  // [node index]
  base::Bytes memory{0};
};

inline constexpr const char* kDeadlockReason =
    "deadlock: every task waits for a message and none can send one";

// Which rows take turns, and who runs in them.
struct Layout {
  std::vector<WeightedRow> rows;                      // in the order of the matrix
  std::vector<CoreMap> taken;                         // [row]
  std::vector<std::vector<JobId>> at_home;            // [row]
  std::map<JobId, std::vector<std::size_t>> runs_in;  // ascending rows
  std::set<JobId> background;                         // idle jobs whose cores others want

  [[nodiscard]] std::vector<RowId> ids(const std::vector<std::size_t>& indices) const {
    std::vector<RowId> out;
    for (const std::size_t i : indices) out.push_back(rows[i].row);
    return out;
  }
};

struct Spot {
  std::optional<std::size_t> row;  // position; nullopt: open one, or overlay
  Choice choice;
};

class Cluster::Impl {
 public:
  explicit Impl(ClusterConfig c);

  // ---- nodes
  base::Result<void> add_node(NodeId id, std::string name);
  void connected(NodeId id, const base::NodeHello& hello, TimePoint now, Actions& out);
  void disconnected(NodeId id, TimePoint now, Actions& out);
  void heartbeat(NodeId id, TimePoint now, Actions& out);
  base::Result<void> drain(NodeId id, std::string reason, Actions& out);
  base::Result<void> resume_node(NodeId id, Actions& out);

  // ---- jobs
  base::Result<Shape> check(const base::ResourceRequest& request) const;
  base::Result<void> submit(JobId id, UserId user, const base::ResourceRequest& request,
                            TimePoint now, Actions& out);
  [[nodiscard]] base::Result<JobView> plan(const base::ResourceRequest& request) const;
  void recover(const std::vector<RecoveredJob>& recovered, TimePoint now, Actions& out);
  base::Result<void> cancel(JobId id, EndCause cause, TimePoint now, Actions& out);
  base::Result<void> signal(JobId id, int signal, Actions& out);
  base::Result<void> suspend(JobId id, Actions& out);
  base::Result<void> resume(JobId id, TimePoint now, Actions& out);
  base::Result<void> hold(JobId id, Actions& out);
  base::Result<void> release(JobId id, TimePoint now, Actions& out);
  base::Result<void> set_weight(JobId id, std::uint32_t weight, Actions& out);
  base::Result<void> set_priority(JobId id, std::int32_t priority, Actions& out);
  void said(NodeId id, const base::NodeToHead& message, TimePoint now, Actions& out);
  void tick(TimePoint now, Actions& out);
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;
  void settle(TimePoint now, Actions& out);

  void capacity_grew() { capacity_grew_ = true; }

  // ---- views
  [[nodiscard]] JobView view(const Job& job, TimePoint now) const;
  [[nodiscard]] NodeView view(const Node& node) const;
  [[nodiscard]] MatrixView matrix_view() const;
  [[nodiscard]] base::Result<void> check_invariants(TimePoint now) const;

  [[nodiscard]] const Job* find_job(JobId id) const;
  Job* find_job(JobId id);
  [[nodiscard]] std::optional<NodeIndex> find_node(NodeId id) const;
  [[nodiscard]] base::Result<Job*> known_job(JobId id);

  ClusterConfig config;
  ClusterCounters counters;
  std::vector<Node> nodes;  // [node index]
  std::map<NodeId, NodeIndex> node_index;
  std::unordered_map<std::string, NodeIndex> names;
  std::map<JobId, Job> jobs;
  bool dirty = false;  // the timetables may have to change

 private:
  using Deadline = std::tuple<TimePoint, DeadlineKind, JobId>;

  // cluster_nodes.cpp
  void send(NodeIndex node, base::HeadToNode message, Actions& out) const;
  void set_state(Node& node, NodeState state, Actions& out);
  void refresh_state(Node& node, Actions& out);
  void accept_hardware(NodeIndex index, const base::NodeInfo& info, TimePoint now, Actions& out);
  void reconcile(NodeIndex index, const base::NodeHello& hello, TimePoint now, Actions& out);
  void reconcile_known(Job& job, std::size_t member, const base::AttemptReport& report,
                       TimePoint now, Actions& out);
  void reconcile_missing(Job& job, std::size_t member, TimePoint now, Actions& out);
  void end_impossible(TimePoint now, Actions& out);
  void bury(NodeIndex node, AttemptId attempt, Actions& out);
  void resurrect(NodeIndex node, AttemptId attempt, Actions& out);
  void node_down(NodeIndex index, const std::string& reason, TimePoint now, Actions& out);
  void lose_jobs(NodeIndex index, const std::string& reason, TimePoint now, Actions& out);

  // cluster_jobs.cpp
  void change(Job& job, JobEvent event, Actions& out);
  void note_state(const Job& job);
  void launch(Job& job, TimePoint now, Actions& out);
  void prepare_on(const Job& job, std::size_t member, Actions& out) const;
  void prepared(Job& job, std::size_t member, TimePoint now, Actions& out);
  void start_on_all(Job& job, TimePoint now, Actions& out);
  void start_on(Job& job, std::size_t member, TimePoint now, Actions& out);
  void began(Job& job, std::size_t member, TimePoint now, Actions& out);
  void said_of_job(Job& job, std::size_t member, const base::NodeToHead& message, TimePoint now,
                   Actions& out);
  bool record_exit(Job& job, std::size_t member, const base::TaskExit& exit);
  [[nodiscard]] std::string failure_of(const Job& job, std::size_t member,
                                       const base::TaskExit& exit) const;
  [[nodiscard]] std::string failures_of(const Job& job) const;
  [[nodiscard]] std::string abort_of(const Job& job, std::size_t member,
                                     const base::AbortRequested& abort) const;

  void blame(Job& job, Job::Failure failure, TimePoint now, Actions& out);
  void judge_exit(Job& job, std::size_t member, const base::TaskExit& exit, TimePoint now,
                  Actions& out);
  void exited(Job& job, std::size_t member, const base::Exited& message, TimePoint now,
              Actions& out);
  void gone(Job& job, std::size_t member, TimePoint now, Actions& out);
  void end(Job& job, JobState final_state, std::string reason, int exit_code, TimePoint now,
           Actions& out);
  void finish(Job& job, TimePoint now, Actions& out);
  [[nodiscard]] bool will_requeue(const Job& job) const;
  void requeue(Job& job, Actions& out);
  void forget_attempt(const Job& job, Actions& out) const;
  void unplace(Job& job);
  void place_cells(Job& job, std::size_t row);
  void refused(Job& job, std::size_t member, const base::Refused& message, TimePoint now,
               Actions& out);
  void set_deadline(Job& job, DeadlineKind kind, TimePoint at);
  void clear_deadlines(Job& job);
  void deadline_due(Job& job, DeadlineKind kind, TimePoint now, Actions& out);
  void launch_overdue(Job& job, TimePoint now, Actions& out);
  void begin_overdue(Job& job, TimePoint now, Actions& out);
  void kill_overdue(Job& job, TimePoint now, Actions& out);
  void watch_scheduled_limit(Job& job, TimePoint now, Actions& out);
  [[nodiscard]] std::string name_of(const Job& job, std::size_t member) const;
  [[nodiscard]] static std::optional<std::size_t> member_of(const Job& job, NodeIndex node);

  // cluster_placement.cpp
  void apply_hardware(NodeIndex index);
  void place_waiting(TimePoint now, Actions& out);
  void try_new(Job& job, TimePoint now, Actions& out);
  bool try_place(Job& job, TimePoint now, Actions& out);
  [[nodiscard]] std::optional<Spot> find_spot(const Job& job) const;
  [[nodiscard]] std::vector<Candidate> candidates(const Job& job,
                                                  std::optional<std::size_t> row) const;
  [[nodiscard]] bool may_use(const Job& job, NodeIndex index) const;
  [[nodiscard]] std::vector<bool> allowed_nodes(const base::ResourceRequest& request) const;
  [[nodiscard]] bool is_behind_promise(const Job& job) const;
  [[nodiscard]] base::Bytes free_memory(const Job& job, NodeIndex node) const;
  void put(Job& job, const Spot& spot);
  void promise_to(const Job& job);
  [[nodiscard]] bool comes_before_promise(const Job& job) const;
  [[nodiscard]] bool promise_holds() const;
  void compact();
  bool move_down(Job& job);
  [[nodiscard]] bool is_promised_cell(std::size_t position, const Footprint& cells) const;

  // cluster_publish.cpp
  struct Start;
  void publish(TimePoint now, Actions& out);
  [[nodiscard]] Layout lay_out() const;
  void unify(Layout& layout) const;
  [[nodiscard]] std::vector<Column> columns_of(const Layout& layout, std::uint64_t serial) const;
  struct Change;
  [[nodiscard]] Duration lead_for(std::size_t told) const;
  [[nodiscard]] Start choose_start(const Change& change, TimePoint now) const;
  [[nodiscard]] bool is_slice_over(const Layout& layout, TimePoint t) const;
  void begin_cycle(const Layout& layout, std::uint64_t serial, TimePoint start);
  [[nodiscard]] base::Timetable timetable_of(const Column& column, TimePoint start) const;
  void account(const Layout& layout, TimePoint start);
  [[nodiscard]] Duration clock_sum(const std::vector<RowId>& rows, TimePoint t) const;
  void stop_accrual(Job& job, TimePoint now);
  [[nodiscard]] Duration scheduled(const Job& job, TimePoint now) const;
  [[nodiscard]] Duration time_to_run(const Job& job, Duration want, TimePoint now) const;

  // cluster_idle.cpp
  void activity_changed(Job& job, std::size_t member, const base::Activity& activity, TimePoint now,
                        Actions& out);

  struct Whole {  // of a job's shares
    bool idle = false;
    bool waits = false;    // all of them, for messages only
    bool settled = false;  // no message is in flight
  };

  [[nodiscard]] static Whole whole_activity(const Job& job);
  void judge_activity(Job& job, TimePoint now, Actions& out);
  void deadlocked(Job& job, TimePoint now, Actions& out);
  void set_activity(Job& job, JobActivity activity, Actions& out);
  void forget_activity(Job& job);
  void note_background(const Layout& layout, Actions& out);
  [[nodiscard]] std::set<JobId> background_jobs() const;

  // cluster_meetings.cpp
  void meeting_reached(Job& job, std::size_t member, const base::MeetingReached& reached,
                       Actions& out);
  void hold_meetings(Job& job, Actions& out) const;

  // cluster_recovery.cpp
  void recover_one(const RecoveredJob& recovered, TimePoint now, Actions& out);
  bool recover_placement(Job& job, const RecoveredJob& recovered);
  void end_recovery();

  // cluster.cpp
  void add_job(JobId id, UserId user, const base::ResourceRequest& request, const Shape& shape,
               std::optional<TimePoint> submitted);
  [[nodiscard]] base::Result<void> check_names(const base::ResourceRequest& request) const;
  [[nodiscard]] base::Result<void> check_room(const base::ResourceRequest& request,
                                              Shape& shape) const;
  [[nodiscard]] bool fits_somewhere(const base::ResourceRequest& request, const Shape& shape) const;
  [[nodiscard]] bool fits_shared(const base::ResourceRequest& request, Shape& shape) const;
  [[nodiscard]] base::Error no_room(const base::ResourceRequest& request, const Shape& shape) const;
  [[nodiscard]] bool is_allowed(const std::vector<bool>& allowed, NodeIndex index) const;

  // cluster_views.cpp
  [[nodiscard]] std::vector<std::string> wait_reasons(const Job& job) const;
  void node_reasons(const Job& job, std::vector<std::string>& out) const;
  void room_reasons(const Job& job, std::vector<std::string>& out) const;

  // cluster_invariants.cpp
  [[nodiscard]] base::Result<void> check_matrix() const;
  [[nodiscard]] base::Result<void> check_reservations() const;
  [[nodiscard]] base::Result<void> check_jobs(TimePoint now) const;
  [[nodiscard]] base::Result<void> check_waiting() const;
  [[nodiscard]] base::Result<void> check_columns() const;

  Matrix matrix_;
  FailureDetector detector_;
  std::set<WaitKey> waiting_;  // not held
  std::uint64_t submissions_ = 0;
  std::size_t live_jobs_ = 0;  // not in a final state
  std::optional<Promise> promise_;
  bool capacity_grew_ = false;
  std::set<JobId> active_;     // have a turn in the timetable
  std::set<JobId> managed_;    // these, and the suspended: frozen if it is not their turn
  std::set<JobId> accounted_;  // their scheduled time grows
  std::set<JobId> start_due_;  // StartTasks goes out with the next epoch
  std::vector<std::pair<RowId, NodeIndex>> freed_;  // cells since the last compaction
  std::set<Deadline> deadlines_;
  CycleClock cycles_;
  Stride stride_;                        // as of the start of cycles_.newest()
  Stride stride_before_;                 // the same, before the newest's rows were set
  std::vector<WeightedRow> cycle_rows_;  // of cycles_.newest()
  std::uint64_t last_serial_ = 0;
  Epoch epoch_{0};
  TimePoint latest_start_{};  // of all that was sent
  TimePoint publish_not_before_{};
  bool recovering_ = false;
};

}  // namespace score::gang
