#pragma once
// This header is precompiled for every target (cmake/score.cmake). It includes only headers of
// other projects, because ours change too often. Sources still include what they use; tests/tidy
// compiles without this header.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>
