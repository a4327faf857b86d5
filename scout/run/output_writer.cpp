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

constexpr std::string_view kCut = "[...]";  // marks the cut in a line
constexpr std::size_t kBlock = 4096;  // BUFSIZ or st_blksize of a program that buffers by blocks
constexpr std::size_t kMostGathered = std::size_t{1} << 20U;  // per rank and stream

// A ready pipe or terminal takes PIPE_BUF bytes without blocking (pipe(7)); a file takes any
// number.
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
  if (style_ == OutputStyle::Gathered || style_ == OutputStyle::Json) {
    gather(rank, is_error, data);
  } else if (style_ == OutputStyle::Plain && rank == 0 && passes_rank_0_) {
    text = data;
  } else {
    text = whole_lines({rank, is_error}, data);
  }
  queues_[is_error ? 1 : 0].chunks.push_back({std::move(text), original});
  while (held_ > kMostHeld) write_longest();
}

std::string OutputWriter::whole_lines(Source source, std::string_view data) {
  std::string out;
  Line& line = lines_[source];
  line.taken += data.size();
  while (!data.empty()) {
    const auto end = data.find('\n');
    const std::size_t room = kLongestLine - line.text.size();
    const auto part = data.substr(0, std::min(end, room));
    line.text += part;
    held_ += part.size();
    data.remove_prefix(part.size());
    if (data.starts_with('\n')) {
      data.remove_prefix(1);
      end_line(source, line, "\n", out);
      line.is_rest = false;
    } else if (line.text.size() == kLongestLine && !data.empty()) {
      write_piece(source, line, out);
    }
  }
  return out;
}

// Moves the line's text to `out`.
void OutputWriter::end_line(Source source, Line& line, std::string_view end, std::string& out) {
  if (style_ == OutputStyle::Labelled) out += fmt::format("{}: ", source.first);
  if (line.is_rest) out += kCut;
  out += line.text;
  out += end;
  held_ -= line.text.size();
  line.text.clear();
}

void OutputWriter::write_piece(Source source, Line& line, std::string& out) {
  end_line(source, line, fmt::format("{}\n", kCut), out);
  line.is_rest = true;
}

// Ranks may never end their lines, so the longest one is written before memory fills.
void OutputWriter::write_longest() {
  const auto by_length = [](const auto& a, const auto& b) {
    return a.second.text.size() < b.second.text.size();
  };
  auto& [source, line] = *std::max_element(lines_.begin(), lines_.end(), by_length);
  std::string out;
  write_piece(source, line, out);
  queues_[source.second ? 1 : 0].chunks.push_back({std::move(out), 0});
}

bool OutputWriter::is_prompt(const Line& line) const {
  const bool is_cut_off = line.taken % kBlock == 0;
  return style_ == OutputStyle::Plain && !line.text.empty() && line.text.size() < kBlock &&
         !line.is_rest && !is_cut_off;
}

bool OutputWriter::has_prompts() const {
  return std::any_of(lines_.begin(), lines_.end(),
                     [this](const auto& entry) { return is_prompt(entry.second); });
}

void OutputWriter::show_prompts() {
  for (auto& [source, line] : lines_) {
    if (!is_prompt(line)) continue;
    std::string out;
    end_line(source, line, "", out);
    queues_[source.second ? 1 : 0].chunks.push_back({std::move(out), 0});
  }
}

// A node may print without end, so its output is cut at a limit and the cut is marked.
void OutputWriter::gather(std::uint32_t rank, bool is_error, std::string_view data) {
  auto& text = lines_[{rank, is_error}].text;
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
  for (auto& [source, line] : lines_) {
    if (line.text.empty()) continue;
    std::string out;
    end_line(source, line, style_ == OutputStyle::Labelled ? "\n" : "", out);
    queues_[source.second ? 1 : 0].chunks.push_back({std::move(out), 0});
  }
}

// The groups are in the order of their first rank.
std::vector<OutputWriter::Group> OutputWriter::groups(const std::vector<std::string>& names) const {
  std::vector<Group> groups;
  for (const bool is_error : {false, true}) {
    for (const auto& [key, line] : lines_) {
      const std::string& text = line.text;
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
      return fail(errno_code(error), "cannot write to standard {}", is_error ? "error" : "output");
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
