"""The project on a server: queries over HTTP, files of this machine.

    project           the methods of a project
    client            the connection that the other modules share
    pipelines         pipeline runs on the server
    versions          read and restore file versions
    recreate          make a file again on the server, and write it here
    checkouts         directories here with files of executions there
    share             executions between the server and a remote
    content_transfer  upload and download content, only what is missing
    downloads         streamed answers: bytes, directories, progress of work
    caller_paths      what the paths in a user's words mean on this machine
    messages          requests and answers of the private routes, for both sides
    pod_record        the record of Pods, for reproducing a file of a cluster
    status            the files of this machine, and what the server does not have yet

Imported by `open_project` and the server's matching routes. Nothing is loaded unless CLEW_SERVER
is set.
"""
