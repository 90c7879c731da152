"""The processes of notebooks, TensorBoards and viewers.

launch_plan         the program, environment and directories of a resource
supervisor          starts, watches and stops processes, and writes their status
start_preparation   the access token, port and directories of a start
child_process, process_log   one process, and what it printed
process_status      the status of a resource from the state of its process
orphans             ends what a killed server left behind
runtime_directory   a private directory with a short path, for sockets
launchers           programs that run in the child, without Clew
"""
