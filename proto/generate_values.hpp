// Writes the conversions between messages and plain structs. See Value and Rule of options.proto.
#pragma once

#include <google/protobuf/descriptor.pb.h>

#include <string>

// Writes DIRECTORY/SET_values.inc (declarations), SET_values_code.inc (definitions) and
// SET_values_test.inc (random messages) for the messages whose Value has this set. Ends the program
// with a message if an annotation leaves a hole.
void write_values(const google::protobuf::FileDescriptorSet& files, const std::string& set,
                  const std::string& directory);

// Keeps the file, and so what depends on it, if it has this text already.
void write_if_changed(const std::string& path, const std::string& text);

// Prints why and ends the program.
[[noreturn]] void refuse(const std::string& why);
