score_fuzz(pmi_line SOURCES pmi_line.cpp LIBS score::shepherd)
score_fuzz(pmi_server SOURCES pmi_server.cpp LIBS score::shepherd)
score_fuzz(pmix_process SOURCES pmix_process.cpp LIBS score::shepherd)
score_fuzz(pmix_exchange SOURCES pmix_exchange.cpp LIBS score::pmix_exchange)
