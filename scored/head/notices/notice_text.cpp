#include "scored/head/notices/notice_text.hpp"

#include "base/model/model.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "base/text/json_writer.hpp"
#include "base/text/plain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace score::head {
namespace {

constexpr std::size_t kMaxName = 100;     // bytes of a job's name
constexpr std::size_t kMaxReason = 512;   // bytes
constexpr std::size_t kMaxNodes = 1'000;  // bytes of the list
constexpr int kMaxReasons = 8;
constexpr std::size_t kMaxEncoded = 60;  // characters of a header's word; RFC 2047 allows 75

std::string state_of(const wire::JobStatus& job) {
  const std::size_t state = job.state();
  return state < kJobStateWords.size() ? std::string(kJobStateWords.at(state)) : "unknown";
}

// Returns "12", or "12_3" for a task of an array.
std::string number_of(const wire::JobStatus& job) {
  const bool is_task = job.array_job() != 0 && job.array_job() != job.job();
  return is_task ? fmt::format("{}_{}", job.array_job(), job.array_task())
                 : std::to_string(job.job());
}

std::string nodes_of(const wire::JobStatus& job) {
  const std::vector<std::string> names(job.nodes().begin(), job.nodes().end());
  return escape_terminal(compress_hostlist(names), kMaxNodes);
}

WallTime wall(std::int64_t ns) {
  return WallTime(Duration(ns));
}

// Returns what happened to the job, as the end of a sentence.
std::string predicate(const NoticeHead& head, const wire::JobStatus& job) {
  switch (head.kind) {
    case NoticeKind::Begin:
      return "has started";
    case NoticeKind::Requeue:
      return "lost a node and waits to start again";
    case NoticeKind::TimeLimit:
      return "has reached its time limit and was ended";
    case NoticeKind::TimeLimit90:
      return "has used 90 % of its time limit";
    case NoticeKind::TimeLimit80:
      return "has used 80 % of its time limit";
    case NoticeKind::TimeLimit50:
      return "has used 50 % of its time limit";
    default:
      break;
  }
  if (job.exit_code() == 0) return fmt::format("has ended: {}", state_of(job));
  return fmt::format("has ended: {}, exit code {}", state_of(job), job.exit_code());
}

void add_line(std::string& text, std::string_view name, std::string_view value) {
  if (!value.empty()) text += fmt::format("  {:<11} {}\n", name, value);
}

std::string limits_of(const wire::JobStatus& job) {
  std::string text;
  if (job.scheduled_limit_ns() > 0) {
    text = fmt::format("{} of {} scheduled", format_hms(Duration(job.scheduled_ns())),
                       format_hms(Duration(job.scheduled_limit_ns())));
  }
  if (job.wall_limit_ns() > 0) {
    text += fmt::format("{}{} of {} elapsed", text.empty() ? "" : ", ",
                        format_hms(Duration(job.elapsed_ns())),
                        format_hms(Duration(job.wall_limit_ns())));
  }
  return text;
}

std::string body_of(const NoticeHead& head, const wire::JobStatus& job) {
  const std::string name = escape_terminal(job.name(), kMaxName);
  std::string text =
      fmt::format("Job {} ({}) of {} on cluster {} {}.\n\n", number_of(job), name,
                  escape_terminal(job.user_name(), kMaxName), head.cluster, predicate(head, job));
  add_line(text, "state", state_of(job));
  for (int i = 0; i < std::min(job.reasons_size(), kMaxReasons); ++i) {
    add_line(text, i == 0 ? "reason" : "", escape_terminal(job.reasons(i), kMaxReason));
  }
  if (job.signal() != 0) add_line(text, "signal", std::to_string(job.signal()));
  add_line(text, "nodes", nodes_of(job));
  add_line(text, "time used", limits_of(job));
  add_line(text, "submitted", format_wall(wall(job.submitted_wall_ns())));
  if (job.started_wall_ns() > 0)
    add_line(text, "started", format_wall(wall(job.started_wall_ns())));
  if (job.ended_wall_ns() > 0) {
    add_line(text, "ended", format_wall(wall(job.ended_wall_ns())));
    if (job.started_wall_ns() > 0) {
      add_line(text, "elapsed", format_hms(Duration(job.ended_wall_ns() - job.started_wall_ns())));
    }
  }
  if (job.restarts() > 0) add_line(text, "restarts", std::to_string(job.restarts()));
  text += fmt::format("\n`score job {}` shows more.\n", number_of(job));
  return text;
}

// Whole seconds are not enough for short jobs; a double holds microseconds of today's times.
void add_time(JsonWriter& json, std::string_view name, std::int64_t ns) {
  json.key(name);
  if (ns <= 0) {
    json.null();
  } else {
    json.fixed(static_cast<double>(ns) / 1e9, 3);
  }
}

void begin(JsonWriter& json, const NoticeHead& head) {
  json.begin_object().field("schema", "scored.notice/1").field("id", head.id);
  json.field("cluster", head.cluster).field("event", name_of(head.kind));
  add_time(json, "time_unix_s", head.at.time_since_epoch().count());
}

}  // namespace

std::string header_text(std::string_view text) {
  const auto is_visible = [](char letter) { return letter >= ' ' && letter < 0x7F; };
  if (std::ranges::all_of(text, is_visible) && text.find("=?") == text.npos) {
    return std::string(text);
  }
  const auto is_plain = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  std::string out, word;
  const std::string sound = valid_utf8(text);
  for (std::size_t i = 0; i < sound.size();) {
    std::string encoded;  // one character, whose bytes must be in one word
    do {
      const auto byte = static_cast<unsigned char>(sound[i]);
      encoded += byte == ' '      ? "_"
                 : is_plain(byte) ? std::string(1, sound[i])
                                  : fmt::format("={:02X}", byte);
      ++i;
    } while (i < sound.size() && (static_cast<unsigned char>(sound[i]) & 0xC0U) == 0x80U);
    if (word.size() + encoded.size() > kMaxEncoded) {
      out += fmt::format("=?utf-8?Q?{}?=\n ", word);
      word.clear();
    }
    word += encoded;
  }
  return out + fmt::format("=?utf-8?Q?{}?=", word);
}

std::string mail_of(const NoticeHead& head, const MailHead& mail, const wire::JobStatus& job) {
  const std::string subject =
      fmt::format("[{}] job {} ({}) {}", head.cluster, number_of(job),
                  escape_terminal(job.name(), kMaxName), predicate(head, job));
  std::string text;
  if (!mail.from.empty()) text += fmt::format("From: {}\n", mail.from);
  text += fmt::format("To: {}\nSubject: {}\n", mail.to, header_text(subject));
  text += fmt::format("Message-ID: <{}@{}.scored>\n", head.id, head.cluster);
  text +=
      "Auto-Submitted: auto-generated\n"
      "MIME-Version: 1.0\n"
      "Content-Type: text/plain; charset=utf-8\n"
      "Content-Transfer-Encoding: 8bit\n";
  text += fmt::format("X-Scored-Event: {}\nX-Scored-Job: {}\n\n", name_of(head.kind), job.job());
  return text + body_of(head, job);
}

std::string json_of(const NoticeHead& head, const wire::JobStatus& job,
                    const std::string& address) {
  JsonWriter json(JsonWriter::Layout::Line);
  begin(json, head);
  if (!address.empty()) json.field("mail_address", address);
  const bool is_final = base::is_final(static_cast<JobState>(job.state()));
  json.key("job").begin_object().field("id", job.job()).field("number", number_of(job));
  json.field("name", job.name()).field("user", job.user_name()).field("uid", job.user());
  json.field("account", job.account()).field("state", state_of(job));
  json.key("exit_code");
  is_final ? json.value(job.exit_code()) : json.null();
  json.field("signal", job.signal());
  json.key("reasons").begin_array();
  for (int i = 0; i < std::min(job.reasons_size(), kMaxReasons); ++i) {
    json.value(escape_terminal(job.reasons(i), kMaxReason));
  }
  json.end_array().field("nodes", nodes_of(job)).field("tasks", job.tasks());
  json.field("array_job", job.array_job()).field("array_task", job.array_task());
  json.field("restarts", job.restarts());
  json.key("scheduled_s").fixed(static_cast<double>(job.scheduled_ns()) / 1e9, 3);
  json.key("scheduled_limit_s").fixed(static_cast<double>(job.scheduled_limit_ns()) / 1e9, 3);
  json.key("wall_limit_s").fixed(static_cast<double>(job.wall_limit_ns()) / 1e9, 3);
  add_time(json, "submitted_unix_s", job.submitted_wall_ns());
  add_time(json, "started_unix_s", job.started_wall_ns());
  add_time(json, "ended_unix_s", job.ended_wall_ns());
  json.end_object().end_object();
  return json.take() + "\n";
}

std::string json_of(const NoticeHead& head, const NodeHappening& node) {
  JsonWriter json(JsonWriter::Layout::Line);
  begin(json, head);
  json.key("node").begin_object().field("name", node.node);
  json.field("reason", escape_terminal(node.reason, kMaxReason)).end_object().end_object();
  return json.take() + "\n";
}

}  // namespace score::head
