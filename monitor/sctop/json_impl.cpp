// Boost.JSON's own code, compiled once: its headers-only form needs no library at run time.
// Tested by sctop_test.cpp.
#include <boost/json/src.hpp>
