#pragma once
// Parses the texts in which users request more than cores and memory: features of nodes ("ib&big"),
// generic resources ("gpu:2") and licenses ("matlab:2"). The texts come from users.

#include "base/model/model.hpp"
#include "base/result.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace score::inline base {

// Parses "a", "a&b" or "a|b" into ResourceRequest::features: {"a"}, {"a", "b"} or {"a|b"}. Errors:
// Malformed, TooLarge; the context is one line without the option's name.
[[nodiscard]] Result<std::vector<std::string>> parse_constraint(std::string_view text);

// Returns the text that parse_constraint() reads. Mixed lists have a text too: "a&b|c".
[[nodiscard]] std::string format_constraint(std::span<const std::string> features);

// Returns true if a node with the features `node` satisfies the request `wanted`.
[[nodiscard]] bool has_features(std::span<const std::string> node,
                                std::span<const std::string> wanted);

// Parses "gpu", "gpu:2" or "gpu:2:mem=10G,nic" into ResourceRequest::generic. Errors: as
// parse_constraint().
[[nodiscard]] Result<std::vector<GenericResource>> parse_generic(std::string_view text);

// Returns the text that parse_generic() reads.
[[nodiscard]] std::string format_generic(std::span<const GenericResource> generic);

// Parses "matlab:2,ansys" into ResourceRequest::licenses. Errors: as parse_constraint().
[[nodiscard]] Result<std::vector<License>> parse_licenses(std::string_view text);

// Returns the text that parse_licenses() reads.
[[nodiscard]] std::string format_licenses(std::span<const License> licenses);

// Returns the shares as text, such as "gpu:0,3;nic:1".
[[nodiscard]] std::string format_shares(std::span<const GenericShare> shares);

}  // namespace score::inline base
