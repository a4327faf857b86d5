# Generates code from the .proto files: the messages (lite runtime), the frame table, and the tool
# that makes the table. All of it goes to the build tree, under gen/proto, so that sources include
# "proto/client.pb.h" and "proto/frames.inc".
find_package(Protobuf REQUIRED)

set(SCORE_PROTO_FILES common client node shepherd control heads stacks checkpoint)
set(proto_gen ${CMAKE_CURRENT_BINARY_DIR}/gen)
# This file is the format of a different program and has no frames.
set(SCORE_FOREIGN_FILES perfetto)
set(proto_full ${CMAKE_CURRENT_BINARY_DIR}/full)
# The messages are made here and copied if they have changed: after a change of a rule alone, only
# the conversions are compiled again.
set(proto_new ${CMAKE_CURRENT_BINARY_DIR}/new)
file(MAKE_DIRECTORY ${proto_gen}/proto ${proto_full}/proto ${proto_new})

set(proto_inputs options.proto)
set(proto_names proto/options.proto)
set(proto_lite_names)
set(proto_sources)
set(proto_headers)
foreach(name IN LISTS SCORE_PROTO_FILES)
  list(APPEND proto_inputs ${name}.proto)
  list(APPEND proto_names proto/${name}.proto)
  list(APPEND proto_lite_names proto/${name}.proto)
  list(APPEND proto_sources ${proto_gen}/proto/${name}.pb.cc)
  list(APPEND proto_headers ${proto_gen}/proto/${name}.pb.h)
endforeach()

foreach(name IN LISTS SCORE_FOREIGN_FILES)
  list(APPEND proto_inputs ${name}.proto)
  list(APPEND proto_lite_names proto/${name}.proto)
  list(APPEND proto_sources ${proto_gen}/proto/${name}.pb.cc)
  list(APPEND proto_headers ${proto_gen}/proto/${name}.pb.h)
endforeach()
set(proto_made ${proto_sources} ${proto_headers})
list(TRANSFORM proto_made REPLACE "^${proto_gen}" "${proto_new}")

add_custom_command(
  OUTPUT ${proto_sources} ${proto_headers} ${proto_gen}/frames.pb
         ${proto_full}/proto/options.pb.cc ${proto_full}/proto/options.pb.h
  COMMAND protobuf::protoc -I ${PROJECT_SOURCE_DIR} --cpp_out=${proto_new} ${proto_lite_names}
  COMMAND ${CMAKE_COMMAND} -E copy_if_different ${proto_made} ${proto_gen}/proto
  COMMAND protobuf::protoc -I ${PROJECT_SOURCE_DIR} --cpp_out=${proto_full} proto/options.proto
  COMMAND protobuf::protoc -I ${PROJECT_SOURCE_DIR}
          --descriptor_set_out=${proto_gen}/frames.pb ${proto_names}
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
  DEPENDS ${proto_inputs}
  COMMENT "protoc"
  VERBATIM)

# -w is set because warnings are for hand-written code. SYSTEM does the same for its headers.
add_executable(score_generate_table generate_table.cpp generate_values.cpp
  ${proto_full}/proto/options.pb.cc)
target_link_libraries(score_generate_table PRIVATE score_options protobuf::libprotobuf)
target_include_directories(score_generate_table SYSTEM PRIVATE ${proto_full})
set_source_files_properties(${proto_full}/proto/options.pb.cc PROPERTIES COMPILE_OPTIONS -w)
set_target_properties(score_generate_table PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})

# The sets of conversions: see Value in options.proto.
set(SCORE_VALUE_SETS model leases samples waits)
set(proto_tables ${proto_gen}/proto/frames.inc)
foreach(set IN LISTS SCORE_VALUE_SETS)
  foreach(kind IN ITEMS "" _code _test)
    list(APPEND proto_tables ${proto_gen}/proto/${set}_values${kind}.inc)
  endforeach()
endforeach()
add_custom_command(
  OUTPUT ${proto_tables}
  COMMAND score_generate_table ${proto_gen}/frames.pb ${proto_gen}/proto ${SCORE_VALUE_SETS}
  DEPENDS score_generate_table ${proto_gen}/frames.pb
  COMMENT "frame table, conversions"
  VERBATIM)

# Links the lite runtime, statically if SCORE_STATIC_LIBS is set (see cmake/options.cmake) and the
# library exists.
add_library(score_protobuf_lite INTERFACE)
find_library(PROTOBUF_LITE_STATIC libprotobuf-lite.a)
if(SCORE_STATIC_LIBS AND PROTOBUF_LITE_STATIC)
  find_package(Threads REQUIRED)
  target_link_libraries(score_protobuf_lite INTERFACE ${PROTOBUF_LITE_STATIC} Threads::Threads)
else()
  target_link_libraries(score_protobuf_lite INTERFACE protobuf::libprotobuf-lite)
endif()

add_library(score_proto_messages STATIC ${proto_sources} ${proto_tables})
add_library(score::proto_messages ALIAS score_proto_messages)
target_compile_options(score_proto_messages PRIVATE -w)
target_include_directories(score_proto_messages SYSTEM PUBLIC
  ${CMAKE_CURRENT_SOURCE_DIR}/lite ${proto_gen})
target_link_libraries(score_proto_messages PUBLIC score_protobuf_lite PRIVATE score_options)
