#include "proto/generate_values.hpp"

#include "proto/options.pb.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace pb = google::protobuf;

namespace {

using score::wire::Rule;
using score::wire::Value;

struct Field {
  const pb::FieldDescriptor* field;
  Rule rule;
  std::string path;  // of the member, from the struct
};

struct Conversion {
  const pb::Descriptor* message;
  Value value;
  std::vector<Field> fields;
  std::string type;     // of the struct
  std::string wire;     // of the message
  std::string checked;  // what check_value() examines
};

// Replaces $1 ... $9 by the words.
template <class... Words>
std::string expand(std::string_view text, const Words&... words) {
  const std::vector<std::string> all{std::string(words)...};
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$') {
      out += all.at(static_cast<std::size_t>(text[++i] - '1'));
    } else {
      out += text[i];
    }
  }
  return out;
}

// Newer releases of protobuf return names as views.
template <class Descriptor>
std::string name_of(const Descriptor& descriptor) {
  return std::string(descriptor.name());
}

// Returns "LaunchSpec.Mpi" for "score.wire.LaunchSpec.Mpi".
std::string short_name(std::string_view name) {
  return std::string(name.substr(std::string_view("score.wire.").size()));
}

std::string cpp_name(std::string_view name) {
  std::string out = short_name(name);
  std::replace(out.begin(), out.end(), '.', '_');
  return "wire::" + out;
}

std::string member_of(const std::string& field) {
  for (const std::string_view unit : {"_wall_ns", "_ns", "_bytes"}) {
    if (field.ends_with(unit)) return field.substr(0, field.size() - unit.size());
  }
  return field;
}

bool is_signed(const pb::FieldDescriptor& field) {
  return field.cpp_type() == field.CPPTYPE_INT32 || field.cpp_type() == field.CPPTYPE_INT64;
}

bool is_text(const pb::FieldDescriptor& field) {
  return field.cpp_type() == field.CPPTYPE_STRING;
}

bool is_message(const pb::FieldDescriptor& field) {
  return field.cpp_type() == field.CPPTYPE_MESSAGE;
}

bool is_enum(const pb::FieldDescriptor& field) {
  return field.cpp_type() == field.CPPTYPE_ENUM;
}

void refuse_holes(const Field& f) {
  const auto& [field, rule, path] = f;
  const std::string name = short_name(field->full_name());
  if (field->is_repeated() != rule.has_count()) {
    refuse(name + (rule.has_count() ? " is not a list" : " is a list and has no limit (count)"));
  }
  if (is_message(*field) && !field->message_type()->options().HasExtension(score::wire::value)) {
    refuse(name + ": its type has no (value)");
  }
  if (rule.has_most() && is_signed(*field) && !rule.has_least()) refuse(name + " has no `least`");
  if (rule.text() == Rule::C_STRING && !rule.has_most()) refuse(name + " has no `most`");
}

const Rule& rule_of(const pb::FieldDescriptor& field) {
  return field.options().GetExtension(score::wire::rule);
}

const pb::Descriptor* find_like(const pb::Descriptor& message, const Value& value) {
  if (!value.has_like()) return nullptr;
  const auto* like = message.file()->pool()->FindMessageTypeByName("score.wire." + value.like());
  if (like == nullptr) refuse(name_of(message) + ": there is no message " + value.like());
  for (int i = 0; i < like->field_count(); ++i) {
    const auto& field = *like->field(i);
    const auto& without = value.without();
    const bool is_due = !rule_of(field).has_as() && !rule_of(field).apart() &&
                        std::find(without.begin(), without.end(), field.name()) == without.end();
    if (is_due && message.FindFieldByName(field.name()) == nullptr) {
      refuse(name_of(message) + " has no field " + name_of(field) + " as " + name_of(*like) +
             " has");
    }
  }
  return like;
}

Conversion read_conversion(const pb::Descriptor& message) {
  Conversion c{&message, message.options().GetExtension(score::wire::value), {}, {}, {}, {}};
  c.type = c.value.type();
  c.wire = cpp_name(message.full_name());
  c.checked = c.value.has_part() ? "out." + c.value.part() : "out";
  const std::string prefix = c.value.has_part() ? c.value.part() + "." : "";
  const pb::Descriptor* like = find_like(message, c.value);
  for (int i = 0; i < message.field_count(); ++i) {
    const auto& field = *message.field(i);
    Field f{&field, rule_of(field), {}};
    if (like != nullptr && !field.options().HasExtension(score::wire::rule)) {
      const auto* other = like->FindFieldByName(field.name());
      if (other == nullptr || rule_of(*other).has_as()) continue;
      f.rule = rule_of(*other);
    }
    if (f.rule.apart()) continue;
    f.path = f.rule.has_as() ? f.rule.as() : prefix + member_of(name_of(field));
    refuse_holes(f);
    c.fields.push_back(std::move(f));
  }
  return c;
}

void collect(const pb::Descriptor& message, const std::string& set, std::vector<Conversion>& out) {
  for (int i = 0; i < message.nested_type_count(); ++i) collect(*message.nested_type(i), set, out);
  if (!message.options().HasExtension(score::wire::value)) return;
  if (message.options().GetExtension(score::wire::value).set() == set) {
    out.push_back(read_conversion(message));
  }
}

// ---- Message to struct --------------------------------------------------------------------------

std::string bound(const std::string& constant) {
  return "number_of(" + constant + ")";
}

// Writes the checks of one number or text, the C++ expression `it`.
void write_checks(std::ostream& out, const Field& f, const std::string& it, const char* indent) {
  const auto& [field, rule, path] = f;
  const std::string name = name_of(*field);
  if (is_enum(*field)) {
    out << indent
        << expand("check.require(\"$1\", $2_IsValid($3), \"is unknown\");\n", name,
                  cpp_name(field->enum_type()->full_name()), it);
  } else if (is_text(*field)) {
    if (rule.required()) {
      out << indent << expand("check.require(\"$1\", !$2.empty(), \"is missing\");\n", name, it);
    }
    if (rule.text() == Rule::C_STRING) {
      out << indent << expand("check.c_string(\"$1\", $2, $3);\n", name, it, rule.most());
    } else if (rule.has_most()) {
      out << indent << expand("check.at_most(\"$1\", $2.size(), $3);\n", name, it, rule.most());
    }
    if (rule.text() == Rule::NAME || rule.text() == Rule::NAME_OR_EMPTY) {
      const char* kind = rule.text() == Rule::NAME ? "host_name" : "name_or_empty";
      out << indent << expand("check.$1(\"$2\", $3);\n", kind, name, it);
    }
  } else {
    const std::string least = rule.has_least() ? bound(rule.least()) : "0";
    if (rule.required()) out << indent << expand("check.not_zero(\"$1\", $2);\n", name, it);
    if (rule.has_most()) {
      out << indent
          << expand("check.within(\"$1\", $2, $3, $4);\n", name, it, least, bound(rule.most()));
    } else if (rule.has_least()) {
      out << indent << expand("check.at_least(\"$1\", $2, $3);\n", name, it, least);
    }
  }
}

bool has_checks(const Field& f) {
  return !is_message(*f.field) && (is_enum(*f.field) || f.rule.required() || f.rule.has_least() ||
                                   f.rule.has_most() || f.rule.text() != Rule::ANY);
}

void write_list_checks(std::ostream& out, const Field& f) {
  const std::string name = name_of(*f.field);
  out << expand("  check.at_most(\"$1\", static_cast<std::size_t>(in.$1_size()), $2);\n", name,
                f.rule.count());
  if (has_checks(f)) {
    out << expand("  for (const auto& item : in.$1()) {\n    if (!check.ok()) return;\n", name);
    write_checks(out, f, "item", "    ");
    out << "  }\n";
  }
}

// Writes the checks of a message that has no struct.
void write_rules(std::ostream& out, const Conversion& c) {
  out << expand("void check_rules(FieldCheck& check, const $1& in) {\n", c.wire);
  for (const Field& f : c.fields) {
    const std::string name = name_of(*f.field);
    if (f.field->is_repeated()) {
      write_list_checks(out, f);
    } else {
      write_checks(out, f, "in." + name + "()", "  ");
    }
    if (!is_message(*f.field)) continue;
    if (!f.field->is_repeated()) refuse(short_name(f.field->full_name()) + ": make it apart");
    out << expand("  check_list(check, \"$1\", in.$1());\n", name);
  }
  out << "}\n\n";
}

void write_read_one(std::ostream& out, const Conversion& c, const Field& f) {
  const auto& [field, rule, path] = f;
  const std::string name = name_of(*field);
  const std::string it = "in." + name + "()";
  write_checks(out, f, it, "  ");
  if (is_message(*field)) {
    out << expand("  read_part(check, \"$1\", in.has_$1(), $2, out.$3);\n", name, it, path);
  } else if (is_text(*field)) {
    out << expand("  out.$1 = ", path)
        << (rule.has_cut() ? expand("$1.substr(0, $2);\n", it, rule.cut()) : it + ";\n");
  } else {
    std::string number = it;
    if (rule.has_cut()) number = expand("std::min<decltype($1)>($1, $2)", it, bound(rule.cut()));
    const bool is_limited = rule.has_most() || is_enum(*field);
    out << expand("  read_number<$1>(check, \"$2\", $3, out.$4);\n", is_limited ? "true" : "false",
                  name, number, path);
    if (rule.zero_is_default()) {
      out << expand("  if ($1 == 0) out.$2 = $3().$2;\n", it, path, c.type);
    }
  }
}

void write_read(std::ostream& out, const Conversion& c) {
  if (!c.value.has_type()) return write_rules(out, c);
  out << expand("void read(FieldCheck& check, const $1& in, $2& out) {\n", c.wire, c.type);
  for (const Field& f : c.fields) {
    if (f.field->is_repeated()) {
      write_list_checks(out, f);
      out << expand("  read_list(check, \"$1\", in.$1(), out.$2);\n", name_of(*f.field), f.path);
    } else {
      write_read_one(out, c, f);
    }
  }
  if (c.value.check()) {
    out << expand("  if (check.ok()) check_value(check, $1$2);\n",
                  c.value.read_only() ? "in, " : "", c.checked);
  }
  out << "}\n\n";
  out << expand(
      "base::Result<$1> from_wire(const $2& in) {\n  FieldCheck check(\"$3\");\n  $1 out;\n"
      "  read(check, in, out);\n  if (!check.ok()) return check.error();\n  return out;\n}\n\n",
      c.type, c.wire, name_of(*c.message));
}

// ---- Struct to message --------------------------------------------------------------------------

std::string written(const Field& f) {
  const std::string member = "in." + f.path;
  if (is_text(*f.field)) {
    return f.rule.has_cut() ? expand("$1.substr(0, $2)", member, f.rule.cut()) : member;
  }
  if (!is_enum(*f.field)) return bound(member);
  return expand("static_cast<$1>($2)", cpp_name(f.field->enum_type()->full_name()), bound(member));
}

void write_fill(std::ostream& out, const Conversion& c) {
  if (!c.value.has_type() || c.value.read_only()) return;
  out << expand("void to_wire(const $1& in, $2& out) {\n", c.type, c.wire);
  for (const Field& f : c.fields) {
    const std::string name = name_of(*f.field);
    if (!is_message(*f.field)) {
      out << (f.field->is_repeated()
                  ? expand("  add_all(in.$1, *out.mutable_$2());\n", f.path, name)
                  : expand("  out.set_$1($2);\n", name, written(f)));
    } else if (f.field->is_repeated()) {
      out << expand("  for (const auto& item : in.$1) to_wire(item, *out.add_$2());\n", f.path,
                    name);
    } else {
      out << expand("  to_wire(in.$1, *out.mutable_$2());\n", f.path, name);
    }
  }
  out << expand(
      "}\n\n$2 to_wire(const $1& in) {\n  $2 out;\n  to_wire(in, out);\n  return out;\n}\n\n",
      c.type, c.wire);
}

// A member without a field would be lost between the programs, so the numbers of members are
// compared. This is done for every struct on the way to a member.
void write_member_counts(std::ostream& out, const Conversion& c) {
  if (!c.value.has_type() || c.value.has_like() || c.value.read_only()) return;
  std::map<std::string, std::set<std::string>> members;
  for (const Field& f : c.fields) {
    std::string path;
    for (std::size_t begin = 0; begin != std::string::npos;) {
      const std::size_t dot = f.path.find('.', begin);
      members[path].insert(f.path.substr(begin, dot - begin));
      path = f.path.substr(0, dot);
      begin = dot == std::string::npos ? dot : dot + 1;
    }
  }
  for (const auto& [path, names] : members) {
    const std::string type =
        path.empty() ? c.type : expand("decltype(std::declval<$1>().$2)", c.type, path);
    out << expand(
        "static_assert(member_count<$1> == $2, \"each member of $3 needs a field in $4\");\n", type,
        std::to_string(names.size()), path.empty() ? c.type : c.type + "::" + path,
        name_of(*c.message));
  }
}

// ---- Random messages ----------------------------------------------------------------------------

std::string random_value(const Field& f) {
  const auto& [field, rule, path] = f;
  if (is_text(*field)) {
    const std::string most = rule.has_most() ? rule.most() : rule.has_cut() ? rule.cut() : "64";
    return expand("random.text($1, $2)", rule.text() == Rule::ANY ? "false" : "true", most);
  }
  if (is_enum(*field)) {
    const auto& type = *field->enum_type();
    return expand("static_cast<$1>(random.number<int>(0, $2))", cpp_name(type.full_name()),
                  std::to_string(type.value(type.value_count() - 1)->number()));
  }
  std::string type(field->cpp_type_name());
  if (type != "bool" && type != "double") type = "std::" + type + "_t";
  const bool is_zero_out = rule.required() || rule.zero_is_default();
  const std::string most = rule.has_most() ? rule.most() : rule.cut();
  std::string least = "std::numeric_limits<" + type + ">::min()";
  if (rule.has_least()) least = rule.least();
  if (!rule.has_least() && (is_zero_out || rule.has_most())) least = is_zero_out ? "1" : "0";
  return expand("random.number<$1>(number_of($2), number_of($3))", type, least,
                most.empty() ? "std::numeric_limits<" + type + ">::max()" : most);
}

void write_random(std::ostream& out, const Conversion& c) {
  out << expand("inline void randomize(Random& random, $1& out) {\n", c.wire);
  for (const Field& f : c.fields) {
    const std::string name = name_of(*f.field);
    if (f.field->is_repeated()) {
      out << expand("  for (std::size_t i = random.count($1); i > 0; --i) ", f.rule.count());
      out << (is_message(*f.field) ? expand("randomize(random, *out.add_$1());\n", name)
                                   : expand("out.add_$1($2);\n", name, random_value(f)));
    } else if (is_message(*f.field)) {
      out << expand("  randomize(random, *out.mutable_$1());\n", name);
    } else {
      out << expand("  out.set_$1($2);\n", name, random_value(f));
    }
  }
  if (c.value.check() && !c.value.read_only()) {
    out << "  if (!random.is_wild()) make_valid(random, out);\n";
  }
  out << "}\n\n";
}

// ---- Files --------------------------------------------------------------------------------------

void write_file(const std::string& path, const std::ostringstream& text) {
  write_if_changed(
      path, "// Made by generate_table from the .proto files.\nnamespace score::proto {\n\n" +
                text.str() + "}  // namespace score::proto\n");
}

// The messages are declared only, so that a header can have the conversions without *.pb.h.
void write_declarations(std::ostream& out, const std::vector<Conversion>& all) {
  out << "class FieldCheck;\n\n}\n\nnamespace score::wire {\n\n";
  for (const Conversion& c : all) out << "class " << c.wire.substr(c.wire.rfind(':') + 1) << ";\n";
  out << "\n}\n\nnamespace score::proto {\n\n";
  for (const Conversion& c : all) {
    if (!c.value.has_type()) {
      out << expand("void check_rules(FieldCheck& check, const $1& in);\n", c.wire);
      continue;
    }
    out << expand(
        "void read(FieldCheck& check, const $1& in, $2& out);\n"
        "base::Result<$2> from_wire(const $1& in);\n",
        c.wire, c.type);
    if (c.value.read_only()) continue;
    out << expand("void to_wire(const $2& in, $1& out);\n$1 to_wire(const $2& in);\n\n", c.wire,
                  c.type);
  }
}

void refuse_doubles(const std::vector<Conversion>& all) {
  std::map<std::string, std::string> messages;
  for (const Conversion& c : all) {
    if (!c.value.has_type()) continue;
    const auto [other, is_new] = messages.emplace(c.type, name_of(*c.message));
    if (!is_new)
      refuse(name_of(*c.message) + " and " + other->second + " have the same type " + c.type);
  }
}

}  // namespace

void write_values(const pb::FileDescriptorSet& files, const std::string& set,
                  const std::string& directory) {
  pb::DescriptorPool pool(pb::DescriptorPool::generated_pool());
  std::vector<Conversion> all;
  for (const auto& file : files.file()) {
    if (pb::DescriptorPool::generated_pool()->FindFileByName(file.name()) == nullptr &&
        pool.BuildFile(file) == nullptr) {
      refuse("cannot read " + file.name());
    }
    const auto* built = pool.FindFileByName(file.name());
    for (int i = 0; i < built->message_type_count(); ++i)
      collect(*built->message_type(i), set, all);
  }
  if (all.empty()) refuse("no message has a (value) of the set " + set);
  refuse_doubles(all);
  std::ostringstream declarations, code, test;
  write_declarations(declarations, all);
  std::string types;
  for (const Conversion& c : all) {
    write_read(code, c);
    write_fill(code, c);
    write_member_counts(code, c);
    if (!c.value.has_type()) continue;
    test << expand("void randomize(Random& random, $1& out);\n", c.wire);
    types += (types.empty() ? "" : ", ") + c.wire;
  }
  for (const Conversion& c : all) {
    if (c.value.has_type()) write_random(test, c);
  }
  test << expand("using $1_messages = ::testing::Types<$2>;\n\n", set, types);
  const std::string path = directory + "/" + set + "_values";
  write_file(path + ".inc", declarations);
  write_file(path + "_code.inc", code);
  write_file(path + "_test.inc", test);
}
