#pragma once

// Overloaded makes one visitor for std::visit out of one lambda per alternative.

namespace score {
inline namespace base {

template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

}  // namespace base
}  // namespace score
