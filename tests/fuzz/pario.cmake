score_fuzz(pario_messages PCH none SOURCES pario_messages.cpp LIBS score::pario_core)
