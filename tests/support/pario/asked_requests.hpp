// Records what a class of the server asks other servers. The test gives the answers.
#pragma once

#include "pario/server/io/peers.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace score::pario {

class AskedRequests final : public Asker {
 public:
  struct Asked {
    std::uint32_t server = 0;
    Request request;
    Done done;
  };

  void ask(std::uint32_t server, Request request, Done done) override {
    asked.push_back({server, std::move(request), std::move(done)});
  }

  // Answers the first request that has none.
  void answer(int error) {
    const Asked first = std::move(asked.front());
    asked.erase(asked.begin());
    first.done(error, {});
  }

  std::vector<Asked> asked;
};

}  // namespace score::pario
