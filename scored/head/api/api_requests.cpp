#include "scored/head/api/api_requests.hpp"

#include "base/ids.hpp"
#include "base/text.hpp"
#include "base/text/fnv1a.hpp"
#include "monitor/model/json_input.hpp"
#include "monitor/model/viewer_options.hpp"
#include "proto/documents/words.hpp"
#include "proto/transport/key.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace score::head {
namespace {

using Outcome = std::variant<ApiRequest, ApiFault>;
using monitor::ApiCall;

constexpr std::size_t kMostListed = 1'000;
constexpr std::size_t kMostKeyBytes = 255;

ApiFault refuse(int status, std::string text, std::string field = {}) {
  return {status, {std::move(text), std::move(field)}};
}

ApiFault no_such_path() {
  return refuse(404, "no such path; GET /api/v1/openapi.json describes all");
}

// `methods` is a list such as "GET, PATCH, DELETE".
ApiFault wrong_method(std::string methods) {
  ApiFault refused = refuse(405, fmt::format("only {}", methods));
  refused.allow = std::move(methods);
  return refused;
}

// The parts of the path after "/api/v1/".
std::vector<std::string_view> parts_of(const ApiCall& call) {
  constexpr std::string_view kPrefix = "/api/v1/";
  return split(std::string_view(call.target.path).substr(kPrefix.size()), '/');
}

std::optional<bool> flag_of(std::string_view text) {
  if (text == "1" || text == "true") return true;
  if (text == "0" || text == "false") return false;
  return std::nullopt;
}

Outcome read_view(const ApiCall& call, ApiRequest request) {
  if (call.method != "GET") return wrong_method("GET");
  if (!call.target.query.empty()) {
    const auto& name = call.target.query.front().first;
    return refuse(400, fmt::format("unknown parameter '{}'", escape_terminal(name, 80)), name);
  }
  return request;
}

// ---- jobs ---------------------------------------------------------------------------------------

bool is_state(std::string_view word) {
  const auto known = [&](std::string_view state) { return state == word; };
  return std::ranges::any_of(kJobStateWords, known);
}

Outcome read_list(const ApiCall& call) {
  ListedJobs listed;
  listed.user = "me";
  for (const auto& [name, value] : call.target.query) {
    const auto number = parse_number<std::uint64_t>(value);
    const auto flag = flag_of(value);
    bool is_sound = true;
    if (name == "user") {
      listed.user = value;
    } else if (name == "name") {
      listed.name = value;
    } else if (name == "state") {
      listed.state = value;
      is_sound = is_state(value);
    } else if (name == "ended") {
      is_sound = flag.has_value();
      listed.with_ended = flag.value_or(true);
    } else if (name == "after") {
      is_sound = number.has_value();
      listed.after = number.value_or(0);
    } else if (name == "limit") {
      is_sound = number && *number >= 1 && *number <= kMostListed;
      listed.limit = static_cast<std::size_t>(number.value_or(0));
    } else {
      return refuse(400, fmt::format("unknown parameter '{}'", escape_terminal(name, 80)), name);
    }
    if (!is_sound) {
      return refuse(400, fmt::format("{}: '{}' is not valid", name, escape_terminal(value, 80)),
                    name);
    }
  }
  return ApiRequest(std::move(listed));
}

// The same key of the same user gives the same submission, so a repeated request makes no second
// job.
std::string request_id_of(const ApiCall& call) {
  constexpr std::size_t kBytes = 16;
  const auto digest =
      proto::digest_of(fmt::format("{} {}", call.caller.who.user, call.idempotency_key));
  return {digest.begin(), digest.begin() + kBytes};
}

// Returns whether the only parameter, dry_run, is set.
std::variant<bool, ApiFault> read_dry_run(const ApiCall& call) {
  bool is_dry = false;
  for (const auto& [name, value] : call.target.query) {
    const auto flag = flag_of(value);
    if (name != "dry_run") {
      return refuse(400, fmt::format("unknown parameter '{}'", escape_terminal(name, 80)), name);
    }
    if (!flag) return refuse(400, "dry_run: must be 0 or 1", name);
    is_dry = *flag;
  }
  return is_dry;
}

Outcome read_new_job(const ApiCall& call, WallTime now) {
  auto dry_run = read_dry_run(call);
  if (auto* refused = std::get_if<ApiFault>(&dry_run)) return std::move(*refused);
  if (call.idempotency_key.size() > kMostKeyBytes) {
    return refuse(400, "the header Idempotency-Key is too long", "Idempotency-Key");
  }
  RequestFault fault;
  auto submit = read_submission(call.body, now, fault);
  if (!submit) return ApiFault{422, std::move(fault)};
  if (std::get<bool>(dry_run)) {
    wire::Plan plan;
    *plan.mutable_submission() = *std::move(submit);
    return ApiRequest(std::move(plan));
  }
  ApiCall keyed = call;
  if (keyed.idempotency_key.empty()) {
    keyed.idempotency_key = proto::format_key(proto::random_key());
  }
  submit->set_request_id(request_id_of(keyed));
  return ApiRequest(*std::move(submit));
}

Outcome read_signal(const ApiCall& call, std::uint64_t job) {
  const auto object = monitor::parse_object(call.body);
  if (!object) return refuse(400, object.error().context());
  const auto named = object->find("signal");
  const auto* word = named == object->end() ? nullptr : std::get_if<std::string>(&named->second);
  if (word == nullptr || object->size() != 1) {
    return refuse(422, "signal: must be a name such as \"TERM\"", "signal");
  }
  const auto signal = proto::parse_signal(*word);
  if (!signal) return refuse(422, signal.error().context(), "signal");
  wire::SignalJob message;
  message.set_job(job);
  message.set_signal(*signal);
  return ApiRequest(std::move(message));
}

Outcome read_change_of(const ApiCall& call, std::uint64_t job, WallTime now) {
  RequestFault fault;
  auto change = read_change(call.body, now, fault);
  if (!change) return ApiFault{422, std::move(fault)};
  change->set_job(job);
  return ApiRequest(*std::move(change));
}

Outcome read_action(const ApiCall& call, std::uint64_t job, std::string_view action) {
  constexpr std::pair<std::string_view, wire::ControlJob::What> kActions[] = {
      {"hold", wire::ControlJob::HOLD},
      {"release", wire::ControlJob::RELEASE},
      {"requeue", wire::ControlJob::REQUEUE},
      {"resume", wire::ControlJob::RESUME},
      {"suspend", wire::ControlJob::SUSPEND}};
  for (const auto& [name, what] : kActions) {
    if (name != action) continue;
    if (call.method != "POST") return wrong_method("POST");
    wire::ControlJob message;
    message.set_job(job);
    message.set_what(what);
    return ApiRequest(std::move(message));
  }
  if (action != "signal") return no_such_path();
  if (call.method != "POST") return wrong_method("POST");
  return read_signal(call, job);
}

Outcome read_output(const ApiCall& call, std::uint64_t job) {
  if (call.method != "GET") return wrong_method("GET");
  OutputRequest output;
  output.job = job;
  for (const auto& [name, value] : call.target.query) {
    const auto number = parse_number<std::uint64_t>(value);
    const auto flag = flag_of(value);
    bool is_sound = true;
    if (name == "stream") {
      is_sound = value == "stdout" || value == "stderr";
      output.stream = value == "stderr" ? wire::STDERR : wire::STDOUT;
    } else if (name == "offset") {
      is_sound = number.has_value();
      output.offset = number.value_or(0);
    } else if (name == "follow") {
      is_sound = flag.has_value();
      output.follows = flag.value_or(false);
    } else {
      return refuse(400, fmt::format("unknown parameter '{}'", escape_terminal(name, 80)), name);
    }
    if (!is_sound) {
      return refuse(400, fmt::format("{}: '{}' is not valid", name, escape_terminal(value, 80)),
                    name);
    }
  }
  return ApiRequest(output);
}

Outcome read_profile(const ApiCall& call, std::uint64_t job) {
  if (call.method != "GET") return wrong_method("GET");
  ProfileRequest profile{.job = job};
  for (const auto& [name, value] : call.target.query) {
    if (name != "format" || (value != "json" && value != "csv")) {
      return refuse(400,
                    fmt::format("'{}={}' is unknown; format=csv or format=json",
                                escape_terminal(name, 80), escape_terminal(value, 80)),
                    name);
    }
    profile.as_csv = value == "csv";
  }
  return ApiRequest(profile);
}

Outcome read_jobs(const ApiCall& call, const std::vector<std::string_view>& parts, WallTime now) {
  if (parts.size() == 1) {
    if (call.method == "GET") return read_list(call);
    if (call.method == "POST") return read_new_job(call, now);
    return wrong_method("GET, POST");
  }
  const auto job = proto::parse_job(parts[1]);
  if (!job) return refuse(404, job.error().context(), "job");
  if (parts.size() == 2) {
    if (call.method == "GET") return ApiRequest(OneJob{*job});
    if (call.method == "PATCH") return read_change_of(call, *job, now);
    if (call.method != "DELETE") return wrong_method("GET, PATCH, DELETE");
    wire::CancelJob message;
    message.set_job(*job);
    message.set_grace_ns(-1);
    return ApiRequest(std::move(message));
  }
  if (parts.size() > 3) return no_such_path();
  if (parts[2] == "events") {
    const auto last = parse_number<std::int64_t>(call.last_event_id);
    return read_view(call, JobEventsRequest{*job, last ? *last : 0});
  }
  if (parts[2] == "profile") return read_profile(call, *job);
  return parts[2] == "output" ? read_output(call, *job) : read_action(call, *job, parts[2]);
}

// ---- accounting ---------------------------------------------------------------------------------

// A moment is in seconds since 1970, or text such as "7d" ago.
std::optional<std::int64_t> past_of(std::string_view text, WallTime now) {
  constexpr double kMostSeconds = 9e9;
  if (const auto seconds = monitor::parse_decimal(text)) {
    if (*seconds < 0 || *seconds > kMostSeconds) return std::nullopt;
    return static_cast<std::int64_t>(*seconds * 1e9);
  }
  const auto ago = parse_duration(text);
  if (!ago) return std::nullopt;
  return std::max<std::int64_t>(0, (now - *ago).time_since_epoch().count());
}

Outcome read_records(const ApiCall& call, WallTime now) {
  if (call.method != "GET") return wrong_method("GET");
  RecordsRequest records;
  records.user = "me";
  constexpr Duration kDay = 24h;
  records.since_wall_ns = (now - kDay).time_since_epoch().count();
  for (const auto& [name, value] : call.target.query) {
    bool is_sound = true;
    if (name == "user") {
      records.user = value;
    } else if (name == "since" || name == "until") {
      const auto moment = past_of(value, now);
      is_sound = moment.has_value();
      (name == "since" ? records.since_wall_ns : records.until_wall_ns) = moment.value_or(0);
    } else if (name == "format") {
      is_sound = value == "csv" || value == "json";
      records.as_csv = value == "csv";
    } else {
      return refuse(400, fmt::format("unknown parameter '{}'", escape_terminal(name, 80)), name);
    }
    if (!is_sound) {
      return refuse(400, fmt::format("{}: '{}' is not valid", name, escape_terminal(value, 80)),
                    name);
    }
  }
  return ApiRequest(std::move(records));
}

// ---- tokens -------------------------------------------------------------------------------------

Outcome read_new_token(const ApiCall& call) {
  const auto object = monitor::parse_object(call.body);
  if (!object) return refuse(400, object.error().context());
  wire::ManageTokens message;
  message.set_what(wire::ManageTokens::NEW);
  constexpr double kDays = 30;
  constexpr double kMostDays = 366;
  double days = kDays;
  for (const auto& [name, value] : *object) {
    const auto* text = std::get_if<std::string>(&value);
    const auto* number = std::get_if<double>(&value);
    if (name == "name" && text != nullptr) {
      message.set_name(*text);
    } else if (name == "days" && number != nullptr && *number > 0 && *number <= kMostDays) {
      days = *number;
    } else if (name == "scope" && text != nullptr && (*text == "read" || *text == "submit")) {
      message.set_only_reads(*text == "read");
    } else {
      return refuse(422, fmt::format("{}: is unknown or not valid", escape_terminal(name, 80)),
                    name);
    }
  }
  message.set_lifetime_ns(static_cast<std::int64_t>(days * 86'400e9));
  return ApiRequest(std::move(message));
}

Outcome read_tokens(const ApiCall& call, const std::vector<std::string_view>& parts) {
  wire::ManageTokens message;
  if (parts.size() == 1 && call.method == "GET") {
    message.set_what(wire::ManageTokens::LIST);
    return ApiRequest(std::move(message));
  }
  if (call.caller.is_token) {
    return refuse(403, "a token can neither make nor revoke tokens; use score token");
  }
  if (parts.size() == 1 && call.method == "POST") return read_new_token(call);
  if (parts.size() != 2) return wrong_method("GET, POST");
  if (call.method != "DELETE") return wrong_method("DELETE");
  const auto number = parse_number<std::uint64_t>(parts[1]);
  if (!number) return refuse(404, "a token has a number", "token");
  message.set_what(wire::ManageTokens::REVOKE);
  message.set_token(*number);
  return ApiRequest(std::move(message));
}

}  // namespace

std::variant<ApiRequest, ApiFault> read_request(const ApiCall& call, WallTime now) {
  const auto parts = parts_of(call);
  if (parts[0] == "jobs") return read_jobs(call, parts, now);
  if (parts[0] == "tokens" && parts.size() <= 2) return read_tokens(call, parts);
  if (parts[0] == "nodes" && parts.size() <= 2) {
    return read_view(call, ListedNodes{parts.size() == 2 ? std::string(parts[1]) : ""});
  }
  if (parts.size() != 1) return no_such_path();
  if (parts[0] == "cluster") return read_view(call, wire::GetInfo());
  if (parts[0] == "settings") return read_view(call, ListedSettings());
  if (parts[0] == "shares") return read_view(call, wire::ListShares());
  if (parts[0] == "reservations") return read_view(call, wire::ListReservations());
  if (parts[0] == "accounting") return read_records(call, now);
  if (parts[0] == "openapi.json") return read_view(call, Description());
  return no_such_path();
}

std::uint64_t changed_job(const ApiRequest& request) {
  return std::visit(
      []<class Request>(const Request& one) -> std::uint64_t {
        if constexpr (std::is_same_v<Request, wire::ChangeJob> ||
                      std::is_same_v<Request, wire::SignalJob> ||
                      std::is_same_v<Request, wire::CancelJob> ||
                      std::is_same_v<Request, wire::ControlJob>) {
          return one.job();
        } else {
          return 0;
        }
      },
      request);
}

std::string etag_of(const wire::JobStatus& job) {
  wire::JobStatus kept;
  kept.set_job(job.job());
  kept.set_state(job.state());
  kept.set_restarts(job.restarts());
  kept.set_name(job.name());
  kept.set_queue(job.queue());
  kept.set_priority(job.priority());
  kept.set_weight(job.weight());
  kept.set_scheduled_limit_ns(job.scheduled_limit_ns());
  kept.set_wall_limit_ns(job.wall_limit_ns());
  kept.set_limit_signal(job.limit_signal());
  kept.set_limit_signal_before_ns(job.limit_signal_before_ns());
  kept.set_nodes_wanted(job.nodes_wanted());
  kept.set_tasks(job.tasks());
  kept.set_cpus_per_task(job.cpus_per_task());
  kept.set_memory_per_node_bytes(job.memory_per_node_bytes());
  kept.set_account(job.account());
  kept.set_reservation(job.reservation());
  *kept.mutable_features() = job.features();
  *kept.mutable_generic() = job.generic();
  return fmt::format("\"{:016x}\"", fnv1a(kept.SerializeAsString()));
}

bool has_tag(std::string_view if_match, std::string_view etag) {
  return std::ranges::any_of(split(if_match, ','), [etag](std::string_view one) {
    const auto tag = trim(one);
    return tag == "*" || tag == etag;
  });
}

bool matches(const ListedJobs& listed, const wire::JobStatus& job, const monitor::WebUser& caller) {
  const bool is_user =
      listed.user == "all" ||
      (listed.user == "me" ? job.user() == caller.user.value() : job.user_name() == listed.user);
  const bool is_state = listed.state.empty() || proto::state_word(job.state()) == listed.state;
  return is_user && is_state && (listed.name.empty() || job.name() == listed.name);
}

}  // namespace score::head
