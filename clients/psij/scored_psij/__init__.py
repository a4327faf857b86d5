"""PSI/J on Scored clusters."""
