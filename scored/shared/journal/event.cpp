#include "scored/shared/journal/event.hpp"

#include <algorithm>

namespace score {
namespace {

struct EventInfo {
  std::string_view id;  // random, and never changed, because people search for it
  LogLevel level;
  std::string_view verb;
};

constexpr std::array<EventInfo, 19> kEvents = {{
    // The array is indexed by Event.
    {"d136862c717640af93530aad39b42132", LogLevel::Notice, "audit"},
    {"4cadf51f3d2f4587bd10414e633ee8b1", LogLevel::Notice, "audit"},
    {"77f40fdfe0b944f19a94f8c73c6ede67", LogLevel::Warning, "refuse command"},
    {"c20e73204a49401998e4c36ef5992d5a", LogLevel::Notice, "start job"},
    {"07b20d861a7d43c2b2a0f99c80ab8f12", LogLevel::Notice, "end job"},
    {"acd52845365c41fc8c41d2b3b9597fb9", LogLevel::Notice, "change node"},
    {"6eb31b18a0da4116afc8c878962017ae", LogLevel::Warning, "change node"},
    {"e629c7df69754d83b18619d7d8dd48d3", LogLevel::Notice, "start head"},
    {"db58da3a52e34b28b1a72c6015f2103e", LogLevel::Notice, "stop head"},
    {"739ff1a49c99449fbb8e5ca003655401", LogLevel::Warning, "late switch"},
    {"23750421dfbd4c2b89e3d2163632ae9b", LogLevel::Notice, "start node"},
    {"eeab6b992450455382590453dc49d683", LogLevel::Notice, "stop node"},
    {"a665ad3c55184d4ca8c596e1458cd49a", LogLevel::Notice, "join"},
    {"7759ad162f2141cea76a843e93876bf1", LogLevel::Notice, "lost connection to head"},
    {"b1d2842767684614ab4015d5dcd2b57e", LogLevel::Notice, "deadlock"},
    {"0961e2b620a802d39d7f09d471d082ff", LogLevel::Notice, "take charge"},
    {"b33a7980473073ef4f50bacaf823ef6d", LogLevel::Warning, "stand down"},
    {"7a775b22b35ef34dc78d7ac2fe9810d5", LogLevel::Notice, "follower is current"},
    {"7a9bbfbab0e0c91528e5f5f7d4d9812b", LogLevel::Warning, "lost follower"},
}};
static_assert(kEvents.size() == static_cast<std::size_t>(Event::FollowerLost) + 1);

// Maps the key of a value to the field of an entry.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kFields = {{
    {"job", "JOB_ID"},
    {"node", "NODE"},
    {"slot", "SLOT"},
    {"rank", "RANK"},
    {"user", "USER_NAME"},
    {"action", "ACTION"},
    {"value", "VALUE"},
    {"via", "VIA"},
    {"state", "STATE"},
    {"reason", "REASON"},
    {"late_us", "LATE_US"},
    {"held_back", "HELD_BACK"},
}};

JournalSink& journal_sink() {
  static JournalSink sink;
  return sink;
}

std::string line_of(const EventInfo& info, std::span<const EventValue> values) {
  std::string line(info.verb);
  for (const EventValue& value : values) {
    ((line += ' ') += value.key) += '=';
    line += quote_value(value.text);
  }
  return line;
}

std::vector<JournalField> fields_of(const EventInfo& info, const std::string& line,
                                    std::span<const EventValue> values) {
  std::vector<JournalField> fields = {{"MESSAGE", line},
                                      {"PRIORITY", std::to_string(static_cast<int>(info.level))},
                                      {"SYSLOG_IDENTIFIER", "scored"},
                                      {"MESSAGE_ID", std::string(info.id)}};
  for (const EventValue& value : values) {
    const auto field = std::ranges::find(kFields, value.key, [](const auto& f) { return f.first; });
    if (field == kFields.end() || value.text.empty()) continue;
    fields.emplace_back(field->second, escape_terminal(value.text));
  }
  return fields;
}

}  // namespace

void report_values(Event event, std::span<const EventValue> values) {
  const EventInfo& info = kEvents.at(static_cast<std::size_t>(event));
  if (!log_enabled(info.level)) return;
  const std::string line = line_of(info, values);
  if (journal_sink() && journal_sink()(fields_of(info, line, values))) return;
  log_line(info.level, line);
}

void set_journal_sink(JournalSink sink) {
  journal_sink() = std::move(sink);
}

}  // namespace score
