// This is the only place where messages of the wire become values of base/model/model.hpp and back.
// Everything that a peer sent is checked here, against base/limits.hpp. The error is
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

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace score::proto {

// ---- jobs (convert_job.cpp)

wire::GenericResource to_wire(const base::GenericResource& resource);
base::GenericResource from_wire(const wire::GenericResource& message);  // not checked
// Checks names and counts, and that no resource is listed twice.
void check_generic(FieldCheck& check,
                   const google::protobuf::RepeatedPtrField<wire::GenericResource>& generic);

wire::ResourceRequest to_wire(const base::ResourceRequest& request);
base::Result<base::ResourceRequest> from_wire(const wire::ResourceRequest& message);

// The launch specification stays a message, because only the shepherd reads it. A specification
// that comes from a different user is checked (head, shepherd): argv, environment, paths, counts.
base::Result<void> check_launch_spec(const wire::LaunchSpec& spec);
// Parses the specification and checks it.
base::Result<wire::LaunchSpec> parse_launch_spec(std::string_view bytes);

wire::TaskExit to_wire(const base::TaskExit& exit);
base::Result<base::TaskExit> from_wire(const wire::TaskExit& message);
using WireExits = google::protobuf::RepeatedPtrField<wire::TaskExit>;
void to_wire(std::span<const base::TaskExit> exits, WireExits& out);
base::Result<std::vector<base::TaskExit>> from_wire(const WireExits& message);

base::Result<base::JobState> job_state_from_wire(std::uint32_t state);
base::Result<base::AttemptPhase> phase_from_wire(std::uint32_t phase);

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

// Sets the versions of a hello to those that this program speaks. A daemon with more fields to send
// (switching, pid) uses to_wire and sets the fields itself.
OutFrame encode(const base::HeadToNode& message);
OutFrame encode(const base::NodeToHead& message);
wire::NodeHello to_wire(const base::NodeHello& hello);

// Returns true if the type belongs to the variant. The daemons handle the other frames of the link
// (output, fences, heartbeats) themselves.
bool is_head_to_node(FrameType type);
bool is_node_to_head(FrameType type);
// Errors: UnknownType if the type does not belong to the variant.
base::Result<base::HeadToNode> decode_head_to_node(FrameType type, std::string_view payload);
base::Result<base::NodeToHead> decode_node_to_head(FrameType type, std::string_view payload);

base::Result<base::NodeHello> from_wire(const wire::NodeHello& message);
wire::SetTimetable to_wire(const base::Timetable& timetable);
// Checks the whole contract of base::Timetable: segments cover the cycle without gap or overlap.
base::Result<base::Timetable> from_wire(const wire::SetTimetable& message);

// ---- node daemon <-> shepherd (convert_shepherd.cpp)

wire::ShepherdPrepare to_wire(const base::PlacedTasks& placed, std::string spec);
// The message has no user, because the shepherd already runs as that user; the user of the value is
// 0.
base::Result<base::PlacedTasks> from_wire(const wire::ShepherdPrepare& message);

// FoundAttempt is the state of a shepherd that was found again.
struct FoundAttempt {
  base::PlacedTasks placed;
  base::AttemptReport report;
  std::vector<pid_t> pids;  // in rank order; empty: some task was not forked yet

  // Returns true if its tasks run or have run.
  [[nodiscard]] bool has_begun() const { return !pids.empty() || !report.exits.empty(); }

  friend bool operator==(const FoundAttempt&, const FoundAttempt&) = default;
};

wire::ShepherdReport to_wire(const FoundAttempt& found);
base::Result<FoundAttempt> from_wire(const wire::ShepherdReport& message);
// Returns the pids in rank order; each is > 1.
base::Result<std::vector<pid_t>> from_wire(const wire::ShepherdStarted& message);

}  // namespace score::proto
