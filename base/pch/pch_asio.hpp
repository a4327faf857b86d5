#pragma once
// This header is precompiled for targets that link score::base: pch_core.hpp and Asio.
#include "base/pch/pch_core.hpp"
// asio.hpp is a list of Asio's headers and one alias, so it changes as rarely as they do.
#include "base/async/asio.hpp"
