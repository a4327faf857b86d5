// This build tool turns the annotations of the .proto files into C++: the enumerations FrameType
// and Role, the table of rules (DIRECTORY/frames.inc), and the conversions of the messages in each
// SET (generate_values.hpp). Only this tool uses the full protobuf runtime; programs use only its
// output.
//
//    score_generate_table DESCRIPTOR_SET DIRECTORY [SET ...]
//
// It rejects everything that would leave a hole: a message that opens a frame without an
// annotation, two frames with the same number, a frame without permitted senders. A top-level
// message opens a frame unless it is the type of a field in a message.

#include "proto/generate_values.hpp"
#include "proto/options.pb.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace pb = google::protobuf;

struct FrameMessage {
  std::string name;
  score::wire::Frame rule;
};

// Converts OTHER_USER to OtherUser.
std::string pascal_case(const std::string& name) {
  std::string out;
  bool word_starts = true;
  for (char c : name) {
    if (c == '_') {
      word_starts = true;
      continue;
    }
    int letter = static_cast<unsigned char>(c);
    out += static_cast<char>(word_starts ? std::toupper(letter) : std::tolower(letter));
    word_starts = false;
  }
  return out;
}

void collect_field_types(const pb::DescriptorProto& message, std::set<std::string>& types) {
  for (const auto& field : message.field()) types.insert(field.type_name());
  for (const auto& nested : message.nested_type()) collect_field_types(nested, types);
}

// Collects every message of our files that opens a frame, by number.
std::map<std::uint32_t, FrameMessage> collect_frames(const pb::FileDescriptorSet& files) {
  std::set<std::string> used_as_field;
  for (const auto& file : files.file()) {
    for (const auto& message : file.message_type()) collect_field_types(message, used_as_field);
  }
  std::map<std::uint32_t, FrameMessage> frames;
  for (const auto& file : files.file()) {
    if (file.package() != "score.wire" || file.syntax() != "proto3") continue;
    for (const auto& message : file.message_type()) {
      if (!message.options().HasExtension(score::wire::frame)) {
        if (!used_as_field.contains("." + file.package() + "." + message.name())) {
          refuse(file.name() + ": " + message.name() + " opens a frame but has no (frame) option");
        }
        continue;
      }
      FrameMessage frame{message.name(), message.options().GetExtension(score::wire::frame)};
      if (frame.rule.allow().empty()) refuse(frame.name + ": no role may send it (empty allow)");
      if (frame.rule.type() == 0 || frame.rule.type() > 0xffff) {
        refuse(frame.name + ": type must be 1 ... 65535");
      }
      auto [where, is_new] = frames.emplace(frame.rule.type(), frame);
      if (!is_new) {
        refuse(frame.name + " and " + where->second.name + " have the same type " +
               std::to_string(frame.rule.type()));
      }
    }
  }
  if (frames.empty()) refuse("no frames found");
  return frames;
}

unsigned mask_of(const score::wire::Frame& rule) {
  unsigned mask = 0;
  for (int role : rule.allow()) mask |= 1U << static_cast<unsigned>(role);
  return mask;
}

void write_enums(std::ostream& out, const std::map<std::uint32_t, FrameMessage>& frames) {
  const pb::EnumDescriptor* roles = score::wire::Role_descriptor();
  out << "enum class Role : std::uint8_t {\n";
  for (int i = 0; i < roles->value_count(); ++i) {
    out << "  " << pascal_case(roles->value(i)->name()) << " = " << roles->value(i)->number()
        << ",\n";
  }
  out << "};\n\ninline constexpr std::array<const char*, " << roles->value_count()
      << "> kRoleNames{{  // [role]\n";
  for (int i = 0; i < roles->value_count(); ++i) {
    if (roles->value(i)->number() != i) refuse("roles are not numbered 0, 1, 2 ...");
    out << "    \"" << roles->value(i)->name() << "\",\n";
  }
  out << "}};\n\nenum class FrameType : std::uint16_t {\n";
  for (const auto& [type, frame] : frames) out << "  " << frame.name << " = " << type << ",\n";
  out << "};\n\n";
}

void write_code(const std::string& path, const std::map<std::uint32_t, FrameMessage>& frames) {
  std::ostringstream out;
  out << "// Made by generate_table from the .proto files.\nnamespace score::wire {\n";
  for (const auto& [type, frame] : frames) out << "class " << frame.name << ";\n";
  out << "}  // namespace score::wire\n\nnamespace score::proto {\n\n";
  write_enums(out, frames);
  out << "template <class Message>\nstruct FrameTypeOf;\n";
  for (const auto& [type, frame] : frames) {
    out << "template <>\nstruct FrameTypeOf<wire::" << frame.name
        << "> {\n  static constexpr FrameType value = FrameType::" << frame.name << ";\n};\n";
  }
  out << "\ninline constexpr std::array<FrameRule, " << frames.size()
      << "> kFrameRules{{  // ascending type\n";
  for (const auto& [type, frame] : frames) {
    out << "    {FrameType::" << frame.name << ", \"" << frame.name << "\", "
        << frame.rule.max_bytes() << "U, 0x" << std::hex << mask_of(frame.rule) << std::dec
        << "U},\n";
  }
  out << "}};\n\n}  // namespace score::proto\n";
  write_if_changed(path, out.str());
}

}  // namespace

void write_if_changed(const std::string& path, const std::string& text) {
  std::ifstream in(path, std::ios::binary);
  if (in && std::string(std::istreambuf_iterator<char>(in), {}) == text) return;
  std::ofstream out(path, std::ios::trunc);
  out << text;
  out.close();
  if (!out) refuse("cannot write " + path);
}

void refuse(const std::string& why) {
  std::fprintf(stderr, "generate_table: %s\n", why.c_str());
  std::exit(1);
}

int main(int argc, char** argv) {
  if (argc < 3) refuse("usage: score_generate_table DESCRIPTOR_SET DIRECTORY [SET ...]");
  std::ifstream in(argv[1], std::ios::binary);
  pb::FileDescriptorSet files;
  if (!in || !files.ParseFromIstream(&in)) refuse(std::string("cannot read ") + argv[1]);
  const std::string directory = argv[2];
  write_code(directory + "/frames.inc", collect_frames(files));
  for (int i = 3; i < argc; ++i) write_values(files, argv[i], directory);
  return 0;
}
