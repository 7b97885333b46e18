"""The edit-run loop under trainlib: the second script in a row that joins a platform."""

from bench.scripts.edit_run import finish_with_second_run, free_port
from trainlib._platform import commands

commands.up(prefect_port=free_port(), mlflow_port=free_port(), detach=True, auth=False)
try:
    finish_with_second_run("first_line_trainlib", {})
finally:
    commands.down()
