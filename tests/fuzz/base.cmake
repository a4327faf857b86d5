score_fuzz(base_config SOURCES base_config.cpp LIBS score::config)
score_fuzz(base_text SOURCES base_text.cpp LIBS score::core)
