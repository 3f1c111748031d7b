"""Measurements of heed beside other programs: one module for each subject, `command` for the command line, `peers/`
for the programs that run the other toolkits."""
