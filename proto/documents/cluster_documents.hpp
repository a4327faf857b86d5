// Writes the state of the cluster and its nodes as JSON; scout/JSON.md describes the fields.
#pragma once

#include "base/model/settings.hpp"
#include "base/text/json_writer.hpp"
#include "proto/client.pb.h"

#include <cstdint>
#include <string>

namespace score::proto {

// Writes all fields of the node as one object.
void write_node(JsonWriter& json, const wire::NodeStatus& node);
// Writes the fields of scored.info/1 into the open object.
void write_info(JsonWriter& json, const wire::Info& info);

// They add "partitions" and "licenses" to the open object.
void write_partitions(JsonWriter& json, const wire::Info& info);
void write_licenses(JsonWriter& json, const wire::Info& info);

// Returns how many units of the generic resource are in use on the node.
[[nodiscard]] std::uint32_t generic_used(const wire::NodeStatus& node, const std::string& kind);
// Returns the value in force, as text; "" if the head's release does not know the setting.
[[nodiscard]] std::string setting_text(const wire::Info& info, Setting setting);

}  // namespace score::proto
