#pragma once
// Provides the words for the enums of messages in texts and JSON output, with one table per enum. A
// value that this release does not know has the word of the enum's 0.

#include "proto/client.pb.h"

#include <string>
#include <string_view>

namespace score::proto {

[[nodiscard]] std::string_view word_of(wire::Switching::Method method);  // "cgroup.freeze"; "": 0
[[nodiscard]] std::string_view word_of(wire::Switching::Priority priority);  // "real-time"; "": 0
[[nodiscard]] std::string_view word_of(wire::NodeStatus::State state);       // "up"
[[nodiscard]] std::string_view word_of(wire::JobStatus::Activity activity);  // "busy"
[[nodiscard]] std::string_view word_of(wire::FileFact::Role role);           // "key"

// Returns "pm", "tls", or "tls: no answer". The reason is the node's own text, not escaped.
[[nodiscard]] std::string control_words(const wire::NodeStatus& node);

// Returns "in charge", "current", or "not connected, 7 transactions behind". The reason of a head
// that stands by is that head's own text, not escaped.
[[nodiscard]] std::string state_words(const wire::HeadState& head);

}  // namespace score::proto
