#include "scored/job/pmi/pmi_spawn.hpp"

#include "base/errc.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "proto/frames/key_values.hpp"

#include <map>

// The reader accepts the lines that MPICH's client writes (src/pmi): nprocs, execname, totspawns,
// spawnssofar, argcnt and arg1, arg2 ..., preput_num and preput_key_0, preput_val_0 ..., info_num
// and info_key_0, info_val_0 ... A count is valid only if that many lines exist.

namespace score::shepherd {

namespace {

namespace limits = base::limits;

using Lines = std::map<std::string_view, std::string_view>;

base::Result<std::uint32_t> number_of(const Lines& lines, std::string_view key,
                                      std::uint32_t otherwise) {
  const auto at = lines.find(key);
  if (at == lines.end()) return otherwise;
  const auto number = base::parse_number<std::uint32_t>(base::trim(at->second));
  // Each counted item has its own line.
  if (number && *number <= limits::kMaxTasksPerJob) return *number;
  return base::fail(base::Errc::Malformed, "{}={}", key, base::quote_value(at->second, 64));
}

base::Result<std::string_view> text_of(const Lines& lines, std::string_view key) {
  const auto at = lines.find(key);
  if (at != lines.end() && at->second.find('\0') == std::string_view::npos) return at->second;
  return base::fail(base::Errc::Malformed, "no {} in a spawn command", key);
}

base::Result<Lines> lines_of(std::string_view text) {
  Lines lines;
  for (const auto line : base::split(text, '\n')) {
    if (line.empty()) continue;
    const std::size_t equals = line.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
      return base::fail(base::Errc::Malformed, "line {} in a spawn command",
                        base::quote_value(line, 64));
    }
    lines.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return lines;
}

base::Status add_arguments(const Lines& lines, wire::Program& program) {
  const auto count = number_of(lines, "argcnt", 0);
  if (!count) return count.error();
  for (std::uint32_t i = 1; i <= *count; ++i) {
    const auto argument = text_of(lines, fmt::format("arg{}", i));
    if (!argument) return argument.error();
    program.add_argv(std::string(*argument));
  }
  return {};
}

base::Status add_key_values(const Lines& lines, std::string& batch) {
  const auto count = number_of(lines, "preput_num", 0);
  if (!count) return count.error();
  for (std::uint32_t i = 0; i < *count; ++i) {
    const auto key = text_of(lines, fmt::format("preput_key_{}", i));
    if (!key) return key.error();
    const auto value = text_of(lines, fmt::format("preput_val_{}", i));
    if (!value) return value.error();
    if (auto added = proto::append_key_value(batch, *key, *value); !added) return added.error();
  }
  return {};
}

// Applies MPI's reserved keys; other keys may be ignored (MPI 4.1, section 11.8.4).
base::Status add_infos(const Lines& lines, wire::Program& program, std::string& search) {
  const auto count = number_of(lines, "info_num", 0);
  if (!count) return count.error();
  for (std::uint32_t i = 0; i < *count; ++i) {
    const auto key = text_of(lines, fmt::format("info_key_{}", i));
    if (!key) return key.error();
    const auto value = text_of(lines, fmt::format("info_val_{}", i));
    if (!value) return value.error();
    if (*key == "wdir" || *key == "wd") program.set_directory(std::string(*value));
    if (*key == "path") search = *value;
  }
  return {};
}

}  // namespace

base::Result<bool> PmiSpawnReader::take(std::string_view line) {
  if (line == "endcmd") return end_program();
  bytes_ += line.size() + 1;
  if (bytes_ > limits::kMaxPmiBytesPerTask) {
    return base::fail(base::Errc::TooLarge, "spawn command is too long");
  }
  (lines_ += line) += '\n';
  return false;
}

base::Result<bool> PmiSpawnReader::end_program() {
  const auto lines = lines_of(lines_);
  if (!lines) return lines.error();
  const auto total = number_of(*lines, "totspawns", 1);
  if (!total) return total.error();
  const auto so_far = number_of(*lines, "spawnssofar", 1);
  if (!so_far) return so_far.error();
  if (expected_.value_or(*total) != *total || *so_far != whole_.programs.size() + 1 ||
      *so_far > *total) {
    return base::fail(base::Errc::Malformed, "program {} of {} in a spawn command", *so_far,
                      *total);
  }
  expected_ = *total;
  const auto tasks = number_of(*lines, "nprocs", 1);
  if (!tasks) return tasks.error();
  const auto name = text_of(*lines, "execname");
  if (!name) return name.error();
  if (*tasks == 0 || name->empty()) {
    return base::fail(base::Errc::Malformed, "a spawn command without processes or program");
  }
  wire::Program program;
  program.set_tasks(*tasks);
  program.add_argv(std::string(*name));
  if (auto added = add_arguments(*lines, program); !added) return added.error();
  std::string search;
  if (auto added = add_infos(*lines, program, search); !added) return added.error();
  // The command of each program repeats the pairs.
  const bool is_first = whole_.programs.empty();
  if (auto added = is_first ? add_key_values(*lines, whole_.key_values) : base::Status(); !added) {
    return added.error();
  }
  whole_.programs.push_back(std::move(program));
  whole_.search.push_back(std::move(search));
  lines_.clear();
  return *so_far == *total;
}

}  // namespace score::shepherd
