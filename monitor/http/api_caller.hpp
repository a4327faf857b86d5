#pragma once
// ApiCaller names the user for whom a program asks the API. It is pure.

#include "monitor/http/web_login.hpp"

namespace score::monitor {

// ApiCaller is the user for whom a program asks.
struct ApiCaller {
  WebUser who;
  bool may_change = true;  // false: a token that only reads
  bool is_token = false;   // proven by a personal token

  friend bool operator==(const ApiCaller&, const ApiCaller&) = default;
};

}  // namespace score::monitor
