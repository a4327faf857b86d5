#include "scout/checkpoint/saved_job.hpp"

#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

namespace score::scout {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostText = 1U << 20U;
constexpr std::size_t kMostJob = 16U << 20U;

bool is_complete(const fs::path& set) {
  std::error_code ignored;
  return fs::exists(set / "complete", ignored);
}

Error nothing_in(const fs::path& directory) {
  return fail(Errc::NotFound, "{}: no complete set of images", directory.string());
}

}  // namespace

Result<std::string> find_set(const std::string& word, const std::string& images) {
  std::error_code error;
  const bool is_number = parse_number<std::uint64_t>(word).has_value();
  const fs::path named = is_number && !fs::exists(word, error)
                             ? fs::path(images) / fmt::format("job_{}", word)
                             : fs::path(word);
  const fs::path directory = fs::absolute(named, error).lexically_normal();
  if (is_complete(directory)) return directory.string();
  std::string newest;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    if (is_complete(at->path())) newest = std::max(newest, at->path().string());
  }
  if (newest.empty()) return nothing_in(directory);
  return newest;
}

Status place_as_saved(std::string_view complete, wire::ResourceRequest& resources) {
  std::vector<std::uint32_t> tasks;
  for (const auto line : split(complete, '\n')) {
    if (!line.starts_with("tasks ")) continue;
    for (const auto word : split(line.substr(line.find(' ') + 1), ' ')) {
      const auto number = parse_number<std::uint32_t>(word);
      if (!number) return fail(Errc::Malformed, "its mark of completeness is damaged");
      tasks.push_back(*number);
    }
  }
  if (tasks.empty()) return fail(Errc::Malformed, "its mark of completeness is damaged");
  resources.set_nodes(static_cast<std::uint32_t>(tasks.size()));
  resources.set_most_nodes(0);
  if (resources.allocation()) return {};
  const bool is_even = std::ranges::all_of(tasks, [&](auto one) { return one == tasks.front(); });
  if (!is_even) {
    return fail(Errc::Unsupported, "its nodes had different numbers of tasks: {}",
                fmt::join(tasks, ", "));
  }
  resources.set_tasks(tasks.front() * static_cast<std::uint32_t>(tasks.size()));
  resources.set_tasks_per_node(tasks.front());
  return {};
}

Result<wire::Submit> read_saved_job(const std::string& set) {
  const auto complete = read_file(set + "/complete", kMostText);
  if (!complete) return complete.error();
  const auto text = read_file(set + "/job", kMostJob);
  if (!text) return text.error();
  wire::Submit submission;
  if (!submission.ParseFromString(*text)) return fail(Errc::Malformed, "{}/job is damaged", set);
  auto& resources = *submission.mutable_resources();
  if (auto placed = place_as_saved(*complete, resources); !placed) {
    return placed.error().with_context("{}", set);
  }
  resources.set_held(false);
  auto& spec = *submission.mutable_spec();
  spec.set_restart(set);
  spec.set_append_output(true);
  submission.set_detached(!spec.script().empty() || !spec.stdout_path().empty());
  return submission;
}

}  // namespace score::scout
