#pragma once

// One visitor for std::visit out of a lambda per alternative.

namespace score {
inline namespace base {

template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

}  // namespace base
}  // namespace score
