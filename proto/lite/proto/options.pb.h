// This file replaces protoc's options.pb.h, which the generated messages include because their
// .proto files import the annotations. The annotations are read only at build time
// (generate_table.cpp). The real header would link the full protobuf runtime, with descriptors and
// reflection, into every program. The lite runtime does not need options.
#pragma once
