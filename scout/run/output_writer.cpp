#include "scout/run/output_writer.hpp"

#include "base/text/hostlist.hpp"
#include "base/text/json_writer.hpp"

#include <climits>
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <sys/stat.h>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr std::size_t kLongestLine = 8192;                    // a longer line is shown in parts
constexpr std::size_t kMostGathered = std::size_t{1} << 20U;  // of one rank and stream

// A ready pipe or terminal takes PIPE_BUF bytes without blocking (pipe(7)); a file takes anything.
std::size_t safe_bytes(int fd) {
  struct stat info {};

  const bool is_file = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  return is_file ? std::size_t{1} << 20U : PIPE_BUF;
}

}  // namespace

void OutputWriter::take(std::uint32_t rank, bool is_error, std::string_view data,
                        std::size_t known) {
  const std::uint64_t original = data.size();
  received_ += original;
  waiting_ += original;
  data.remove_prefix(std::min(known, data.size()));
  std::string text;
  if (style_ == OutputStyle::Plain) text = data;
  if (style_ == OutputStyle::Labelled) text = labelled(rank, is_error, data);
  if (style_ == OutputStyle::Gathered || style_ == OutputStyle::Json) gather(rank, is_error, data);
  queues_[is_error ? 1 : 0].chunks.push_back({std::move(text), original});
}

std::string OutputWriter::labelled(std::uint32_t rank, bool is_error, std::string_view data) {
  std::string out;
  auto& line = partial_[{rank, is_error}];
  while (!data.empty()) {
    const auto end = data.find('\n');
    line += data.substr(0, end);
    data.remove_prefix(end == data.npos ? data.size() : end + 1);
    if (end == data.npos && line.size() < kLongestLine) break;
    out += fmt::format("{}: {}\n", rank, line);
    line.clear();
  }
  return out;
}

// A node that prints without end does not fill our memory: the rest is dropped and marked.
void OutputWriter::gather(std::uint32_t rank, bool is_error, std::string_view data) {
  auto& text = partial_[{rank, is_error}];
  if (text.size() >= kMostGathered) return;
  text += data.substr(0, kMostGathered - text.size());
  if (text.size() >= kMostGathered) text += "\n* (more was dropped)\n";
}

void OutputWriter::finish(const std::vector<std::string>& names, bool bold) {
  if (style_ == OutputStyle::Gathered) {
    finish_gathered(names, bold);
    return;
  }
  if (style_ == OutputStyle::Json) return finish_json(names);
  for (auto& [key, line] : partial_) {
    if (line.empty()) continue;
    queues_[key.second ? 1 : 0].chunks.push_back({fmt::format("{}: {}\n", key.first, line), 0});
    line.clear();
  }
}

// Groups stand in the order of their first rank.
std::vector<OutputWriter::Group> OutputWriter::groups(const std::vector<std::string>& names) const {
  std::vector<Group> groups;
  for (const bool is_error : {false, true}) {
    for (const auto& [key, text] : partial_) {
      if (key.second != is_error || text.empty()) continue;
      const auto same = [&](const Group& group) {
        return group.is_error == is_error && group.text == text;
      };
      auto group = std::find_if(groups.begin(), groups.end(), same);
      if (group == groups.end()) group = groups.insert(groups.end(), {is_error, text, {}});
      const bool known = key.first < names.size();
      group->nodes.push_back(known ? names[key.first] : std::to_string(key.first));
    }
  }
  return groups;
}

void OutputWriter::finish_gathered(const std::vector<std::string>& names, bool bold) {
  for (const auto& group : groups(names)) {
    const auto list = compress_hostlist(group.nodes);
    auto heading = bold ? fmt::format("\x1b[1m{}:\x1b[0m\n", list) : list + ":\n";
    const char* end = group.text.ends_with('\n') ? "" : "\n";
    queues_[group.is_error ? 1 : 0].chunks.push_back({heading + group.text + end, 0});
  }
}

void OutputWriter::finish_json(const std::vector<std::string>& names) {
  JsonWriter json;
  json.begin_object().field("schema", "scored.outputs/1").key("outputs").begin_array();
  for (const auto& group : groups(names)) {
    json.begin_object().list("nodes", group.nodes);
    json.field("stream", group.is_error ? "stderr" : "stdout").field("text", group.text);
    json.end_object();
  }
  queues_[0].chunks.push_back({json.end_array().end_object().text() + "\n", 0});
}

Result<std::uint64_t> OutputWriter::write_some(bool is_error) {
  auto& queue = queues_[is_error ? 1 : 0];
  const int fd = is_error ? STDERR_FILENO : STDOUT_FILENO;
  std::size_t room = safe_bytes(fd);
  std::uint64_t done = 0;
  while (!queue.chunks.empty() && room > 0) {
    auto& chunk = queue.chunks.front();
    const std::size_t left = std::min(chunk.text.size() - queue.written, room);
    const ssize_t wrote = left == 0 ? 0 : ::write(fd, chunk.text.data() + queue.written, left);
    if (wrote < 0 && (errno == EINTR || errno == EAGAIN)) break;
    if (wrote < 0) {
      const int error = errno;
      for (const auto& dropped : queue.chunks) done += dropped.original;
      dropped_ += done;
      waiting_ -= done;
      queue = {};
      return fail(errno_code(error), "write to standard {}", is_error ? "error" : "output");
    }
    queue.written += static_cast<std::size_t>(wrote);
    room -= static_cast<std::size_t>(wrote);
    if (queue.written < chunk.text.size()) continue;
    done += chunk.original;
    queue.written = 0;
    queue.chunks.pop_front();
  }
  waiting_ -= done;
  return done;
}

}  // namespace score::scout
