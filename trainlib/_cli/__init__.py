"""The command line: one module for each group of commands. Commands are thin: they call functions and print what those return."""
