#include "base/model/resources.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace score::inline base {

namespace {

constexpr std::size_t kMaxBytes = 4'096;
constexpr std::string_view kMemory = "mem=";

std::string shown(std::string_view text) {
  return escape_terminal(text, 80);
}

// Slurm has more forms: counts, groups in brackets, and both operators in one text. They are
// rejected here.
Status check_form(std::string_view text) {
  if (text.size() > kMaxBytes) return fail(Errc::TooLarge, "more than {} bytes", kMaxBytes);
  const auto other = text.find_first_of("[]()*!,:");
  if (other != text.npos) {
    return fail(Errc::Malformed, "'{}' in '{}': only 'a&b' (all of them) and 'a|b' (one of them)",
                text[other], shown(text));
  }
  if (text.find('&') == text.npos || text.find('|') == text.npos) return {};
  return fail(Errc::Malformed, "'{}' has both & and |: use one of them", shown(text));
}

Result<GenericResource> parse_one(std::string_view text) {
  const auto parts = split(text, ':');
  GenericResource one{std::string(parts[0]), 1};
  if (!is_host_name(one.name)) {
    return fail(Errc::Malformed, "'{}' is not NAME[:COUNT][:mem=SIZE]", shown(text));
  }
  std::size_t next = 1;
  if (next < parts.size() && !parts[next].starts_with(kMemory)) {
    const auto count = parse_number<std::uint32_t>(parts[next++]);
    if (!count || *count < 1 || *count > limits::kMaxGenericCount) {
      return fail(Errc::Malformed, "'{}': the count is not between 1 and {}", shown(text),
                  limits::kMaxGenericCount);
    }
    one.count = *count;
  }
  if (next < parts.size() && parts[next].starts_with(kMemory)) {
    const auto memory = parse_bytes(parts[next++].substr(kMemory.size()));
    if (!memory || *memory == Bytes(0)) {
      return fail(Errc::Malformed, "'{}': the memory is not a size, such as 10G", shown(text));
    }
    one.memory = *memory;
  }
  if (next == parts.size()) return one;
  return fail(Errc::Malformed, "'{}' is not NAME[:COUNT][:mem=SIZE]", shown(text));
}

}  // namespace

Result<std::vector<std::string>> parse_constraint(std::string_view text) {
  if (auto form = check_form(text); !form) return form.error();
  const bool is_choice = text.find('|') != text.npos;
  std::vector<std::string> names;
  for (const auto part : split(text, is_choice ? '|' : '&')) {
    if (!is_host_name(trim(part))) {
      return fail(Errc::Malformed, "'{}' is not the name of a feature", shown(trim(part)));
    }
    std::string name(trim(part));
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  if (names.size() > limits::kMaxFeatures) {
    return fail(Errc::TooLarge, "more than {} features", limits::kMaxFeatures);
  }
  if (!is_choice) return names;
  return std::vector<std::string>{fmt::format("{}", fmt::join(names, "|"))};
}

std::string format_constraint(std::span<const std::string> features) {
  return fmt::format("{}", fmt::join(features, "&"));
}

bool has_features(std::span<const std::string> node, std::span<const std::string> wanted) {
  return std::ranges::all_of(wanted, [&](const std::string& clause) {
    return std::ranges::any_of(split(clause, '|'), [&](std::string_view name) {
      return std::ranges::find(node, name) != node.end();
    });
  });
}

Result<std::vector<GenericResource>> parse_generic(std::string_view text) {
  if (text.size() > kMaxBytes) return fail(Errc::TooLarge, "more than {} bytes", kMaxBytes);
  std::vector<GenericResource> out;
  for (const auto part : split(text, ',')) {
    auto one = parse_one(trim(part));
    if (!one) return one.error();
    const auto same = [&](const GenericResource& other) { return other.name == one->name; };
    if (std::ranges::any_of(out, same)) {
      return fail(Errc::Malformed, "'{}' is there twice", one->name);
    }
    out.push_back(*std::move(one));
  }
  if (out.size() <= limits::kMaxGenericKinds) return out;
  return fail(Errc::TooLarge, "more than {} kinds", limits::kMaxGenericKinds);
}

std::string format_generic(std::span<const GenericResource> generic) {
  std::string out;
  for (const GenericResource& one : generic) {
    out += fmt::format("{}{}:{}", out.empty() ? "" : ",", one.name, one.count);
    if (one.memory > Bytes(0)) out += fmt::format(":{}{}", kMemory, format_bytes(one.memory));
  }
  return out;
}

Result<std::vector<License>> parse_licenses(std::string_view text) {
  if (text.size() > kMaxBytes) return fail(Errc::TooLarge, "more than {} bytes", kMaxBytes);
  std::vector<License> out;
  for (const auto part : split(text, ',')) {
    const auto words = split(trim(part), ':');
    License one{std::string(words[0]), 1};
    if (!is_host_name(one.name) || words.size() > 2) {
      return fail(Errc::Malformed, "'{}' is not NAME[:COUNT]", shown(part));
    }
    if (words.size() == 2) {
      const auto count = parse_number<std::uint32_t>(words[1]);
      if (!count || *count < 1 || *count > limits::kMaxLicenses) {
        return fail(Errc::Malformed, "'{}': the count is not between 1 and {}", shown(part),
                    limits::kMaxLicenses);
      }
      one.count = *count;
    }
    if (std::ranges::find(out, one.name, &License::name) != out.end()) {
      return fail(Errc::Malformed, "'{}' is there twice", one.name);
    }
    out.push_back(std::move(one));
  }
  if (out.size() <= limits::kMaxLicenseKinds) return out;
  return fail(Errc::TooLarge, "more than {} kinds", limits::kMaxLicenseKinds);
}

std::string format_licenses(std::span<const License> licenses) {
  std::string out;
  for (const License& one : licenses) {
    out += fmt::format("{}{}:{}", out.empty() ? "" : ",", one.name, one.count);
  }
  return out;
}

std::string format_shares(std::span<const GenericShare> shares) {
  std::string out;
  for (const GenericShare& share : shares) {
    out +=
        fmt::format("{}{}:{}", out.empty() ? "" : ";", share.name, fmt::join(share.indices, ","));
  }
  return out;
}

}  // namespace score::inline base
