#pragma once

namespace score::head {

inline constexpr const char* kVersion = SCORE_VERSION;

}  // namespace score::head
