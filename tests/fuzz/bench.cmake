score_fuzz(scsim_swf SOURCES scsim_swf.cpp LIBS score::scsim_core)
