score_fuzz(scout_text SOURCES scout_text.cpp LIBS score::scout_run CLI11::CLI11)
score_fuzz(scout_batch SOURCES ${PROJECT_SOURCE_DIR}/scout/batch/script_fuzz.cpp LIBS score::scout_batch)
score_fuzz(scout_slurm SOURCES ${PROJECT_SOURCE_DIR}/scout/slurm/words/words_fuzz.cpp LIBS score::scout_slurm_words)
