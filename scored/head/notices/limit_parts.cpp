#include "scored/head/notices/limit_parts.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace score::head {
namespace {

constexpr std::array kParts = {std::pair(50U, NoticeKind::TimeLimit50),
                               std::pair(80U, NoticeKind::TimeLimit80),
                               std::pair(90U, NoticeKind::TimeLimit90)};

// Limits are at most 292 years, so a hundredth of one times 100 fits.
Duration part_of(Duration limit, std::uint32_t percent) {
  return limit / 100 * percent + limit % 100 * percent / 100;
}

bool has_reached(const TimeUse& use, std::uint32_t percent) {
  const auto reached = [percent](Duration used, Duration limit) {
    return limit > Duration(0) && used >= part_of(limit, percent);
  };
  return reached(use.scheduled, use.scheduled_limit) || reached(use.elapsed, use.wall_limit);
}

}  // namespace

PartsReached parts_reached(const TimeUse& use, std::uint32_t noticed) {
  PartsReached out{{}, noticed};
  for (const auto& [percent, kind] : kParts) {
    if (percent <= noticed || !has_reached(use, percent)) continue;
    out.kinds.add(kind);
    out.percent = percent;
  }
  return out;
}

std::optional<Duration> time_to_next_part(const TimeUse& use, std::uint32_t noticed) {
  std::optional<Duration> next;
  const auto consider = [&](Duration used, Duration limit, std::uint32_t percent) {
    if (limit <= Duration(0)) return;
    const Duration missing = std::max(part_of(limit, percent) - used, kLeastWait);
    next = next ? std::min(*next, missing) : missing;
  };
  for (const auto& [percent, kind] : kParts) {
    if (percent <= noticed) continue;
    consider(use.scheduled, use.scheduled_limit, percent);
    consider(use.elapsed, use.wall_limit, percent);
  }
  return next;
}

}  // namespace score::head
