#pragma once
// Lists of host names in the notation of job systems: node[00-63,70],head.

#include "base/limits.hpp"
#include "base/result.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace score::inline base {

// The names in order, repeats kept. Numbers keep the width of the range's first: [00-02] gives 00
// 01 02, [9-11] gives 9 10 11. A name may have several brackets: r[1-2]n[1-2]. Blanks around a name
// are ignored. "" gives no name. Hostile lists cost nothing: sizes are counted before names are
// made. Errors: Malformed (brackets, ranges that fall, characters that no host name has, empty
// names), TooLarge (more than max_hosts names, a name over limits::kMaxNodeNameBytes, text over
// limits::kMaxHostlistBytes).
[[nodiscard]] Result<std::vector<std::string>> expand_hostlist(
    std::string_view text, std::size_t max_hosts = limits::kMaxNodes);

// The short form: names that differ only in their last number are gathered where the first of them
// stands, in order of the number, without repeats. expand_hostlist gives the same set back.
[[nodiscard]] std::string compress_hostlist(std::span<const std::string> names);

// The short form that keeps order and repeats: expand_hostlist gives the same names back. Only
// neighbours are gathered.
[[nodiscard]] std::string compress_in_order(std::span<const std::string> names);

// Letters, digits, '-', '_', '.', not empty, not starting with '-' or '.', at most
// limits::kMaxNodeNameBytes: safe in paths, logs, metrics and terminals.
[[nodiscard]] bool is_host_name(std::string_view name);

}  // namespace score::inline base
