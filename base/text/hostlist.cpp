#include "base/text/hostlist.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>

// A list is parsed into patterns. A pattern alternates between literal text and sets of numbers.
// Its number of names is the product of its sets' sizes. This product is known before any name is
// made, so that rejecting n[0-999999999] costs no more than reading it.

namespace score::inline base {

namespace {

constexpr std::size_t kMaxDigits = 9;  // a number fits 32 bits
constexpr std::size_t kMaxRangesInSet = 16'384;

struct Range {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::size_t width = 1;
};

struct Pattern {
  std::vector<std::string> literals;  // one more than sets
  std::vector<std::vector<Range>> sets;
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
         c == '.';
}

Error not_a_name(std::string_view text) {
  if (text.empty()) return fail(Errc::Malformed, "a host name is missing between two commas");
  return fail(Errc::Malformed, "'{}' is not a host name", escape_terminal(text, 40));
}

Error too_long() {
  return fail(Errc::TooLarge, "a host name of more than {} bytes", limits::kMaxNodeNameBytes);
}

Result<Range> parse_range(std::string_view text) {
  const auto dash = text.find('-');
  const auto first_text = text.substr(0, dash);
  const auto last_text = dash == text.npos ? first_text : text.substr(dash + 1);
  const Error malformed =
      fail(Errc::Malformed, "'{}' in brackets is not a number or a range such as 00-07",
           escape_terminal(text, 40));
  if (first_text.size() > kMaxDigits || last_text.size() > kMaxDigits) return malformed;
  const auto first = parse_number<std::uint32_t>(first_text);
  const auto last = parse_number<std::uint32_t>(last_text);
  if (!first || !last) return malformed;
  if (*first > *last) {
    return fail(Errc::Malformed, "the range {} goes down; write {}-{}", text, last_text,
                first_text);
  }
  return Range{.first = *first, .last = *last, .width = first_text.size()};
}

Result<std::vector<Range>> parse_set(std::string_view text) {
  std::vector<Range> set;
  for (const auto part : split(text, ',')) {
    if (set.size() == kMaxRangesInSet)
      return fail(Errc::TooLarge, "more than {} ranges in one bracket", kMaxRangesInSet);
    const auto range = parse_range(part);
    if (!range) return range.error();
    set.push_back(*range);
  }
  return set;
}

// `text` has balanced, unnested brackets, because split_items checked it.
Result<Pattern> parse_pattern(std::string_view text) {
  Pattern pattern;
  std::size_t length = 0;
  while (true) {
    const auto open = text.find('[');
    const auto literal = text.substr(0, open);
    if (!std::ranges::all_of(literal, is_name_character)) {
      return not_a_name(literal);
    }
    // Every set adds at least one digit. The length is checked here, because a long literal times
    // many numbers takes much memory.
    length += literal.size() + (open == text.npos ? 0 : 1);
    if (length > limits::kMaxNodeNameBytes) return too_long();
    pattern.literals.emplace_back(literal);
    if (open == text.npos) return pattern;
    const auto close = text.find(']', open);
    auto set = parse_set(text.substr(open + 1, close - open - 1));
    if (!set) return set.error();
    pattern.sets.push_back(*std::move(set));
    text.remove_prefix(close + 1);
  }
}

// Splits the text at the commas outside brackets.
Result<std::vector<std::string_view>> split_items(std::string_view text) {
  std::vector<std::string_view> items;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == ']') {
      if (inside == (text[i] == '['))
        return fail(Errc::Malformed, "'{}' without its other bracket", text[i]);
      inside = !inside;
    } else if (text[i] == ',' && !inside) {
      items.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  if (inside) return fail(Errc::Malformed, "a '[' is not closed");
  items.push_back(text.substr(begin));
  return items;
}

// Returns the number of names, or any number above `limit` if it exceeds `limit`.
std::size_t count_names(const Pattern& pattern, std::size_t limit) {
  std::size_t product = 1;
  for (const auto& set : pattern.sets) {
    std::size_t sum = 0;
    for (const Range& range : set) sum += std::size_t{range.last - range.first} + 1;
    if (__builtin_mul_overflow(product, sum, &product) || product > limit) return limit + 1;
  }
  return product;
}

// Returns the product of all sets; the last one varies fastest.
std::vector<std::string> names_of(const Pattern& pattern) {
  std::vector<std::string> names = {pattern.literals[0]};
  for (std::size_t i = 0; i < pattern.sets.size(); ++i) {
    std::vector<std::string> longer;
    for (const auto& name : names) {
      for (const Range& range : pattern.sets[i]) {
        for (std::uint32_t n = range.first; n <= range.last; ++n) {
          longer.push_back(
              fmt::format("{}{:0{}}{}", name, n, range.width, pattern.literals[i + 1]));
        }
      }
    }
    names = std::move(longer);
  }
  return names;
}

Status append_item(std::vector<std::string>& names, std::string_view item, std::size_t max_hosts) {
  const auto pattern = parse_pattern(item);
  if (!pattern) return pattern.error();
  const std::size_t room = max_hosts - names.size();
  if (count_names(*pattern, room) > room)
    return fail(Errc::TooLarge, "more than {} hosts", max_hosts);
  for (auto& name : names_of(*pattern)) {
    if (name.size() > limits::kMaxNodeNameBytes) return too_long();
    if (!is_host_name(name)) return not_a_name(name);
    names.push_back(std::move(name));
  }
  return {};
}

// Numbered is a name split at the number that counts hosts: the last number before the domain,
// otherwise the last one. Names without a number, or with one that is too long, have width 0.
struct Numbered {
  std::string_view prefix;
  std::string_view suffix;
  std::uint32_t number = 0;
  std::size_t width = 0;
};

Numbered numbered(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789";
  auto last = name.substr(0, name.find('.')).find_last_of(kDigits);
  if (last == name.npos) last = name.find_last_of(kDigits);
  if (last == name.npos) return {.prefix = name, .suffix = {}};
  auto first = last;
  while (first > 0 && is_digit(name[first - 1])) --first;
  const auto digits = name.substr(first, last - first + 1);
  if (digits.size() > kMaxDigits) return {.prefix = name, .suffix = {}};
  return {.prefix = name.substr(0, first),
          .suffix = name.substr(last + 1),
          .number = parse_number<std::uint32_t>(digits).value(),
          .width = digits.size()};
}

// A Number is a number as it is written. Numbers are ordered by value, so that runs are adjacent.
struct Number {
  std::uint32_t value = 0;
  std::size_t width = 0;
  friend auto operator<=>(const Number&, const Number&) = default;
};

// Returns true if `next` is printed as the successor of `last` in a range that began with `width`
// digits.
bool continues(const Number& last, std::size_t width, const Number& next) {
  if (next.value != last.value + 1) return false;
  return next.width == std::max(width, fmt::formatted_size("{}", next.value));
}

std::string ranges_text(const std::vector<Number>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && continues(numbers[end - 1], numbers[i].width, numbers[end]))
      ++end;
    if (!text.empty()) text += ',';
    text += fmt::format("{:0{}}", numbers[i].value, numbers[i].width);
    if (end - i > 1) text += fmt::format("-{:0{}}", numbers[end - 1].value, numbers[end - 1].width);
    i = end;
  }
  return text;
}

// A NameGroup collects names that differ only in the number that counts them.
struct NameGroup {
  Numbered shape;
  std::vector<Number> numbers;  // empty: a name without a number

  [[nodiscard]] auto key() const { return std::tuple(shape.prefix, shape.suffix, shape.width > 0); }
};

NameGroup group_of(std::string_view name) {
  NameGroup group{.shape = numbered(name), .numbers = {}};
  if (group.shape.width > 0) group.numbers.push_back({group.shape.number, group.shape.width});
  return group;
}

void append_group(std::string& text, const NameGroup& group) {
  if (!text.empty()) text += ',';
  text += group.shape.prefix;
  const auto ranges = ranges_text(group.numbers);
  text += group.numbers.size() > 1 ? "[" + ranges + "]" : ranges;
  text += group.shape.suffix;
}

}  // namespace

bool is_host_name(std::string_view name) {
  return !name.empty() && name.size() <= limits::kMaxNodeNameBytes && name[0] != '-' &&
         name[0] != '.' && std::ranges::all_of(name, is_name_character);
}

Result<std::vector<std::string>> expand_hostlist(std::string_view text, std::size_t max_hosts) {
  if (text.size() > limits::kMaxHostlistBytes) {
    return fail(Errc::TooLarge, "a list of hosts of more than {} bytes", limits::kMaxHostlistBytes);
  }
  std::vector<std::string> names;
  if (trim(text).empty()) return names;
  const auto items = split_items(text);
  if (!items) return items.error();
  for (const auto item : *items) {
    if (auto added = append_item(names, trim(item), max_hosts); !added) return added.error();
  }
  return names;
}

std::string compress_hostlist(std::span<const std::string> names) {
  std::vector<NameGroup> groups;
  std::map<std::tuple<std::string_view, std::string_view, bool>, std::size_t> known;
  for (const auto& name : names) {
    NameGroup group = group_of(name);
    const auto [at, is_new] = known.try_emplace(group.key(), groups.size());
    if (is_new) {
      groups.push_back(std::move(group));
    } else {
      std::ranges::copy(group.numbers, std::back_inserter(groups[at->second].numbers));
    }
  }
  std::string text;
  for (NameGroup& group : groups) {
    std::ranges::sort(group.numbers);
    const auto repeats = std::ranges::unique(group.numbers);
    group.numbers.erase(repeats.begin(), repeats.end());
    append_group(text, group);
  }
  return text;
}

std::string compress_in_order(std::span<const std::string> names) {
  std::string text;
  std::optional<NameGroup> last;
  for (const auto& name : names) {
    NameGroup group = group_of(name);
    const bool is_same = last && last->key() == group.key() && !group.numbers.empty() &&
                         last->numbers.size() < kMaxRangesInSet;
    if (is_same) {
      last->numbers.push_back(group.numbers.front());
      continue;
    }
    if (last) append_group(text, *last);
    last = std::move(group);
  }
  if (last) append_group(text, *last);
  return text;
}

}  // namespace score::inline base
