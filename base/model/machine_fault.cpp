#include "base/model/machine_fault.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

namespace score::inline base {

bool is_machine_fault(const Error& error) {
  constexpr std::array kFaults = {ECHILD, ECONNREFUSED, ECONNRESET, EPIPE,  ETIMEDOUT,
                                  EEXIST,  // what an earlier attempt left is still being removed
                                  EAGAIN, ENOMEM,       ENOBUFS,    ENFILE, EMFILE,
                                  ENOSPC, EIO,          ESTALE};
  return error.is(Errc::Closed) || std::ranges::any_of(kFaults, [&](int code) {
           return error.code() == std::error_condition(code, std::generic_category());
         });
}

}  // namespace score::inline base
