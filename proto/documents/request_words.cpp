// This module is tested by words_test.cpp of scout and submission_document_test.cpp of the head.
#include "proto/documents/request_words.hpp"

#include "base/limits.hpp"
#include "base/model/resources.hpp"
#include "base/text.hpp"
#include "base/time.hpp"
#include "proto/documents/words.hpp"

namespace score::proto {

Status parse_limit_signal(std::string_view text, wire::ResourceRequest& resources) {
  constexpr Duration kBefore = std::chrono::seconds{60};
  std::string_view word = text;
  const bool is_for_script = word.starts_with("B:");
  if (is_for_script) word.remove_prefix(2);
  const auto at = word.find('@');
  const auto signal = parse_signal(word.substr(0, at));
  if (!signal) return signal.error();
  Duration before = kBefore;
  if (at != word.npos) {
    const auto time = parse_duration(word.substr(at + 1), BareNumber::Seconds);
    if (!time) return time.error();
    before = *time;
  }
  resources.set_limit_signal(*signal);
  resources.set_limit_signal_before_ns(before.count());
  resources.set_limit_signal_script(is_for_script);
  return {};
}

Status parse_license_list(std::string_view text, wire::ResourceRequest& resources) {
  const auto licenses = parse_licenses(text);
  if (!licenses) return licenses.error();
  for (const auto& one : *licenses) {
    auto& added = *resources.add_licenses();
    added.set_name(one.name);
    added.set_count(one.count);
  }
  return {};
}

Status parse_switches(std::string_view text, wire::ResourceRequest& resources) {
  constexpr Duration kWait = std::chrono::minutes{5};
  const auto at = text.find('@');
  const auto count = parse_number<std::uint32_t>(text.substr(0, at));
  if (!count || *count == 0 || *count > limits::kMaxNodes) {
    return fail(Errc::Malformed, "must be a number, such as 1 or 1@10m");
  }
  Duration wait = kWait;
  if (at != text.npos) {
    const auto time = parse_duration(text.substr(at + 1), BareNumber::Minutes);
    if (!time) return time.error();
    wait = *time;
  }
  resources.set_switches(*count);
  resources.set_switches_wait_ns(wait.count());
  return {};
}

}  // namespace score::proto
