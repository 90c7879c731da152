"""The audit agent: reads what the API server logs, folds it and appends it to the spool.

    ingestion        from lines to the spool, with the checkpoint
    checkpoint       how far the log was read, and the state of the fold
    audit_log_files  the log and its rotated files, in order
    log_reader       follows the log across rotations
    webhook          takes events from the API server instead, over HTTPS

What an audit event means is decided in `clew.witness.kubernetes_audit`.
"""
