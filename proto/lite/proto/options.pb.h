// Stands in for protoc's options.pb.h, which the generated messages include because their .proto
// files import the annotations. The annotations are read at build time only (generate_table.cpp);
// the real header would drag the full protobuf runtime, with descriptors and reflection, into
// every program. The lite runtime neither knows nor needs options.
#pragma once
