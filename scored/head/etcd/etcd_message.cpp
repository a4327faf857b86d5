// Boost.JSON parses the answers; its own code is compiled in monitor/model/json_input.cpp. The
// gateway writes 64-bit numbers as strings, bytes as base64, and leaves out what is zero or empty.
#include "scored/head/etcd/etcd_message.hpp"

#include "base/text.hpp"
#include "base/text/json_writer.hpp"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#pragma GCC diagnostic pop

#include <algorithm>
#include <utility>

namespace score::head::etcd {
namespace {

namespace json = boost::json;

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::size_t kMaxDepth = 8;
constexpr std::size_t kMaxReasonBytes = 200;

std::string_view view_of(const json::string& text) {
  return {text.data(), text.size()};
}

const json::value* member(const json::value* object, std::string_view name) {
  if (object == nullptr || !object->is_object()) return nullptr;
  return object->get_object().if_contains(json::string_view(name.data(), name.size()));
}

// A number that is zero is left out.
Result<std::uint64_t> number_of(const json::value* value) {
  if (value == nullptr) return std::uint64_t{0};
  if (value->is_uint64()) return value->get_uint64();
  if (value->is_int64() && value->get_int64() >= 0) {
    return static_cast<std::uint64_t>(value->get_int64());
  }
  if (!value->is_string()) return fail(Errc::Malformed, "expected a number");
  return parse_number<std::uint64_t>(view_of(value->get_string()));
}

Result<std::string> bytes_of(const json::value* value) {
  if (value == nullptr) return std::string();
  if (!value->is_string()) return fail(Errc::Malformed, "expected a string");
  return decode_base64(view_of(value->get_string()));
}

Result<json::value> parse_text(std::string_view body) {
  if (body.size() > kMaxAnswerBytes) return fail(Errc::Malformed, "a long answer");
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::error_code failed;
  auto value = json::parse(json::string_view(body.data(), body.size()), failed, {}, options);
  if (failed) return fail(Errc::Malformed, "no JSON: {}", failed.message());
  if (!value.is_object()) return fail(Errc::Malformed, "no JSON object");
  return value;
}

// Reads the only key of the answer to a read.
Result<KeyState> key_of(const json::value* range, std::string_view key) {
  const json::value* const list = member(range, "kvs");
  if (list == nullptr) return KeyState();
  if (!list->is_array() || list->get_array().size() > 1) {
    return fail(Errc::Malformed, "expected one key");
  }
  if (list->get_array().empty()) return KeyState();
  const json::value& entry = list->get_array().front();
  const auto name = bytes_of(member(&entry, "key"));
  if (!name) return name.error();
  if (*name != key) return fail(Errc::Malformed, "a different key");
  const auto revision = number_of(member(&entry, "mod_revision"));
  if (!revision) return revision.error();
  if (*revision == 0) return fail(Errc::Malformed, "a key without a revision");
  auto value = bytes_of(member(&entry, "value"));
  if (!value) return value.error();
  return KeyState{*revision, *std::move(value)};
}

Result<std::uint64_t> cluster_of(const json::value& answer) {
  const auto id = number_of(member(member(&answer, "header"), "cluster_id"));
  if (id && *id == 0) return fail(Errc::Malformed, "no id of the cluster");
  return id;
}

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    for (std::size_t i = at; i < at + 3; ++i) {
      group = group << 8U | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U);
    }
    const std::size_t digits = std::min<std::size_t>(bytes.size() - at, 3) + 1;
    for (std::size_t i = 0; i < 4; ++i) {
      text += i < digits ? kDigits[group >> (18U - 6U * i) & 63U] : '=';
    }
  }
  return text;
}

Result<std::string> decode_base64(std::string_view text) {
  std::string bytes;
  if (text.size() % 4 != 0) return fail(Errc::Malformed, "not base64");
  for (std::size_t at = 0; at < text.size(); at += 4) {
    std::string_view digits = text.substr(at, 4);
    if (at + 4 == text.size()) digits = digits.substr(0, digits.find('='));
    if (digits.size() < 2) return fail(Errc::Malformed, "not base64");
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto digit = i < digits.size() ? kDigits.find(digits[i]) : 0;
      if (digit == kDigits.npos) return fail(Errc::Malformed, "not base64");
      group = group << 6U | static_cast<std::uint32_t>(digit);
    }
    for (std::size_t i = 0; i + 1 < digits.size(); ++i) {
      bytes += static_cast<char>(group >> (16U - 8U * i) & 255U);
    }
  }
  if (encode_base64(bytes) != text) return fail(Errc::Malformed, "not base64");
  return bytes;
}

std::string format_read(std::string_view key) {
  JsonWriter json(JsonWriter::Layout::Line);
  json.begin_object().field("key", encode_base64(key)).end_object();
  return json.take();
}

std::string format_replace(std::string_view key, std::uint64_t revision, std::string_view value) {
  const std::string name = encode_base64(key);
  JsonWriter json(JsonWriter::Layout::Line);
  json.begin_object().key("compare").begin_array().begin_object();
  json.field("key", name).field("target", "MOD").field("result", "EQUAL");
  json.field("mod_revision", std::to_string(revision)).end_object().end_array();
  json.key("success").begin_array().begin_object().key("request_put").begin_object();
  json.field("key", name).field("value", encode_base64(value));
  json.end_object().end_object().end_array();
  json.key("failure").begin_array().begin_object().key("request_range").begin_object();
  json.field("key", name).end_object().end_object().end_array();
  json.end_object();
  return json.take();
}

Result<Answer> parse_read(std::string_view body, std::string_view key) {
  const auto parsed = parse_text(body);
  if (!parsed) return parsed.error();
  Answer answer;
  const auto cluster = cluster_of(*parsed);
  if (!cluster) return cluster.error();
  answer.cluster = *cluster;
  auto found = key_of(&*parsed, key);
  if (!found) return found.error();
  answer.found = *std::move(found);
  return answer;
}

Result<Answer> parse_replaced(std::string_view body, std::string_view key) {
  const auto parsed = parse_text(body);
  if (!parsed) return parsed.error();
  Answer answer;
  const auto cluster = cluster_of(*parsed);
  if (!cluster) return cluster.error();
  answer.cluster = *cluster;
  const json::value* const succeeded = member(&*parsed, "succeeded");
  const json::value* const responses = member(&*parsed, "responses");
  if (succeeded != nullptr && !succeeded->is_bool()) {
    return fail(Errc::Malformed, "expected true or false");
  }
  if (responses == nullptr || !responses->is_array() || responses->get_array().size() != 1) {
    return fail(Errc::Malformed, "expected one response");
  }
  const json::value& response = responses->get_array().front();
  if (succeeded == nullptr || !succeeded->get_bool()) {
    const json::value* const range = member(&response, "response_range");
    if (range == nullptr) return fail(Errc::Malformed, "expected the key");
    auto found = key_of(range, key);
    if (!found) return found.error();
    answer.found = *std::move(found);
    return answer;
  }
  // The transaction's header has the revision of its changes.
  if (member(&response, "response_put") == nullptr) return fail(Errc::Malformed, "expected a put");
  const auto revision = number_of(member(member(&*parsed, "header"), "revision"));
  if (!revision) return revision.error();
  if (*revision == 0) return fail(Errc::Malformed, "a change without a revision");
  answer.stored_at = *revision;
  return answer;
}

std::string describe_refusal(unsigned status, std::string_view body) {
  std::string why;
  if (const auto parsed = parse_text(body)) {
    const json::value* text = member(&*parsed, "error");
    if (text != nullptr && text->is_string()) why = view_of(text->get_string());
  }
  if (why.empty()) return fmt::format("HTTP status {}", status);
  return escape_terminal(why, kMaxReasonBytes);
}

}  // namespace score::head::etcd
