#include "scored/head/etcd/etcd_lease.hpp"

#include "base/os/log.hpp"
#include "base/text/plain.hpp"

#include <fmt/format.h>

#include <utility>

namespace score::head::etcd {
namespace {

// A value may have changed because an earlier request was carried out after its timeout.
constexpr int kMostTries = 3;
// A fault shorter than this is not reported: another member has answered.
constexpr Duration kQuiet = 1s;
constexpr Duration kRetry = 50ms;
// A renewal that is seen late, for example after an election in etcd, delays a take-over.
constexpr Duration kWatchPeriod = 100ms;

}  // namespace

Result<std::unique_ptr<EtcdLease>> EtcdLease::open(asio::io_context& io, Clock& clock,
                                                   const LeaseConfig& config,
                                                   const std::string& cluster) {
  auto client = EtcdClient::open(io, clock, config);
  if (!client) return client.error();
  std::string key = fmt::format("{}/{}/lease", config.prefix, cluster);
  return std::unique_ptr<EtcdLease>(
      new EtcdLease(io, clock, *std::move(client), std::move(key), gang::LeaseTiming()));
}

void EtcdLease::ask(const gang::LeaseRequest& request) {
  waiting_ = request;
  is_watching_ = !request.wants;
  if (is_idle_) alarm_.again();
}

Status EtcdLease::check_cluster(std::uint64_t id) {
  if (cluster_ == 0) cluster_ = id;
  if (cluster_ == id) return {};
  return fail(Errc::WrongState, "it belongs to another etcd cluster than a member before");
}

asio::awaitable<Status> EtcdLease::read() {
  std::string body = format_read(key_);
  const auto text = co_await client_->post(kReadPath, std::move(body));
  if (!text) co_return text.error();
  const auto answer = parse_read(*text, key_);
  if (!answer) co_return answer.error();
  if (auto same = check_cluster(answer->cluster); !same) co_return same;
  co_return witness_.found(answer->found, clock_.now());
}

// Returns the reply if the proposal was stored; otherwise the key is known again.
asio::awaitable<Result<std::optional<gang::LeaseReply>>> EtcdLease::replace(
    EtcdWitness::Proposal proposal) {
  std::string body = format_replace(key_, proposal.revision, proposal.value);
  const auto text = co_await client_->post(kReplacePath, std::move(body));
  if (!text) co_return text.error();
  const auto answer = parse_replaced(*text, key_);
  if (!answer) co_return answer.error();
  if (auto same = check_cluster(answer->cluster); !same) co_return same.error();
  std::optional<gang::LeaseReply> reply;
  if (answer->stored_at) {
    reply = witness_.stored(proposal, *answer->stored_at);
  } else if (auto known = witness_.found(answer->found, clock_.now()); !known) {
    co_return known.error();
  }
  co_return reply;
}

asio::awaitable<Result<gang::LeaseReply>> EtcdLease::serve(gang::LeaseRequest request) {
  for (int tries = 0; request.wants && witness_.is_known() && tries < kMostTries; ++tries) {
    auto proposal = witness_.propose(request, clock_.now());
    if (!proposal) break;
    auto replacing = replace(*std::move(proposal));
    auto replaced = co_await std::move(replacing);
    if (!replaced) co_return replaced.error();
    if (*replaced) co_return **replaced;
  }
  if (const auto known = co_await read(); !known) co_return known.error();
  co_return witness_.answer(request, clock_.now());
}

asio::awaitable<Status> EtcdLease::step() {
  if (!waiting_) {
    const auto known = co_await read();
    co_return known;
  }
  gang::LeaseRequest request = *std::exchange(waiting_, std::nullopt);
  const auto reply = co_await serve(request);
  if (!reply) {
    if (!waiting_) waiting_ = request;  // another member is asked
    co_return reply.error();
  }
  if (on_reply_) on_reply_(*reply);
  co_return Status();
}

void EtcdLease::note_fault(const Error& error) {
  if (!fault_.empty() || clock_.now() - answered_ < kQuiet) return;
  fault_ = fmt::format("{}: {}", client_->member(), plain_text(error));
  log_warning("Cannot reach the etcd of the lease; retrying", kv("err", fault_));
}

asio::awaitable<void> EtcdLease::run() {
  answered_ = clock_.now();
  for (;;) {
    const auto done = co_await step();
    if (done) {
      if (!fault_.empty()) log_notice("Reached the etcd of the lease again");
      fault_.clear();
      answered_ = clock_.now();
      is_idle_ = !waiting_;
      if (is_idle_)
        co_await alarm_.sleep_until(answered_ + (is_watching_ ? kWatchPeriod : timing_.period));
      is_idle_ = false;
    } else {
      note_fault(done.error());
      client_->leave_member();
      co_await clock_.sleep_for(kRetry);
    }
  }
}

std::string EtcdLease::describe() const {
  if (fault_.empty()) return "lease in etcd";
  return fmt::format("lease in etcd, which does not answer: {}", fault_);
}

}  // namespace score::head::etcd
