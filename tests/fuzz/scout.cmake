score_fuzz(scout_text SOURCES scout_text.cpp LIBS score::scout)
