// Runs the requests that trees of unmodified programs need: links, values, groups, and the space
// and holes of a file's data here (docs/adr/0128).
#pragma once

#include "pario/core/message.hpp"
#include "pario/store/data_files.hpp"
#include "pario/store/store.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace score::pario {

// This class is not thread-safe. Its int results are 0 or an errno value.
class Trees {
 public:
  struct Result {
    std::uint64_t number = 0;
    std::string data;
  };

  Trees(Store& store, DataFiles& data) : store_(store), data_(data) {}

  // `data` is that of the request. EINVAL: not a request of this class.
  int run(const Request& request, std::string_view data, std::int64_t now_ns, Result& result);

 private:
  int change_inode(const Request& request, std::int64_t now_ns);
  int set_value(const Request& request, std::string_view data);
  int allocate(const Request& request);

  Store& store_;
  DataFiles& data_;
};

}  // namespace score::pario
