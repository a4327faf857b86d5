#pragma once
// Parses and prints lists of host names in the notation of job systems: node[00-63,70],head.

#include "base/limits.hpp"
#include "base/result.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace score::inline base {

// Returns the names in order, with repeats. Numbers keep the width of the range's first: [00-02]
// gives 00 01 02, [9-11] gives 9 10 11. A name may have several brackets: r[1-2]n[1-2]. Blanks
// around a name are ignored. "" gives no name. Hostile lists are rejected cheaply, because sizes
// are counted before names are made. Errors: Malformed (brackets, descending ranges, characters
// that no host name has, empty names), TooLarge (more than max_hosts names, a name over
// limits::kMaxNodeNameBytes, text over limits::kMaxHostlistBytes).
[[nodiscard]] Result<std::vector<std::string>> expand_hostlist(
    std::string_view text, std::size_t max_hosts = limits::kMaxNodes);

// Returns the short form. Names that differ only in their last number are collected at the place of
// the first one, in order of the number, without repeats. expand_hostlist returns the same set.
[[nodiscard]] std::string compress_hostlist(std::span<const std::string> names);

// Returns the short form that keeps order and repeats: expand_hostlist returns the same names. Only
// adjacent names are combined.
[[nodiscard]] std::string compress_in_order(std::span<const std::string> names);

// Returns true for letters, digits, '-', '_', '.', not empty, not starting with '-' or '.', and at
// most limits::kMaxNodeNameBytes. Such names are safe in paths, logs, metrics and terminals.
[[nodiscard]] bool is_host_name(std::string_view name);

}  // namespace score::inline base
