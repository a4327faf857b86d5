score_fuzz(pmi_line SOURCES pmi_line.cpp LIBS score_shepherd score_proto_messages PCH none)
score_fuzz(pmi_server SOURCES pmi_server.cpp LIBS score_shepherd score_proto_messages PCH none)
