#include "scored/head/api/head_api.hpp"

#include "base/model/settings.hpp"
#include "base/text/json_writer.hpp"
#include "proto/documents/cluster_documents.hpp"
#include "proto/documents/job_document.hpp"
#include "proto/documents/pool_documents.hpp"
#include "proto/documents/profile_document.hpp"
#include "proto/documents/words.hpp"
#include "scored/head/api/api_streams.hpp"
#include "scored/head/api/open_api.hpp"

#include <map>
#include <utility>

namespace score::head {
namespace {

using monitor::ApiAnswer;
using Answer = asio::awaitable<ApiAnswer>;

constexpr Duration kForName = 100ms;

ApiAnswer problem(int status, std::string_view text, std::string_view field = {}) {
  ApiAnswer answer;
  answer.status = status;
  answer.type = "application/problem+json";
  answer.body = monitor::problem_document(status, text, field);
  return answer;
}

int status_of(const Error& error) {
  if (error.is(Errc::Malformed) || error.is(Errc::TooLarge)) return 422;
  if (error.is(Errc::Denied)) return 403;
  if (error.is(Errc::NotFound)) return 404;
  if (error.is(Errc::Busy)) return 429;
  if (error.is(Errc::Closed) || error.is(Errc::Cancelled)) return 503;
  return 409;
}

ApiAnswer problem(const Error& error) {
  const std::string& text = error.context();
  return problem(status_of(error), text.empty() ? error.message() : text);
}

ApiAnswer document(JsonWriter& json) {
  ApiAnswer answer;
  answer.body = json.take() + "\n";
  return answer;
}

ApiAnswer job_answer(const wire::JobStatus& job) {
  JsonWriter json;
  json.begin_object().field("schema", "scored.job/1").key("job");
  proto::write_job(json, job);
  json.key("events").begin_array();
  for (const auto& event : job.events()) {
    proto::write_moment(json.begin_object(), "unix_s", event.wall_ns());
    json.field("text", event.text()).end_object();
  }
  json.end_array().end_object();
  ApiAnswer answer = document(json);
  answer.etag = etag_of(job);
  return answer;
}

ApiAnswer text_answer(const std::string& text) {
  JsonWriter json;
  json.begin_object().field("schema", "scored.done/1").field("text", text).end_object();
  return document(json);
}

// ---- one function per kind of request -----------------------------------------------------------

struct Caller {
  HeadClient& head;
  const monitor::ApiCaller& caller;
};

// Reads active jobs in the order of their numbers until there is one more than fits the page, then
// all that ended lately: a job that ends meanwhile is in both.
asio::awaitable<Result<std::map<std::uint64_t, wire::JobStatus>>> find_matching(
    Caller with, const ListedJobs& listed) {
  std::map<std::uint64_t, wire::JobStatus> found;
  wire::ListJobs ask;
  ask.set_all_users(listed.user != "me");
  ask.set_after_job(listed.after);
  for (bool reads_ended = false;;) {
    auto page = co_await with.head.ask<wire::JobList>(ask);
    if (!page) co_return page.error();
    const bool is_last = !page->truncated() || page->jobs().empty();
    if (!is_last) ask.set_after_job(page->jobs().rbegin()->job());
    for (auto& job : *page->mutable_jobs()) {
      const std::uint64_t number = job.job();
      if (number <= listed.after || !matches(listed, job, with.caller.who)) continue;
      found.insert_or_assign(number, std::move(job));
    }
    if (reads_ended) break;
    if (!is_last && found.size() <= listed.limit) continue;
    if (!listed.with_ended) break;
    reads_ended = true;
    ask.set_finished(true);
    ask.set_after_job(UINT64_MAX);  // no active ones
  }
  co_return found;
}

Answer carry_out(Caller with, const ListedJobs& listed) {
  const auto found = co_await find_matching(with, listed);
  if (!found) co_return problem(found.error());
  JsonWriter json;
  json.begin_object().field("schema", "scored.jobs/1").key("jobs").begin_array();
  std::size_t count = 0;
  std::uint64_t last = 0;
  for (const auto& [number, job] : *found) {
    if (count == listed.limit) break;
    proto::write_job(json, job);
    last = number;
    ++count;
  }
  const bool is_cut = count < found->size();
  json.end_array().field("truncated", is_cut);
  if (is_cut) json.field("next", last);
  json.end_object();
  co_return document(json);
}

asio::awaitable<Result<wire::JobStatus>> find_job(HeadClient& head, std::uint64_t job) {
  wire::ListJobs ask;
  ask.set_all_users(true);
  ask.set_finished(true);
  ask.add_jobs(job);
  auto list = co_await head.ask<wire::JobList>(ask);
  if (!list) co_return list.error();
  if (list->jobs().empty()) co_return fail(Errc::NotFound, "no job {}", job);
  co_return list->jobs(0);
}

Answer carry_out(Caller with, const OneJob& one) {
  const auto job = co_await find_job(with.head, one.job);
  if (!job) co_return problem(job.error());
  co_return job_answer(*job);
}

Answer carry_out(Caller with, const wire::Submit& submit) {
  const auto submitted = co_await with.head.ask<wire::Submitted>(submit);
  if (!submitted) co_return problem(submitted.error());
  JsonWriter json;
  json.begin_object().field("schema", "scored.submitted/1").field("job", submitted->job());
  json.end_object();
  ApiAnswer answer = document(json);
  answer.status = submitted->repeated_request() ? 200 : 201;
  answer.location = fmt::format("/api/v1/jobs/{}", submitted->job());
  co_return answer;
}

Answer carry_out(Caller with, const wire::Plan& plan) {
  const auto planned = co_await with.head.ask<wire::Planned>(plan);
  if (!planned) co_return problem(planned.error());
  JsonWriter json;
  proto::write_plan(json, *planned);
  co_return document(json);
}

template <class Message>
Answer carry_out_command(Caller with, const Message& message) {
  const auto done = co_await with.head.ask<wire::Done>(message);
  if (!done) co_return problem(done.error());
  co_return text_answer(done->text());
}

Answer carry_out(Caller with, const wire::SignalJob& message) {
  return carry_out_command(with, message);
}

Answer carry_out(Caller with, const wire::CancelJob& message) {
  return carry_out_command(with, message);
}

Answer carry_out(Caller with, const wire::ControlJob& message) {
  return carry_out_command(with, message);
}

Answer carry_out(Caller with, const wire::ChangeJob& message) {
  return carry_out_command(with, message);
}

Answer carry_out(Caller with, const ListedNodes& listed) {
  const auto list = co_await with.head.ask<wire::NodeList>(wire::ListNodes());
  if (!list) co_return problem(list.error());
  JsonWriter json;
  if (listed.node.empty()) {
    json.begin_object().field("schema", "scored.nodes/1").key("nodes").begin_array();
    for (const auto& node : list->nodes()) proto::write_node(json, node);
    json.end_array().end_object();
    co_return document(json);
  }
  for (const auto& node : list->nodes()) {
    if (node.name() != listed.node) continue;
    json.begin_object().field("schema", "scored.node/1").key("node");
    proto::write_node(json, node);
    json.end_object();
    co_return document(json);
  }
  co_return problem(404, fmt::format("no node {}", escape_terminal(listed.node, 80)), "node");
}

Answer carry_out(Caller with, const wire::GetInfo& ask) {
  const auto info = co_await with.head.ask<wire::Info>(ask);
  if (!info) co_return problem(info.error());
  JsonWriter json;
  json.begin_object();
  proto::write_info(json, *info);
  json.end_object();
  co_return document(json);
}

Answer carry_out(Caller with, const ListedSettings&) {
  const auto info = co_await with.head.ask<wire::Info>(wire::GetInfo());
  if (!info) co_return problem(info.error());
  JsonWriter json;
  json.begin_object().field("schema", "scored.settings/1").key("settings").begin_array();
  for (const SettingRule& rule : settings()) {
    json.begin_object().field("name", rule.name);
    json.field("value", proto::setting_text(*info, rule.setting));
    json.field("range", range_of(rule)).field("purpose", rule.purpose).end_object();
  }
  json.end_array().end_object();
  co_return document(json);
}

Answer carry_out(Caller with, const wire::ListShares& ask) {
  const auto list = co_await with.head.ask<wire::ShareList>(ask);
  if (!list) co_return problem(list.error());
  JsonWriter json;
  proto::write_shares(json, *list);
  co_return document(json);
}

Answer carry_out(Caller with, const ProfileRequest& wanted) {
  wire::GetProfile ask;
  ask.set_job(wanted.job);
  const auto profile = co_await with.head.ask<wire::Profile>(ask);
  if (!profile) co_return problem(profile.error());
  if (wanted.as_csv) {
    ApiAnswer answer;
    answer.type = "text/csv; charset=utf-8";
    answer.body = proto::profile_csv(*profile);
    co_return answer;
  }
  JsonWriter json;
  proto::write_profile(json, wanted.job, *profile);
  co_return document(json);
}

Answer carry_out(Caller with, const wire::ListReservations& ask) {
  const auto list = co_await with.head.ask<wire::ReservationList>(ask);
  if (!list) co_return problem(list.error());
  JsonWriter json;
  proto::write_reservations(json, *list, wall_now());
  co_return document(json);
}

Answer carry_out(Caller with, const wire::ManageTokens& ask) {
  const auto list = co_await with.head.ask<wire::TokenList>(ask);
  if (!list) co_return problem(list.error());
  JsonWriter json;
  json.begin_object().field("schema", "scored.tokens/1").key("tokens").begin_array();
  for (const auto& token : list->tokens()) {
    json.begin_object().field("token", token.token()).field("name", token.name());
    json.field("scope", token.only_reads() ? "read" : "submit");
    proto::write_moment(json, "expires_unix_s", token.expires_wall_ns());
    json.end_object();
  }
  json.end_array();
  if (!list->secret().empty()) json.field("secret", list->secret());
  json.end_object();
  ApiAnswer answer = document(json);
  if (ask.what() == wire::ManageTokens::NEW) answer.status = 201;
  co_return answer;
}

Answer carry_out(Caller, const Description&) {
  ApiAnswer answer;
  answer.body = std::string(open_api());
  co_return answer;
}

// ---- streams ------------------------------------------------------------------------------------

ApiAnswer answer_of(Result<ApiAnswer> made) {
  return made ? *std::move(made) : problem(made.error());
}

// A stream outlives the request, so it takes the connection.
Answer carry_out(Caller with, const OutputRequest& wanted) {
  co_return answer_of(co_await send_output(std::move(with.head), wanted));
}

Answer carry_out(Caller with, const JobEventsRequest& wanted) {
  co_return answer_of(co_await send_events(std::move(with.head), wanted));
}

Answer carry_out(Caller with, const RecordsRequest& wanted) {
  co_return answer_of(co_await send_records(std::move(with.head), wanted));
}

}  // namespace

asio::awaitable<std::string> HeadApi::name_of(UserId user) {
  co_await parts_.users.known(user, parts_.clock.now(), kForName);
  co_return parts_.users.name(user, parts_.clock.now());
}

// g++ 12 destroys an aggregate twice if there is a co_await between its braces.
asio::awaitable<std::optional<monitor::ApiCaller>> HeadApi::caller_with(std::string token) {
  const PersonalToken* const found = parts_.tokens.find(token, wall_now());
  if (found == nullptr) co_return std::nullopt;
  monitor::ApiCaller caller;
  caller.who.user = found->user;
  caller.may_change = !found->only_reads;
  caller.is_token = true;
  caller.who.name = co_await name_of(caller.who.user);
  co_return caller;
}

asio::awaitable<monitor::ApiCaller> HeadApi::caller_of(UserId user) {
  monitor::ApiCaller caller;
  caller.who.user = user;
  caller.who.name = co_await name_of(user);
  co_return caller;
}

Answer HeadApi::answer(monitor::ApiCall call) {
  auto read = read_request(call, wall_now());
  if (const auto* refused = std::get_if<ApiFault>(&read)) {
    ApiAnswer answer = problem(refused->status, refused->fault.text, refused->fault.field);
    answer.allow = refused->allow;
    co_return answer;
  }
  const ApiRequest request = std::get<ApiRequest>(std::move(read));
  auto head = co_await HeadClient::open(parts_.admit, call.caller.who.user);
  if (!head) co_return problem(head.error());
  if (!call.if_match.empty() && changed_job(request) != 0) {
    const auto job = co_await find_job(*head, changed_job(request));
    if (!job) co_return problem(job.error());
    if (!has_tag(call.if_match, etag_of(*job))) {
      co_return problem(412, fmt::format("job {} has changed since you read it", job->job()));
    }
  }
  co_return co_await std::visit(
      [&](const auto& what) -> Answer {
        return carry_out({*head, call.caller}, what);
      },
      request);
}

}  // namespace score::head
