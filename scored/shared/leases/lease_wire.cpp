#include "scored/shared/leases/lease_wire.hpp"

#include "base/text.hpp"
#include "proto/convert/fields.hpp"
#include "proto/leases_values_code.inc"

#include <fmt/format.h>

#include <vector>

namespace score::leases {

std::string format_grant(const StoredGrant& grant) {
  const std::string holder = grant.holder ? std::to_string(*grant.holder) : "-";
  const gang::LogMark& mark = grant.mark;
  return fmt::format("{} {} {} {} {} {} {} {} {}\n", grant.term, holder, mark.term, mark.version,
                     mark.heads, mark.position.term, mark.position.sequence, mark.seal.high,
                     mark.seal.low);
}

Result<StoredGrant> parse_grant(std::string_view text) {
  const auto words = split(trim(text), ' ');
  if (words.size() != 9) return fail(Errc::Malformed, "not nine words");
  const auto number = [](std::string_view word, std::uint64_t below) -> std::uint64_t {
    const auto value = parse_number<std::uint64_t>(word);
    return value && *value < below ? *value : below;
  };
  StoredGrant grant;
  const std::uint64_t term = number(words[0], kMostCount + 1);
  const std::uint64_t mark_term = number(words[2], kMostCount + 1);
  const std::uint64_t version = number(words[3], kMostCount + 1);
  const std::uint64_t heads = number(words[4], kAllHeads + 1);
  const std::uint64_t log_term = number(words[5], kMostCount + 1);
  const std::uint64_t sequence = number(words[6], kMostCount + 1);
  const auto seal_high = parse_number<std::uint64_t>(words[7]);
  const auto seal_low = parse_number<std::uint64_t>(words[8]);
  const bool has_holder = words[1] != "-";
  const std::uint64_t holder = has_holder ? number(words[1], gang::kHeads) : 0;
  if (term > kMostCount || mark_term > kMostCount || version > kMostCount || heads > kAllHeads ||
      log_term > kMostCount || sequence > kMostCount || !seal_high || !seal_low ||
      holder == gang::kHeads) {
    return fail(Errc::Malformed, "a number is out of range");
  }
  grant.term = Epoch(term);
  if (has_holder) grant.holder = static_cast<gang::HeadIndex>(holder);
  grant.mark = {Epoch(mark_term),
                version,
                static_cast<std::uint32_t>(heads),
                {Epoch(log_term), sequence},
                {*seal_high, *seal_low}};
  return grant;
}

}  // namespace score::leases
