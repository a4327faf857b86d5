// Writes JSON text. The commands only ever write it, so there is no tree: calls append.
//
//   JsonWriter json;
//   json.begin_object().field("schema", "scored.jobs/1").key("jobs").begin_array();
//   for (...) json.begin_object().field("job", 7).end_object();
//   json.end_array().end_object();
//   puts(json.text().c_str());
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }

  JsonWriter& end_object() { return close('}'); }

  JsonWriter& begin_array() { return open('['); }

  JsonWriter& end_array() { return close(']'); }

  JsonWriter& key(std::string_view name);

  // Bytes that are not UTF-8 become U+FFFD; control characters are escaped.
  JsonWriter& value(std::string_view text);

  JsonWriter& value(const char* text) { return value(std::string_view(text)); }

  JsonWriter& value(bool flag);
  JsonWriter& value(double number);  // not finite: null
  template <std::integral Number>

  requires(!std::same_as<Number, bool>) JsonWriter& value(Number number) {
    return raw(std::to_string(number));
  }

  JsonWriter& null() { return raw("null"); }

  template <typename Value>
  JsonWriter& field(std::string_view name, const Value& what) {
    return key(name).value(what);
  }

  // Any range of things that value() takes.
  template <typename Range>
  JsonWriter& list(std::string_view name, const Range& range) {
    key(name).begin_array();
    for (const auto& item : range) value(item);
    return end_array();
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& raw(std::string_view text);
  void separate();

  std::string text_;
  std::vector<bool> has_items_;  // of each open bracket
  bool after_key_ = false;
};

}  // namespace score::scout
