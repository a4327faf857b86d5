score_fuzz(pm_frames PCH none SOURCES pm_frames.cpp LIBS score::pm)
score_fuzz(pm_segment PCH none SOURCES pm_segment.cpp LIBS score::pm)
score_fuzz(pm_network PCH none SOURCES pm_network.cpp LIBS score::pm)
score_fuzz(pm_fi_messages PCH none SOURCES pm_fi_messages.cpp LIBS score_pm_fi)
