// This is the only place where messages of the wire become values of base/model/model.hpp and back:
//
//    wire::M to_wire(const T& value);               void to_wire(const T& value, wire::M& empty);
//    base::Result<T> from_wire(const wire::M& message);
//
// generate_table makes these functions from the options (value) and (rule) of the .proto files.
// Everything that a peer sent is checked, against base/limits.hpp. The error is
// WireErrc::BadMessage, and its text names the field. Nothing here asserts on input.
#pragma once

#include "base/model/model.hpp"
#include "base/result.hpp"
#include "proto/client.pb.h"
#include "proto/common.pb.h"
#include "proto/frames/field_check.hpp"
#include "proto/frames/frames.hpp"
#include "proto/frames/parse.hpp"
#include "proto/node.pb.h"
#include "proto/shepherd.pb.h"

#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace score::proto {

// FoundAttempt is the state of a shepherd that was found again.
struct FoundAttempt {
  base::PlacedTasks placed;
  base::AttemptPhase phase = base::AttemptPhase::Preparing;
  std::vector<base::TaskExit> exits;
  std::vector<pid_t> pids;  // in rank order; empty: some task was not forked yet
  base::Usage usage;        // of the processes that have ended

  // Returns true if its tasks run or have run.
  [[nodiscard]] bool has_begun() const { return !pids.empty() || !exits.empty(); }

  [[nodiscard]] base::AttemptReport report() const {
    return {
        .attempt = placed.attempt, .phase = phase, .exits = exits, .reason = {}, .usage = usage};
  }

  friend bool operator==(const FoundAttempt&, const FoundAttempt&) = default;
};

struct StartedTasks {
  std::vector<pid_t> pids;  // in rank order
};

}  // namespace score::proto

#include "proto/model_values.inc"  // IWYU pragma: export

namespace score::proto {

// ---- jobs (convert_job.cpp)

// The launch specification stays a message, because only the shepherd reads it. A specification
// that comes from a different user is checked (head, shepherd): argv, environment, paths, counts.
base::Result<void> check_launch_spec(const wire::LaunchSpec& spec);

// The id is 16 bytes, high half first. An id of all zeros is an error.
std::string to_wire(const base::RequestId& id);
base::Result<base::RequestId> request_id_from_wire(std::string_view bytes);

// Converts errors between programs. Codes of base::Errc keep their number, codes of the wire count
// from 100 and errno values from 1000; any other code is 0. Texts are cut at
// limits::kMaxErrorTextBytes.
wire::Error to_wire(const base::Error& error, int exit_code = 0);
// The context is the sender's line, escaped for printing. An unknown code becomes WrongState.
base::Error from_wire(const wire::Error& message);

// ---- head <-> node (convert_node.cpp)

struct OutFrame {
  FrameType type{};
  std::string payload;
};

// Returns the message with the versions that this program speaks, as encode() does.
wire::NodeHello make_hello(const base::NodeHello& hello);
OutFrame encode(const base::HeadToNode& message);
OutFrame encode(const base::NodeToHead& message);

// Returns true if the type belongs to the variant. The daemons handle the other frames of the link
// (output, fences, heartbeats) themselves.
bool is_head_to_node(FrameType type);
// Errors: UnknownType if the type does not belong to the variant.
base::Result<base::HeadToNode> decode_head_to_node(FrameType type, std::string_view payload);
base::Result<base::NodeToHead> decode_node_to_head(FrameType type, std::string_view payload);

}  // namespace score::proto
