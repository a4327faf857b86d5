// The conversions themselves are generated. They are tested by values_test.cpp and
// convert_node_test.cpp.
#include "proto/convert/checks.hpp"
#include "proto/convert/convert.hpp"
#include "proto/convert/fields.hpp"
#include "proto/model_values_code.inc"
