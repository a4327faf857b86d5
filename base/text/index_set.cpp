#include "base/text/index_set.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace score::inline base {
namespace {

struct Term {
  std::uint32_t first = 0, last = 0, step = 1;
};

Result<Term> parse_term(std::string_view text) {
  const auto bad = [text] {
    return fail(Errc::Malformed, "'{}' is not a number or a range such as 0-99 or 0-99:2",
                escape_terminal(text, 80));
  };
  const auto number = [&](std::string_view word) -> Result<std::uint32_t> {
    const auto value = parse_number<std::uint32_t>(word);
    if (!value && !value.error().is(Errc::TooLarge)) return bad();
    if (value && *value <= IndexSet::kMaxIndex) return value;
    return fail(Errc::TooLarge, "{} is larger than {}", escape_terminal(word, 80),
                IndexSet::kMaxIndex);
  };
  const auto dash = text.find('-');
  const auto colon = text.find(':');
  const bool is_range = dash != text.npos;
  if (colon != text.npos && (!is_range || colon < dash)) return bad();
  const auto first = number(text.substr(0, dash));
  if (!first) return first.error();
  if (!is_range) return Term{*first, *first, 1};
  const auto last = number(text.substr(dash + 1, colon - std::min(colon, dash + 1)));
  if (!last) return last.error();
  const auto step = colon == text.npos ? Result<std::uint32_t>(1U) : number(text.substr(colon + 1));
  if (!step) return step.error();
  if (*last < *first || *step == 0) return bad();
  return Term{*first, *last, *step};
}

}  // namespace

Result<IndexSet> IndexSet::parse(std::string_view text, std::uint32_t max_size) {
  if (text.size() > kMaxTextBytes) {
    return fail(Errc::TooLarge, "a list of {} bytes; at most {}", text.size(), kMaxTextBytes);
  }
  std::vector<Term> terms;
  std::uint64_t count = 0;
  for (const std::string_view word : split(text, ',')) {
    const auto term = parse_term(word);
    if (!term) return term.error();
    count += (term->last - term->first) / term->step + 1;
    terms.push_back(*term);
  }
  if (count > max_size) {
    return fail(Errc::TooLarge, "{} numbers; at most {} are possible", count, max_size);
  }
  std::vector<std::uint32_t> numbers;
  numbers.reserve(count);
  for (const Term& term : terms) {
    for (std::uint64_t at = term.first; at <= term.last; at += term.step) {
      numbers.push_back(static_cast<std::uint32_t>(at));
    }
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return of(numbers);
}

// A run of two numbers is kept only if they are adjacent, because two numbers with a gap are no
// pattern.
IndexSet IndexSet::of(const std::vector<std::uint32_t>& sorted) {
  IndexSet set;
  set.size_ = static_cast<std::uint32_t>(sorted.size());
  for (std::size_t i = 0; i < sorted.size();) {
    Run run{sorted[i], 1, 1};
    const std::uint32_t step = i + 1 < sorted.size() ? sorted[i + 1] - sorted[i] : 1;
    std::size_t end = i + 1;
    while (end < sorted.size() && sorted[end] - sorted[end - 1] == step) ++end;
    if (step == 1 || end - i > 2) {
      run.count = static_cast<std::uint32_t>(end - i);
      run.step = run.count > 1 ? step : 1;
    }
    set.runs_.push_back(run);
    i += run.count;
  }
  return set;
}

std::vector<std::uint32_t> IndexSet::numbers() const {
  std::vector<std::uint32_t> all;
  all.reserve(size_);
  for (const Run& run : runs_) {
    for (std::uint32_t i = 0; i < run.count; ++i) all.push_back(run.first + i * run.step);
  }
  return all;
}

std::optional<std::uint32_t> IndexSet::next(std::uint32_t from) const {
  const auto run = std::partition_point(runs_.begin(), runs_.end(),
                                        [from](const Run& one) { return one.last() < from; });
  if (run == runs_.end()) return std::nullopt;
  if (from <= run->first) return run->first;
  return run->first + (from - run->first + run->step - 1) / run->step * run->step;
}

IndexSet IndexSet::rest(std::uint32_t from) const {
  IndexSet set;
  for (const Run& run : runs_) {
    if (run.last() < from) continue;
    Run kept = run;
    if (run.first < from) {
      const std::uint32_t skipped = (from - run.first + run.step - 1) / run.step;
      kept.first += skipped * run.step;
      kept.count -= skipped;
      if (kept.count == 1) kept.step = 1;
    }
    set.size_ += kept.count;
    set.runs_.push_back(kept);
  }
  return set;
}

IndexSet IndexSet::without(const IndexSet& other) const {
  const auto mine = numbers();
  const auto theirs = other.numbers();
  std::vector<std::uint32_t> left;
  std::set_difference(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                      std::back_inserter(left));
  return of(left);
}

std::string IndexSet::text() const {
  std::string out;
  for (const Run& run : runs_) {
    if (!out.empty()) out += ',';
    out += std::to_string(run.first);
    if (run.count > 1) out += fmt::format("-{}", run.last());
    if (run.step > 1) out += fmt::format(":{}", run.step);
  }
  return out;
}

}  // namespace score::inline base
