#pragma once
// The OpenAPI 3.1 description of the API; its source is openapi.json in this folder.

#include <string_view>

namespace score::head {

[[nodiscard]] std::string_view open_api();

}  // namespace score::head
