// Boost.JSON parses the text (header-only, compiled only here). This file converts its tree and
// describes faults in words.
#include "monitor/model/json_input.hpp"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#include <boost/json/src.hpp>
#pragma GCC diagnostic pop

#include <cmath>

namespace score::monitor {

namespace {

namespace json = boost::json;

Result<JsonValue> take_value(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return JsonValue(JsonNull{});
    case json::kind::bool_:
      return JsonValue(value.get_bool());
    case json::kind::int64:
      return JsonValue(static_cast<double>(value.get_int64()));
    case json::kind::uint64:
      return JsonValue(static_cast<double>(value.get_uint64()));
    case json::kind::double_:
      if (!std::isfinite(value.get_double())) return fail(Errc::Malformed, "a number too large");
      return JsonValue(value.get_double());
    case json::kind::string:
      return JsonValue(std::string(value.get_string()));
    case json::kind::array:
      break;
    case json::kind::object:
      return fail(Errc::Malformed, "an object inside the object");
  }
  std::vector<std::string> list;
  for (const auto& item : value.get_array()) {
    if (!item.is_string()) return fail(Errc::Malformed, "expected an array of strings");
    list.emplace_back(item.get_string());
  }
  return JsonValue(std::move(list));
}

}  // namespace

Result<JsonObject> parse_object(std::string_view text) {
  json::parse_options options;
  options.max_depth = 3;
  json::error_code failed;
  const auto value = json::parse(json::string_view(text.data(), text.size()), failed, {}, options);
  if (failed) return fail(Errc::Malformed, "no JSON: {}", failed.message());
  if (!value.is_object()) return fail(Errc::Malformed, "no JSON object");
  JsonObject made;
  if (value.get_object().size() > kMaxJsonMembers) return fail(Errc::Malformed, "too many members");
  for (const auto& member : value.get_object()) {
    auto taken = take_value(member.value());
    const std::string name(member.key());
    if (!taken) return taken.error();
    if (!made.emplace(name, *std::move(taken)).second) return fail(Errc::Malformed, "a name twice");
  }
  return made;
}

}  // namespace score::monitor
