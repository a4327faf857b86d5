#pragma once
// Reads a request of the API as the message that a command would send. It is pure.

#include "base/result.hpp"
#include "base/time.hpp"
#include "monitor/http/api.hpp"
#include "proto/client.pb.h"
#include "scored/head/api/submission_document.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace score::head {

// GET /api/v1/jobs: the jobs that match, from one with a higher number than `after` on.
struct ListedJobs {
  std::string user;   // a name, "me" or "all"
  std::string state;  // empty: any
  std::string name;   // empty: any
  bool with_ended = true;
  std::uint64_t after = 0;
  std::size_t limit = 100;
};

struct OneJob {
  std::uint64_t job = 0;
};

// The output of a job so far, or until it ends.
struct OutputRequest {
  std::uint64_t job = 0;
  std::optional<wire::Stream> stream;  // none: both
  std::uint64_t offset = 0;            // bytes of it that the caller has
  bool follows = false;
};

// Changes of a job while it lives, as server-sent events.
struct JobEventsRequest {
  std::uint64_t job = 0;
  std::int64_t after_event =
      0;  // only later lines of the history; the id of the last one that came
};

// ProfileRequest asks what a job used over time.
struct ProfileRequest {
  std::uint64_t job = 0;
  bool as_csv = false;
};

// Records of jobs that ended in this time, in the order of their ends.
struct RecordsRequest {
  std::string user;  // a name, "me" or "all"
  std::int64_t since_wall_ns = 0;
  std::int64_t until_wall_ns = INT64_MAX;
  bool as_csv = false;
};

struct ListedSettings {};

struct ListedNodes {
  std::string node;  // empty: all
};

struct Description {};  // the OpenAPI document

using ApiRequest =
    std::variant<ListedJobs, OneJob, OutputRequest, JobEventsRequest, ProfileRequest,
                 RecordsRequest, ListedSettings, ListedNodes, Description, wire::Submit, wire::Plan,
                 wire::ChangeJob, wire::SignalJob, wire::CancelJob, wire::ControlJob, wire::GetInfo,
                 wire::ListShares, wire::ListReservations, wire::ManageTokens>;

struct ApiFault {
  int status = 400;
  RequestFault fault;
  std::string allow{};  // of a 405: "GET, POST"
};

// Times are relative to `now`.
[[nodiscard]] std::variant<ApiRequest, ApiFault> read_request(const monitor::ApiCall& call,
                                                              WallTime now);

// Returns the job that the request changes; 0: none.
[[nodiscard]] std::uint64_t changed_job(const ApiRequest& request);

// Returns the tag of what can be changed of the job, and of its state.
[[nodiscard]] std::string etag_of(const wire::JobStatus& job);
// Returns true if the header If-Match, a list of tags or "*", has the tag.
[[nodiscard]] bool has_tag(std::string_view if_match, std::string_view etag);

// Returns true if the job is one that the caller has asked for.
[[nodiscard]] bool matches(const ListedJobs& listed, const wire::JobStatus& job,
                           const monitor::WebUser& caller);

}  // namespace score::head
