score_fuzz(proto_frames SOURCES proto_frames.cpp LIBS score::proto_core)
score_fuzz(proto_messages SOURCES proto_messages.cpp LIBS score::proto_core)
score_fuzz(proto_key_values SOURCES proto_key_values.cpp LIBS score::proto_core)
score_fuzz(setup_token SOURCES setup_token.cpp LIBS score::proto)
