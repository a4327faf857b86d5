#include "base/result.hpp"

namespace score::inline base {

std::string Error::message() const {
  if (context_.empty()) return code_.message();
  return context_ + ": " + code_.message();
}

Error Error::wrapped(std::string outer) const {
  if (!context_.empty()) outer += ": " + context_;
  return Error(code_, std::move(outer));
}

}  // namespace score::inline base
