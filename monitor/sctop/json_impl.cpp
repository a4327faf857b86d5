// This file compiles Boost.JSON's own code once. Its headers-only form needs no library at run
// time. It is tested by sctop_test.cpp.
#include <boost/json/src.hpp>
