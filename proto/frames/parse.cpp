// This file is tested by convert_job_test.cpp.

#include "proto/frames/parse.hpp"

#include "base/limits.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message_lite.h>

#include <cstdint>
#include <limits>

namespace score::proto {

bool parse_into(google::protobuf::MessageLite& message, std::string_view bytes) {
  if (bytes.size() > std::numeric_limits<int>::max()) return false;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  in.SetRecursionLimit(static_cast<int>(base::limits::kMaxMessageDepth));
  return message.ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

}  // namespace score::proto
