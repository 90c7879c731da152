"""Who makes a request, and what that caller may read.

    authentication    by the project's own token, an access token, or a browser's session
    access_tokens     bearer tokens for programs, which expire and can be revoked
    sessions          sessions of browsers; `login_page` begins one, `logout` ends it
    namespace_access  which namespaces of the cluster a caller may read

Contains no routes of executions, runs or notebooks. Imported by `server`.
"""
