#include "scored/node/idle/fill_account.hpp"

#include <algorithm>

namespace score::node {

[[gnu::hot]] void FillAccount::start(Duration used) {
  if (used >= Duration{0}) fills_.start(used.count());
}

[[gnu::hot]] Duration FillAccount::stop(Duration used) {
  return Duration{fills_.stop(used.count())};
}

Duration FillAccount::read(const IdleWatch& watch) const {
  const auto [filled, since] = fills_.read();
  const Duration open = since ? watch.used() - Duration{*since} : Duration{0};
  return Duration{filled} + std::max(open, Duration{0});
}

}  // namespace score::node
