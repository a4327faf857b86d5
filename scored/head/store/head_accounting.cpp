// What `scacct` asks: rows of ended jobs, a page at a time, so that no answer keeps the head busy.
#include "base/text/hostlist.hpp"
#include "scored/head/head.hpp"

namespace score::head {

namespace {

constexpr std::int64_t kRowsPerPage = 1'000;

wire::AccountingRow to_wire(const AccountedJob& job) {
  wire::AccountingRow row;
  row.set_job(job.id.value());
  row.set_user(job.user.value());
  row.set_name(job.name);
  row.set_state(static_cast<std::uint32_t>(job.state));
  row.set_exit_code(job.exit_code);
  row.set_node_count(static_cast<std::uint32_t>(job.nodes.size()));
  row.set_nodes(compress_hostlist(job.nodes));
  row.set_tasks(job.tasks);
  row.set_submitted_wall_ns(job.submitted.time_since_epoch().count());
  row.set_started_wall_ns(job.started.time_since_epoch().count());
  row.set_ended_wall_ns(job.ended.time_since_epoch().count());
  row.set_scheduled_ns(job.scheduled.count());
  row.set_restarts(job.restarts);
  return row;
}

}  // namespace

Result<wire::Accounting> Head::accounting(const Peer& peer, const wire::GetAccounting& message) {
  AccountQuery query;
  if (!message.all_users()) query.user = peer.user;
  query.since = WallTime(Duration(message.since_wall_ns()));
  query.after = JobId(message.after_job());
  query.limit = kRowsPerPage + 1;
  const auto jobs = reader_.accounting(query);
  if (!jobs) return jobs.error();
  wire::Accounting page;
  std::size_t bytes = 0;
  for (const AccountedJob& job : *jobs) {
    auto row = to_wire(job);
    row.set_user_name(users_.name(job.user, now()));
    if (!may_know(peer, job.user)) {
      row.set_user(kHiddenUser);
      row.clear_user_name();
      row.clear_name();
    }
    bytes += row.ByteSizeLong();
    const bool is_full = page.rows_size() == kRowsPerPage || bytes > limits::kMaxFrameBytes;
    if (page.rows_size() > 0 && is_full) {
      page.set_more(true);
      break;
    }
    *page.add_rows() = std::move(row);
  }
  return page;
}

}  // namespace score::head
