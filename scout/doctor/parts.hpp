// The optional parts of the nodes: which are there, and what to do about those that are not.
#pragma once

#include "base/text/json_writer.hpp"
#include "scout/doctor/evidence.hpp"
#include "scout/doctor/finding.hpp"

#include <string>

namespace score::scout {

// A warning for each part that a node lacks. evidence.probe is there.
void judge_parts(const ProbeReport& probe, Findings& found);

// The last lines of `score info --optional`; why there is no report, if there is none.
std::string parts_page(const Evidence& evidence);
// Adds the field "parts" to the object that was begun; without a report it is empty.
void write_parts(JsonWriter& json, const Evidence& evidence);

}  // namespace score::scout
