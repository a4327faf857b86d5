score_fuzz(monitor_request SOURCES monitor_request.cpp LIBS score::monitor PCH none)
score_fuzz(monitor_message SOURCES monitor_message.cpp LIBS score::monitor_core PCH core)
score_fuzz(monitor_frames SOURCES monitor_frames.cpp LIBS score::monitor PCH none)
