#pragma once
// These answers are sent in pieces while the head has more of them: the output of a job, its
// events, and records of ended jobs. Each owns its connection, because the pieces are sent after
// the request was answered.

#include "base/async/asio.hpp"
#include "monitor/http/api.hpp"
#include "scored/head/api/api_requests.hpp"
#include "scored/head/api/head_client.hpp"

namespace score::head {

// Each call returns the errors of the head, for example if the job belongs to another user.
asio::awaitable<Result<monitor::ApiAnswer>> send_output(HeadClient head, OutputRequest wanted);
asio::awaitable<Result<monitor::ApiAnswer>> send_events(HeadClient head, JobEventsRequest wanted);
asio::awaitable<Result<monitor::ApiAnswer>> send_records(HeadClient head, RecordsRequest wanted);

}  // namespace score::head
