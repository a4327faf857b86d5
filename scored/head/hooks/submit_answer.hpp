#pragma once
// Writes the request that a submit hook reads, and reads its answer. These functions are pure.
//
// The hook reads one JSON object and prints nothing (the job is accepted) or one JSON object:
//   {"refuse": "LINE"}                        refuse the job for this reason
//   {"accept": true}                          accept it as it is
//   {"queue": "high", "time_limit": "1h"}     accept it with these changes
// What the hook has changed is then checked like what users request.

#include "base/ids.hpp"
#include "base/model/model.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "base/units.hpp"
#include "proto/client.pb.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

struct SubmitAnswer {
  std::string refusal;  // one line; empty: the job is accepted
  std::optional<std::string> name;
  std::optional<std::string> account;
  std::optional<std::string> reservation;
  std::optional<Queue> queue;
  std::optional<std::uint32_t> weight;
  std::optional<Duration> time_limit;  // of scheduled time; 0: none
  std::optional<Duration> wall_limit;  // 0: none
  std::optional<Bytes> memory;         // per node
  std::optional<std::vector<std::string>> features;

  friend bool operator==(const SubmitAnswer&, const SubmitAnswer&) = default;
};

// Errors: Malformed with the fault, for any text that is not such an answer.
[[nodiscard]] Result<SubmitAnswer> parse_submit_answer(std::string_view text);

// Carries out the changes.
void apply(const SubmitAnswer& answer, wire::Submit& message);

// Identifies who submits.
struct SubmittingUser {
  UserId user;
  std::string name;
  bool is_operator = false;
};

// Returns the JSON object for the hook, in one line. It contains no environment and no script, and
// at most the first 64 words of each program.
[[nodiscard]] std::string describe_submission(const wire::Submit& message,
                                              const SubmittingUser& submitter);

}  // namespace score::head
