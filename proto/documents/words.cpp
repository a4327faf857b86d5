// This module is tested by words_test.cpp of scout, test_queries.py and test_api.py.
#include "proto/documents/words.hpp"

#include "base/text.hpp"
#include "proto/convert/convert.hpp"

#include <array>
#include <csignal>
#include <cstring>
#include <utility>

namespace score::proto {

namespace {

constexpr std::array<std::string_view, 4> kQueues = {"exclusive", "high", "normal", "urgent"};

template <std::size_t Count>
std::string_view word_of(const std::array<std::string_view, Count>& words, std::uint32_t index) {
  return index < Count ? words[index] : "unknown";
}

}  // namespace

std::string_view state_word(std::uint32_t job_state) {
  return word_of(base::kJobStateWords, job_state);
}

bool is_final_state(std::uint32_t job_state) {
  return job_state >= static_cast<std::uint32_t>(base::JobState::Completed);
}

std::string_view queue_word(std::uint32_t queue) {
  return word_of(kQueues, queue);
}

Result<base::Queue> parse_queue(std::string_view word) {
  for (std::size_t i = 0; i < kQueues.size(); ++i) {
    if (kQueues[i] == word) return static_cast<base::Queue>(i);
  }
  return fail(Errc::NotFound, "unknown queue '{}'; use exclusive, high, normal or urgent",
              escape_terminal(word, 80));
}

Result<int> parse_signal(std::string_view word) {
  if (const auto number = parse_number<int>(word); number && *number > 0 && *number < NSIG) {
    return *number;
  }
  std::string_view name = word;
  if (name.starts_with("SIG")) name.remove_prefix(3);
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* known = sigabbrev_np(signal);
    if (known != nullptr && name == known) return signal;
  }
  return fail(Errc::NotFound, "unknown signal '{}'; use a name such as TERM or its number",
              escape_terminal(word, 80));
}

Result<std::uint64_t> parse_job(std::string_view word) {
  auto number = parse_number<std::uint64_t>(word);
  if (!number || *number == 0) {
    return fail(Errc::Malformed, "'{}' is not a job id", escape_terminal(word, 80));
  }
  return *number;
}

namespace {

constexpr std::size_t kMostJobs = 1'000;
constexpr std::array<std::pair<std::string_view, wire::Dependency::Kind>, 4> kKinds = {{
    {"after", wire::Dependency::STARTED},
    {"afterany", wire::Dependency::ENDED},
    {"afterok", wire::Dependency::OK},
    {"afternotok", wire::Dependency::NOT_OK},
}};

Error bad_part(std::string_view part) {
  return fail(
      Errc::Malformed,
      "'{}' is not afterok:JOB, afterany:JOB, afternotok:JOB, after:JOB[+MINUTES] or singleton",
      escape_terminal(part, 80));
}

constexpr std::uint32_t kMostMinutes = 527'040;  // a year

Error bad_delay(std::string_view part) {
  return fail(
      Errc::Malformed,
      "'{}': a delay in minutes is for after:JOB+MINUTES alone, at most a year, and not with '?'",
      escape_terminal(part, 80));
}

Status parse_part(std::string_view part, wire::JobConditions& conditions) {
  if (part == "singleton") {
    conditions.set_singleton(true);
    return {};
  }
  const auto words = split(part, ':');
  for (const auto& [name, kind] : kKinds) {
    if (words[0] != name) continue;
    if (words.size() < 2) return bad_part(part);
    for (std::size_t i = 1; i < words.size(); ++i) {
      const auto plus = words[i].find('+');
      const auto job = parse_job(words[i].substr(0, plus));
      if (!job) return job.error();
      wire::Dependency& added = *conditions.add_after();
      added.set_kind(kind);
      added.set_job(*job);
      if (plus == words[i].npos) continue;
      const auto minutes = parse_number<std::uint32_t>(words[i].substr(plus + 1));
      if (!minutes || *minutes > kMostMinutes || kind != wire::Dependency::STARTED ||
          conditions.any())
        return bad_delay(part);
      added.set_delay_ns(Duration(std::chrono::minutes(*minutes)).count());
    }
    return {};
  }
  return bad_part(part);
}

}  // namespace

Status parse_after(std::string_view text, wire::JobConditions& conditions) {
  const bool any = text.find('?') != text.npos;
  if (any && text.find(',') != text.npos) {
    return fail(Errc::Malformed,
                "join the parts with ',' (all must hold) or with '?' (one is enough)");
  }
  if (any && text.find("singleton") != text.npos) {
    return fail(Errc::Malformed, "singleton cannot be joined with '?'");
  }
  conditions.set_any(any);
  for (const auto part : split(text, any ? '?' : ',')) {
    if (auto added = parse_part(part, conditions); !added) return added;
    if (static_cast<std::size_t>(conditions.after_size()) > kMostJobs) {
      return fail(Errc::TooLarge, "a job can wait for at most {} jobs", kMostJobs);
    }
  }
  return {};
}

double to_seconds(std::int64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

// The moment is rounded down, as the printed times are.
void write_moment(JsonWriter& json, std::string_view name, std::int64_t wall_ns) {
  constexpr std::int64_t kMillisecond = 1'000'000;
  json.key(name).fixed(to_seconds(wall_ns - wall_ns % kMillisecond), wall_ns == 0 ? 0 : 3);
}

std::optional<base::Usage> read_usage(const wire::Usage& message) {
  auto usage = proto::from_wire(message);
  return usage ? std::optional(*usage) : std::nullopt;
}

}  // namespace score::proto
