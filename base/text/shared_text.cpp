#include "base/text/shared_text.hpp"

#include <algorithm>

namespace score::inline base {

SharedText TextPool::share(const SharedText& text) {
  if (text.empty()) return text;
  if (texts_.size() >= sweep_at_) {
    std::erase_if(texts_, [](const SharedText& known) { return !known.is_shared(); });
    sweep_at_ = std::max(kLeastKept, 2 * texts_.size());
  }
  return *texts_.insert(text).first;
}

}  // namespace score::inline base
