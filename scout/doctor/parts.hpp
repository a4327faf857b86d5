// Evaluates the optional parts of the nodes: which are installed, and how to get the missing ones.
#pragma once

#include "base/text/json_writer.hpp"
#include "scout/doctor/evidence.hpp"
#include "scout/doctor/finding.hpp"

#include <string>

namespace score::scout {

// Adds a warning for each part that a node lacks. evidence.probe must have a value.
void judge_parts(const ProbeReport& probe, Findings& found);

// Returns the last lines of `score info --optional`, or why there is no report.
std::string parts_page(const Evidence& evidence);
// Adds the field "parts" to the current object; without a report it is empty.
void write_parts(JsonWriter& json, const Evidence& evidence);

}  // namespace score::scout
