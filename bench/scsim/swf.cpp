// This file is tested by workload_test.cpp and tests/fuzz/scsim_swf.cpp.
#include "bench/scsim/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <zlib.h>

namespace score::scsim {

namespace {

constexpr std::size_t kFields = 18;
constexpr std::size_t kComplaints = 5;
constexpr std::size_t kMostBytes = std::size_t{1} << 31;
constexpr double kMostSeconds = 1e10;
constexpr double kMostNodes = 1 << 24;

std::string_view next_word(std::string_view& line) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  std::size_t first = 0;
  while (first < line.size() && is_space(line[first])) ++first;
  std::size_t last = first;
  while (last < line.size() && !is_space(line[last])) ++last;
  const std::string_view word = line.substr(first, last - first);
  line.remove_prefix(last);
  return word;
}

std::optional<double> number_of(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

// Reads a line such as "; MaxProcs: 128".
void read_header(std::string_view line, Workload& out) {
  for (const std::string_view key : {"MaxProcs:", "MaxNodes:"}) {
    const std::size_t at = line.find(key);
    if (at == std::string_view::npos) continue;
    std::string_view rest = line.substr(at + key.size());
    const auto nodes = number_of(next_word(rest));
    if (nodes && *nodes >= 1 && *nodes <= kMostNodes) {
      out.nodes = std::max(out.nodes, static_cast<std::uint32_t>(*nodes));
    }
  }
}

// Returns nullptr on success, otherwise the reason.
const char* read_fields(std::string_view line, std::array<double, kFields>& fields) {
  for (double& field : fields) {
    const std::string_view word = next_word(line);
    if (word.empty()) return "fewer than 18 fields";
    const auto value = number_of(word);
    if (!value) return "a field is not a number";
    field = *value;
  }
  if (!next_word(line).empty()) return "more than 18 fields";
  if (fields[1] < 0 || fields[1] > kMostSeconds || fields[3] > kMostSeconds) {
    return "a time is out of range";
  }
  if (fields[4] > kMostNodes || fields[7] > kMostNodes) return "too many processors";
  return nullptr;
}

void add_job(const std::array<double, kFields>& fields, Workload& out) {
  const double nodes = fields[4] >= 1 ? fields[4] : fields[7];
  if (fields[3] <= 0 || nodes < 1) {
    ++out.empty;
    return;
  }
  SimJob job;
  job.submit_s = fields[1];
  job.run_s = fields[3];
  job.nodes = static_cast<std::uint32_t>(nodes);
  job.user =
      fields[11] >= 1 && fields[11] < kMostNodes ? static_cast<std::uint32_t>(fields[11]) : 0;
  out.jobs.push_back(job);
}

}  // namespace

Workload parse_swf(std::string_view text, std::string name) {
  Workload out;
  out.name = std::move(name);
  std::array<double, kFields> fields{};
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    std::string_view rest = line;
    const std::string_view first = next_word(rest);
    if (first.empty()) continue;
    if (first.front() == ';') {
      read_header(line, out);
      continue;
    }
    if (const char* why = read_fields(line, fields)) {
      ++out.malformed;
      if (out.complaints.size() < kComplaints) {
        out.complaints.push_back(fmt::format("{}:{}: {}; line skipped", out.name, number, why));
      }
      continue;
    }
    add_job(fields, out);
  }
  std::stable_sort(out.jobs.begin(), out.jobs.end(),
                   [](const SimJob& a, const SimJob& b) { return a.submit_s < b.submit_s; });
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < out.jobs.size(); ++i) {
    out.jobs[i].number = i + 1;
    most = std::max(most, out.jobs[i].nodes);
  }
  out.nodes = std::max(out.nodes, most);
  return out;
}

base::Result<Workload> read_swf(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) return base::fail(base::Errc::NotFound, "cannot open {}", path);
  std::string text;
  std::array<char, 1 << 16> block{};
  int got = 0;
  while ((got = gzread(file.get(), block.data(), static_cast<unsigned>(block.size()))) > 0) {
    text.append(block.data(), static_cast<std::size_t>(got));
    if (text.size() > kMostBytes) return base::fail(base::Errc::TooLarge, "{} is too large", path);
  }
  if (got < 0) return base::fail(base::Errc::Malformed, "cannot read {}: broken gzip data", path);
  Workload out = parse_swf(text, path.substr(path.rfind('/') + 1));
  if (out.jobs.empty())
    return base::fail(base::Errc::Malformed, "{} has no job in the Standard Workload Format", path);
  return out;
}

}  // namespace score::scsim
