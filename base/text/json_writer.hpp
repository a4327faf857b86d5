// JsonWriter writes JSON text. The project never modifies JSON, so there is no tree: calls append
// text.
//
//    JsonWriter json;
//    json.begin_object().field("schema", "scored.jobs/1").key("jobs").begin_array();
//    for (...) json.begin_object().field("job", 7).end_object();
//    json.end_array().end_object();
//    puts(json.text().c_str());
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace score::inline base {

class JsonWriter {
 public:
  enum class Layout : std::uint8_t {
    Page,  // the two outer levels on lines of their own
    Line,  // all in one line, without blanks
  };

  explicit JsonWriter(Layout layout = Layout::Page) : layout_(layout) {}

  // Reserves memory. Call it before much is written.
  void reserve(std::size_t bytes) { text_.reserve(bytes); }

  JsonWriter& begin_object() { return open('{'); }

  JsonWriter& end_object() { return close('}'); }

  JsonWriter& begin_array() { return open('['); }

  JsonWriter& end_array() { return close(']'); }

  JsonWriter& key(std::string_view name);

  // Writes a string. Bytes that are not UTF-8 become U+FFFD; control characters are escaped.
  JsonWriter& value(std::string_view text);

  JsonWriter& value(const char* text) { return value(std::string_view(text)); }

  JsonWriter& value(bool flag);
  JsonWriter& value(double number);  // not finite: null
  // Writes a number with this many decimals, for times, for which ten digits are too few.
  JsonWriter& fixed(double number, int decimals);
  template <std::integral Number>

  requires(!std::same_as<Number, bool>) JsonWriter& value(Number number) {
    separate();
    char digits[24];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
    return *this;
  }

  // Writes the value, or null if there is none.
  template <typename Value>
  JsonWriter& value(const std::optional<Value>& what) {
    return what ? value(*what) : null();
  }

  JsonWriter& null() { return raw("null"); }

  template <typename Value>
  JsonWriter& field(std::string_view name, const Value& what) {
    return key(name).value(what);
  }

  // Writes any range of items that value() accepts.
  template <typename Range>
  JsonWriter& list(std::string_view name, const Range& range) {
    key(name).begin_array();
    for (const auto& item : range) value(item);
    return end_array();
  }

  [[nodiscard]] const std::string& text() const { return text_; }

  // Moves the text out. The writer must not be used afterwards.
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& raw(std::string_view text);
  void separate();
  void quote(std::string_view text);

  Layout layout_;
  std::string text_;
  std::vector<bool> has_items_;  // one for each open bracket
  bool after_key_ = false;
};

}  // namespace score::inline base
