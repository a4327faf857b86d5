#include "scored/head/hooks/submit_answer.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/text/json_writer.hpp"
#include "monitor/model/json_input.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

namespace score::head {
namespace {

constexpr std::size_t kMaxWords = 64;
constexpr std::size_t kMaxWordBytes = 1'024;
constexpr std::size_t kMaxReasonBytes = 400;
constexpr std::size_t kMaxNameBytes = 256;

// [Queue]
constexpr std::array<std::string_view, 4> kQueues = {"exclusive", "high", "normal", "urgent"};

using monitor::JsonValue;

Result<std::string> text_of(const JsonValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return fail(Errc::Malformed, "must be a string");
  if (text->size() > kMaxNameBytes || text->find('\0') != std::string::npos)
    return fail(Errc::TooLarge, "must be a text of at most {} bytes", kMaxNameBytes);
  return *text;
}

Result<Queue> queue_of(const JsonValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  const auto found = text == nullptr ? kQueues.end() : std::ranges::find(kQueues, *text);
  if (found == kQueues.end())
    return fail(Errc::Malformed, "must be exclusive, high, normal or urgent");
  return static_cast<Queue>(found - kQueues.begin());
}

Result<std::uint32_t> weight_of(const JsonValue& value) {
  const auto* number = std::get_if<double>(&value);
  const bool is_sound = number != nullptr && std::floor(*number) == *number && *number >= 1 &&
                        *number <= limits::kMaxWeight;
  if (!is_sound) return fail(Errc::Malformed, "must be between 1 and {}", limits::kMaxWeight);
  return static_cast<std::uint32_t>(*number);
}

Result<Duration> time_of(const JsonValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return fail(Errc::Malformed, "must be a time such as \"1h30m\"");
  auto time = parse_duration(*text);
  if (time && *time < Duration(0)) return fail(Errc::Malformed, "is negative");
  return time;
}

Result<Bytes> bytes_of(const JsonValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return fail(Errc::Malformed, "must be a size such as \"4G\"");
  return parse_bytes(*text);
}

Result<std::vector<std::string>> list_of(const JsonValue& value) {
  const auto* list = std::get_if<std::vector<std::string>>(&value);
  if (list == nullptr || list->size() > limits::kMaxFeatures)
    return fail(Errc::Malformed, "must be a list of at most {} strings", limits::kMaxFeatures);
  return *list;
}

template <class Value>
Status keep(Result<Value> value, std::optional<Value>& into) {
  if (!value) return value.error();
  into = *std::move(value);
  return {};
}

Status take_member(std::string_view name, const JsonValue& value, SubmitAnswer& answer) {
  if (name == "name") return keep(text_of(value), answer.name);
  if (name == "account") return keep(text_of(value), answer.account);
  if (name == "reservation") return keep(text_of(value), answer.reservation);
  if (name == "queue") return keep(queue_of(value), answer.queue);
  if (name == "weight") return keep(weight_of(value), answer.weight);
  if (name == "time_limit") return keep(time_of(value), answer.time_limit);
  if (name == "wall_limit") return keep(time_of(value), answer.wall_limit);
  if (name == "memory") return keep(bytes_of(value), answer.memory);
  if (name == "features") return keep(list_of(value), answer.features);
  if (name == "accept") {
    const auto* accepts = std::get_if<bool>(&value);
    if (accepts != nullptr && *accepts) return {};
    return fail(Errc::Malformed, "must be true; refuse with {{\"refuse\": \"LINE\"}}");
  }
  return fail(Errc::Malformed, "is not a change that a submit hook may make");
}

Result<SubmitAnswer> refusal_of(const monitor::JsonObject& object, const JsonValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr || trim(*text).empty() || object.size() != 1)
    return fail(Errc::Malformed, "refuse must be a text, and the only member");
  SubmitAnswer answer;
  answer.refusal = escape_terminal(trim(*text), kMaxReasonBytes);
  return answer;
}

double seconds_of(std::int64_t nanoseconds) {
  return std::chrono::duration<double>(Duration(nanoseconds)).count();
}

void write_programs(const wire::LaunchSpec& spec, JsonWriter& json) {
  json.key("programs").begin_array();
  std::size_t words = 0;
  for (const wire::Program& program : spec.programs()) {
    if (words >= kMaxWords) break;
    json.begin_object().field("tasks", program.tasks()).key("argv").begin_array();
    for (const std::string& word : program.argv()) {
      if (words++ >= kMaxWords) break;
      json.value(std::string_view(word).substr(0, kMaxWordBytes));
    }
    json.end_array().end_object();
  }
  json.end_array();
}

void write_resources(const wire::ResourceRequest& request, JsonWriter& json) {
  json.field("nodes", request.nodes())
      .field("tasks", request.tasks())
      .field("tasks_per_node", request.tasks_per_node())
      .field("cpus_per_task", request.cpus_per_task())
      .field("memory_bytes", request.memory_per_node_bytes())
      .field("scratch_bytes", request.scratch_bytes())
      .field("queue", kQueues[std::min<std::size_t>(request.queue(), kQueues.size() - 1)])
      .field("weight", request.weight())
      .field("time_limit_s", seconds_of(request.scheduled_limit_ns()))
      .field("wall_limit_s", seconds_of(request.wall_limit_ns()))
      .field("held", request.held())
      .field("account", request.account())
      .field("reservation", request.reservation())
      .list("features", request.features());
  json.key("gres").begin_object();
  for (const wire::GenericResource& kind : request.generic()) json.field(kind.name(), kind.count());
  json.end_object();
}

}  // namespace

Result<SubmitAnswer> parse_submit_answer(std::string_view text) {
  if (trim(text).empty()) return SubmitAnswer();
  const auto object = monitor::parse_object(text);
  if (!object) return object.error();
  if (const auto refused = object->find("refuse"); refused != object->end())
    return refusal_of(*object, refused->second);
  SubmitAnswer answer;
  for (const auto& [name, value] : *object) {
    if (auto taken = take_member(name, value, answer); !taken)
      return fail(Errc::Malformed, "{} {}", escape_terminal(name, 40), taken.error().context());
  }
  return answer;
}

void apply(const SubmitAnswer& answer, wire::Submit& message) {
  wire::ResourceRequest& request = *message.mutable_resources();
  if (answer.name) message.mutable_spec()->set_job_name(*answer.name);
  if (answer.account) request.set_account(*answer.account);
  if (answer.reservation) request.set_reservation(*answer.reservation);
  if (answer.queue) request.set_queue(static_cast<std::uint32_t>(*answer.queue));
  if (answer.weight) request.set_weight(*answer.weight);
  if (answer.time_limit) request.set_scheduled_limit_ns(answer.time_limit->count());
  if (answer.wall_limit) request.set_wall_limit_ns(answer.wall_limit->count());
  if (answer.memory) request.set_memory_per_node_bytes(answer.memory->value());
  if (!answer.features) return;
  request.clear_features();
  for (const std::string& feature : *answer.features) request.add_features(feature);
}

std::string describe_submission(const wire::Submit& message, const SubmittingUser& submitter) {
  const wire::LaunchSpec& spec = message.spec();
  JsonWriter json(JsonWriter::Layout::Line);
  json.begin_object()
      .field("schema", "scored.submission/1")
      .field("user", submitter.name)
      .field("uid", submitter.user.value())
      .field("operator", submitter.is_operator)
      .field("name", spec.job_name())
      .field("directory", spec.directory())
      .field("script", !spec.script().empty())
      .field("detached", message.detached())
      .field("array", message.array());
  write_resources(message.resources(), json);
  write_programs(spec, json);
  json.end_object();
  return json.take();
}

}  // namespace score::head
