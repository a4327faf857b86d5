#pragma once
// What jobs ask for beside cores and memory, as people write it: features of nodes ("ib&big") and
// generic resources ("gpu:2"). The texts come from users.

#include "base/model/model.hpp"
#include "base/result.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace score::inline base {

// "a", "a&b", "a|b" as ResourceRequest::features: {"a"}, {"a", "b"}, {"a|b"}. Errors: Malformed,
// TooLarge; the context is one line without the option's name.
[[nodiscard]] Result<std::vector<std::string>> parse_constraint(std::string_view text);

// parse_constraint() gives it back; also of mixed lists: "a&b|c".
[[nodiscard]] std::string format_constraint(std::span<const std::string> features);

// Whether a node with these features has what is asked for.
[[nodiscard]] bool has_features(std::span<const std::string> node,
                                std::span<const std::string> wanted);

// "gpu", "gpu:2", "gpu:2:mem=10G,nic" as ResourceRequest::generic. Errors: as parse_constraint().
[[nodiscard]] Result<std::vector<GenericResource>> parse_generic(std::string_view text);

// parse_generic() gives it back.
[[nodiscard]] std::string format_generic(std::span<const GenericResource> generic);

// "gpu:0,3;nic:1".
[[nodiscard]] std::string format_shares(std::span<const GenericShare> shares);

}  // namespace score::inline base
